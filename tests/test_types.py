"""What type checkers of users say of make, reset, step and actions."""

import importlib.util
import re
import subprocess
import sys

import pytest

PROGRAM = """
import jax
import numpy as np

import jaxarc

env, params = jaxarc.make("starter")
state, observation = env.reset(jax.random.key(0), params)
point = jaxarc.PointAction(operation=2, row=0, col=0)
box = jaxarc.BboxAction(3, np.int64(0), jax.numpy.int32(0), 1, 1)
mask = jaxarc.MaskAction(operation=2, selection=np.ones((3, 3), bool))
after, observation, reward, done, info = env.step(state, point, params)
env.step(state, 3, params)
reveal_type(env)
reveal_type(params)
reveal_type(after)
reveal_type(point)
reveal_type(box.r1)
reveal_type(reward)
reveal_type(done)
reveal_type(info)
"""
TYPES = [
    "Environment[ArcEnvState, EnvParams]",
    "EnvParams",
    "ArcEnvState",
    "PointAction",
    *["Array"] * 3,
    "dict[str, Array]",
]


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_types_of_make_reset_step_and_actions_are_revealed(checker, tmp_path):
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    option = "--pythonpath" if checker == "pyright" else "--python-executable"
    command = [sys.executable, "-m", checker, option, sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    revealed = re.findall(r'(?:Type of|Revealed type) .*is "(.*)"', done.stdout)
    assert [re.sub(r"[\w.]+\.", "", name) for name in revealed] == TYPES, done.stdout
