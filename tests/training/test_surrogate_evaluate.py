"""Policies and trained agents that play held-out pairs, and their results."""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import constants as c
from jaxarc.agents import EditPolicy, Experiment, Report
from jaxarc.config import (
    AgentConfig,
    ConfigValidationError,
    JaxArcConfig,
    NetworkConfig,
    TaskConfig,
)
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.evaluation import SubmitPolicy, TaskResults
from jaxarc.runs import RunFolder
from jaxarc.runs.checkpoint import CheckpointRecord
from jaxarc.runs.folder import make_new_folder
from jaxarc.runs.metrics import MetricsFile
from jaxarc.training.surrogates import SurrogateExperiment
from jaxarc.training.surrogates.agreement import agreement
from jaxarc.training.surrogates.evaluate import compare_policies, load_held_out_pairs, summarize

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
    train = write_tasks(tmp_path / "train", {"seen": 4})
    return TaskConfig(train, write_tasks(tmp_path / "held_out", {"kept": 0, "painted": 5}), max_side=2)


def test_each_held_out_pair_is_played_once_from_its_input_and_decisions_are_timed(task):
    policies = {"painter": PaintThenSubmit(5), "submitter": SubmitPolicy.for_config(RULES)}
    results = compare_policies(policies, load_held_out_pairs(task, RULES))
    assert (results["painter"].solved, results["painter"].mean_steps) == (0.5, 2.0)
    assert (results["submitter"].solved, results["submitter"].mean_steps) == (0.5, 1.0)
    assert all(each.decisions_per_second > 0 for each in results.values())
    assert all(each.learning_seconds is None for each in results.values())


def test_a_policy_that_solves_nothing_has_no_mean_of_steps():
    played = TaskResults(np.zeros(3, bool), np.full(3, 7))
    assert dataclasses.astuple(summarize(played, 12.0)) == (0.0, None, None, 12.0)


def run_of_agent(task, root, name="agent"):
    """Make the run folder of an agent that learned nothing yet."""
    tiny = Experiment(RULES, agent=AgentConfig(num_envs=1, num_minibatches=1), task=task)
    tiny = tiny.replace(network=NetworkConfig(hidden_size=4, num_layers=1))
    folder = RunFolder(make_new_folder(root, name))
    state = {"learner": {"policy": fresh_policies(tiny)}}
    folder.checkpoints.save(state, CheckpointRecord(1, 1, 0.0, None, tiny.as_dict(), {}))
    MetricsFile(folder.metrics, Report).append([Report(1, 1, 3.0)])
    return folder


def fresh_policies(experiment):
    policy = EditPolicy.create(jax.random.key(0), experiment.environment, experiment.train_config.network)
    return jax.tree.map(lambda leaf: leaf[None], policy)


def test_an_agent_that_learned_from_all_that_is_held_out_is_refused_before_anything_is_played(task, tmp_path):
    copy = write_tasks(tmp_path / "copy", {"under_another_name": 0, "painted": 5, "more": 6})
    cheat = run_of_agent(task.replace(train_dataset=copy), tmp_path / "runs")
    with pytest.raises(ConfigValidationError, match=r"learned from .*copy, which holds every pair of .*held_out"):
        load_held_out_pairs(task, RULES, [cheat])


def test_pairs_that_an_agent_learned_from_are_left_out_for_all(task, tmp_path):
    half = write_tasks(tmp_path / "half", {"seen_before": 0})
    agent = run_of_agent(task.replace(train_dataset=half), tmp_path / "runs")
    held_out = load_held_out_pairs(task, RULES, [agent])
    assert held_out.num_left_out == 2
    assert held_out.pairs.task_ids == ("evaluation/painted/0", "evaluation/painted/1")


def test_policies_that_learned_from_everything_together_are_refused(task, tmp_path):
    halves = [write_tasks(tmp_path / f"half{color}", {"some": color}) for color in (0, 5)]
    agents = [run_of_agent(task.replace(train_dataset=half), tmp_path / "runs") for half in halves]
    with pytest.raises(ConfigValidationError, match="the policies learned from all 4 pairs"):
        load_held_out_pairs(task, RULES, agents)


def test_agents_whose_folders_have_one_name_play_both_and_one_given_twice_plays_once(task, tmp_path):
    first, second = (run_of_agent(task, tmp_path / place, "surrogate") for place in ("here", "there"))
    third = run_of_agent(task, tmp_path / "here", "alone")
    again = RunFolder(tmp_path / "there" / ".." / "here" / "alone")
    held_out = load_held_out_pairs(task, RULES, [first, second, third, again])
    results = compare_policies({"surrogate": PaintThenSubmit(5)}, held_out)
    assert list(results) == ["surrogate", str(first.path), str(second.path), "alone"]
    assert results["surrogate"].solved == 0.5
    assert results["alone"].learning_seconds == 3.0


