"""What a type checker says of a game's environment."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("pyright", reason="pyright is not installed; pip install pyright")
CODE = """
import jax
import jaxarc.games

env, params = jaxarc.games.make("crates")
state, observation = env.reset(jax.random.key(0), params, 0)
after, seen, reward, done, info = env.step(state, 4, params)
both = env.step_and_reset
reveal_type(env)
reveal_type(params)
reveal_type(state)
reveal_type(observation)
reveal_type(after)
reveal_type(reward)
reveal_type(done)
reveal_type(info)
reveal_type(env.step_and_reset(state, 4, params)[0])
reveal_type(env.frame(state))
env.step(state, "up", params)
env.reset(jax.random.key(0), state)
"""


def test_a_type_checker_knows_what_reset_and_step_return(tmp_path):
    (tmp_path / "code.py").write_text(CODE)
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(tmp_path), "--pythonpath", sys.executable]
    (tmp_path / "pyrightconfig.json").write_text("{}")
    done = subprocess.run([*command, "."], capture_output=True, text=True, check=False, cwd=tmp_path)
    found = [(one["severity"], one["message"]) for one in json.loads(done.stdout)["generalDiagnostics"]]
    types = [message.rpartition(" is ")[2].strip('"') for severity, message in found if severity == "information"]
    assert types[:3] == ["GameEnvironment", "GameParams", "GameState"]
    assert types[4] == types[8] == "GameState"
    assert "Unknown" not in str(types)
    assert "Any" not in types
    wrong = [message for severity, message in found if severity == "error"]
    assert len(wrong) == 2
    assert "up" in wrong[0]
    assert "GameState" in wrong[1]
