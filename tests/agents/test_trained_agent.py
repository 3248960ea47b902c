"""The agent that the package brings: it loads by its name, does what the pages say, and stays as it is."""

import jax
import pytest
from run_command import run_command

import jaxarc
from jaxarc.files import TRAINED
from jaxarc.parallel import rollout
from jaxarc.wrappers import AutoReset

NAME = "ladder_l2_small"


def test_it_solves_tasks_that_it_never_saw():
    agent = jaxarc.load_agent(NAME)
    env, params = jaxarc.make("arc-agi-1/evaluation:max_side=10", agent.config)
    done = rollout(AutoReset(env), params, agent, jax.random.key(0), num_envs=64, num_steps=60)
    assert done.totals.solved >= 0.9 * done.totals.episodes > 64


def test_it_is_small():
    assert sum(path.stat().st_size for path in TRAINED.rglob("*")) < 100_000


def test_it_is_replayed_by_its_name(tmp_path):
    page = tmp_path / "episodes.html"
    result = run_command("replay", NAME, "--most", "3", "-o", page)
    assert result.exit_code == 0
    assert page.stat().st_size > 10_000
    assert "3 solved" in result.stdout


@pytest.mark.parametrize("command", [("train", "--resume", NAME), ("replay", "ladder_l3_small"), ("watch", "l3")])
def test_what_cannot_be_done_with_it_names_it(command):
    result = run_command(*command)
    assert result.exit_code == 2
    assert command[-1] in result.stderr
    assert not list(TRAINED.rglob(".lock"))