def test_the_run_of_a_surrogate_is_no_agent(task, tmp_path):
    folder = run_of_agent(task, tmp_path / "runs")
    surrogate = SurrogateExperiment().as_dict()
    folder.checkpoints.save({"a": jnp.zeros(1)}, CheckpointRecord(2, 1, 0.0, None, surrogate, {}))
    with pytest.raises(ConfigValidationError, match=r"holds no agent of this version: .*no field"):
        load_held_out_pairs(task, RULES, [folder])


def test_rules_that_show_no_step_count_are_refused(task):
    with pytest.raises(ConfigValidationError, match=r"observation\.include_step_count=true"):
        load_held_out_pairs(task, RULES.with_fields(include_step_count=False))


PROBS = np.array([[0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.7, 0.0], [1.0, 0.0, 0.0, 0.0]])
IS_REAL = np.array([[True] * 4, [True] * 3 + [False], [True, True, False, False]])


def test_the_experts_own_opinion_agrees_in_everything():
    logits = np.log(np.maximum(PROBS, 1e-30))
    found = agreement(logits, PROBS, IS_REAL, PROBS)
    assert found.kl == pytest.approx(0, abs=1e-6)
    assert (found.top1_agreement, found.top5_agreement, found.regret) == (1, 1, 0)
    assert found.calibration_error == pytest.approx(0, abs=1e-6)
    assert sum(each.size for each in found.calibration) == IS_REAL.sum()


def test_equal_logits_are_as_far_away_as_the_entropy_says():
    found = agreement(np.zeros((3, 4)), PROBS, IS_REAL)
    entropy = [-(row[row > 0] * np.log(row[row > 0])).sum() for row in PROBS]
    expected = np.mean(np.log([4, 3, 2]) - entropy)
    assert found.kl == pytest.approx(expected, abs=1e-9)
    assert found.regret is None
    assert "regret" not in found.numbers()


def test_either_of_two_equal_favorites_is_right_and_padding_is_never_chosen():
    logits = np.array([[0.0, 9.0, 1.0, 2.0], [0.0, 0.0, 1.0, 99.0], [-5.0, -6.0, 99.0, 99.0]])
    found = agreement(logits, PROBS, IS_REAL)
    assert found.top1_agreement == 1


def test_first_choices_are_counted_by_group_where_all_best_candidates_are_of_one():
    logits = np.array([[0.0, 9.0, 1.0, 2.0], [0.0, 2.0, 1.0, 99.0], [5.0, 4.0, 99.0, 99.0]])
    of_one, of_two = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [2, 0, 0, 0]]), np.array([[0, 1, 2, 2]] * 3)
    found = agreement(logits, PROBS, IS_REAL, groups=of_one, group_names=("fill", "flood", "turn"))
    assert found.top1_by_group == {"flood": (2, 0.5), "turn": (1, 1.0)}
    found = agreement(logits, PROBS, IS_REAL, groups=of_two, group_names=("fill", "flood", "turn"))
    assert found.top1_by_group == {"fill": (1, 1.0), "turn": (1, 0.0)}


def test_the_first_five_are_asked_for_where_the_first_is_wrong():
    probs = np.eye(8)[[5, 0]]
    logits = -np.arange(8.0) * np.ones((2, 1))
    found = agreement(logits, probs, np.ones((2, 8), bool))
    assert (found.top1_agreement, found.top5_agreement) == (0.5, 0.5)


def test_regret_is_what_the_first_choice_is_worth_less_than_the_best_real_candidate():
    scores = np.array([[0.2, 0.9, 0.4, 0.0], [0.5, 0.5, 0.5, 9.0], [0.0, 0.3, 9.0, 9.0]])
    logits = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    assert agreement(logits, PROBS, IS_REAL, scores).regret == pytest.approx((0.7 + 0 + 0.3) / 3)


def test_who_is_too_sure_of_the_first_choice_is_not_calibrated():
    """It gives 0.95 to what the expert gives 0.5, and 0.05 to the other half: drawn by it, 0.95 of 0.45 and so on."""
    probs, logits = np.full((10, 2), 0.5), np.log([[0.95, 0.05]] * 10)
    found = agreement(logits, probs, np.ones((10, 2), bool))
    assert found.calibration_error == pytest.approx(0.45)
    assert [(each.size, round(each.predicted, 9), each.expected) for each in found.calibration] == [
        (10, 0.05, 0.5),
        (10, 0.95, 0.5),
    ]
