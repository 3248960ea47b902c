"""Who plays held-out pairs, and how it is told."""

import dataclasses
import json

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig, TaskConfig
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.evaluation import Played, SubmitPolicy
from jaxarc.training import Experiment, create_run_folder
from jaxarc.training.checkpoint import CheckpointRecord
from jaxarc.training.surrogates.contest import hold_contest, standings

RULES = JaxArcConfig().with_fields(
    selection_format="bbox",
    max_grid_height=2,
    max_grid_width=2,
    max_episode_steps=3,
    reveal_target=True,
    include_step_count=True,
    invalid_action_policy="noop",
    start_grid="partial",
    history_enabled=False,
)


class PaintThenSubmit(eqx.Module):
    """Paints all cells with a color, and submits at the second step."""

    color: int

    def __call__(self, key, observation):
        operation = jnp.where(observation["step_count"] == 0, c.FILL + self.color, c.SUBMIT)
        return BboxAction(operation, *(jnp.int32(place) for place in (0, 0, 1, 1)))


def write_tasks(folder, outputs):
    folder.mkdir()
    for name, color in outputs.items():
        pair = {"input": [[0, 0]], "output": [[color, color]]}
        (folder / f"{name}.json").write_text(json.dumps({"train": [pair], "test": [pair]}))
    return str(folder)


@pytest.fixture
def task(tmp_path):
    learned = write_tasks(tmp_path / "learned", {"seen": 4})
    return TaskConfig(learned, write_tasks(tmp_path / "held_out", {"kept": 0, "painted": 5}), max_side=2)


def test_each_held_out_pair_is_played_once_from_its_input_and_decisions_are_timed(task):
    policies = {"painter": PaintThenSubmit(5), "submitter": SubmitPolicy.for_config(RULES)}
    contest = hold_contest(policies, task, RULES)
    assert (contest["painter"].solved, contest["painter"].mean_steps) == (0.5, 2.0)
    assert (contest["submitter"].solved, contest["submitter"].mean_steps) == (0.5, 1.0)
    assert all(each.decisions_per_second > 0 for each in contest.values())
    assert all(each.learning_seconds is None for each in contest.values())


def test_who_solves_nothing_has_no_mean_of_steps():
    played = Played(np.zeros(3, bool), np.full(3, 7))
    assert dataclasses.astuple(standings(played, 12.0)) == (0.0, None, None, 12.0)


def test_an_agent_that_learned_from_what_is_held_out_is_refused(task, tmp_path):
    cheat = Experiment(RULES, task=task.replace(train_dataset=task.evaluation_dataset, evaluation_dataset="x"))
    cheat = cheat.replace(logging=cheat.logging.replace(run_root=str(tmp_path / "runs")))
    folder = create_run_folder(cheat)
    folder.checkpoints.save({"a": jnp.zeros(1)}, CheckpointRecord(1, 0, 0.0, None, cheat.as_dict(), {}))
    with pytest.raises(ValueError, match=r"learned from .*held_out, which is held out here"):
        hold_contest({}, task, RULES, [folder])


def test_rules_that_show_no_step_count_are_refused(task):
    with pytest.raises(ValueError, match=r"needs observation\.include_step_count=true"):
        hold_contest({}, task, RULES.with_fields(include_step_count=False))
