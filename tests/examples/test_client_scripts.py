"""Scripts that train clients of others on jaxarc; each is skipped where its client is not installed.

Clients that are no packages are looked for in the folder ``JAXARC_CLIENTS``: a clone of PureJaxRL in ``purejaxrl``.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "examples" / "clients"
CLONES = Path(os.environ.get("JAXARC_CLIENTS", "/nonexistent"))
CLIENTS = {  # script -> modules that it needs, a clone or None, and further arguments
    "purejaxrl_ppo.py": (("distrax", "brax", "navix"), "purejaxrl", "--steps 20480"),
    "rejax_ppo.py": (("rejax",), None, "--steps 20480"),
    "jaxnasium_ppo.py": (("jaxnasium", "gymnax"), None, "--steps 20480"),
    "ajax_ppo.py": (("ajax", "gymnax"), None, "--steps 20480"),
    "evosax_es.py": (("evosax",), None, "--generations 2 --population 8"),
    "stoix_ppo.py": (("stoa", "rlax", "flashbax"), "Stoix", "--steps 20480"),
    "sb3_ppo.py": (("stable_baselines3",), None, "--steps 4096"),
    "torchrl_ppo.py": (("torchrl",), None, "--steps 4096"),
    "tianshou_ppo.py": (("tianshou",), None, "--steps 4096"),
    "cleanrl_ppo.py": (("torch", "tyro", "tensorboard"), "cleanrl", "--steps 4096"),
}


def test_every_script_is_listed():
    assert {path.name for path in SCRIPTS.glob("*.py")} == set(CLIENTS)


@pytest.mark.parametrize("script", ["jaxnasium_ppo.py", "ajax_ppo.py"])
def test_the_ppo_of_a_client_learns_the_starter_environment(script):
    done = _train(script, "")
    first, last = map(float, re.search(r"starter.*\n +mean return (\S+) -> ([^\s,]+)", done.stdout).groups())
    assert last > first + 0.2, done.stdout  # jaxnasium: 0.09 to 0.33; ajax-rl: 0.02 to 0.94


@pytest.mark.parametrize("script", CLIENTS)
def test_script_trains(script):
    done = _train(script, CLIENTS[script][2])
    assert "steps per CPU second" in done.stdout
    assert "mean return" in done.stdout


def _train(script, arguments):
    modules, clone, _ = CLIENTS[script]
    if missing := [module for module in modules if importlib.util.find_spec(module) is None]:
        pytest.skip(f"{', '.join(missing)} not installed; {script} says how")
    if clone is not None and not (CLONES / clone).is_dir():
        pytest.skip(f"no clone {clone} in the folder JAXARC_CLIENTS; {script} says from where")
    place = [] if clone is None else [str(CLONES / clone)]
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / script), *place, *arguments.split()],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "COLUMNS": "200"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
