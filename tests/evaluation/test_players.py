"""Trained policies as agents that play attempts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scripted_policies import Mirroring, repairing_policy
from small_exam import SIDE, rules, task, task_set

from jaxarc.agents import EditAgent, EditPolicy
from jaxarc.agents.predictor import answer_shown_config, with_answer
from jaxarc.config import ConfigValidationError, NetworkConfig
from jaxarc.evaluation import (
    AgentMismatchError,
    EpisodeSpec,
    evaluate,
)

HIDDEN = rules(include_demonstrations=True, include_input=True, include_step_count=True, max_episode_steps=12)
SHOWN = answer_shown_config(HIDDEN)
OBSERVATION = {
    "working_grid": jnp.array([[1, 2, -1], [3, 4, -1], [-1, -1, -1]], jnp.int8),
    "target_grid": jnp.array([[1, 2, 0], [3, 5, 0], [-1, -1, -1]], jnp.int8),
    "step_count": jnp.int32(1),
}


def mirrored(*rows):
    grid = np.array(rows)
    return grid.tolist(), grid[:, ::-1].tolist()


MIRRORS = task_set(
    task("first", mirrored([1, 2, 3], [4, 5, 6]), mirrored([7, 8])),
    task("second", mirrored([0, 0, 1], [2, 0, 0], [0, 3, 0])),
    task("no mirror", ([[1, 2]], [[1, 2]])),
)


@pytest.fixture(scope="module")
def policy():
    return jax.jit(lambda key: EditPolicy.create(key, SHOWN, NetworkConfig()))(jax.random.key(0))


@pytest.fixture(scope="module")
def repairing():
    return repairing_policy(SHOWN)


@pytest.fixture(scope="module")
def mirroring(repairing):
    """An agent that predicts every input mirrored, and edits towards it without a fault."""
    return EditAgent(repairing, Mirroring())


@eqx.filter_jit
def act(agent, attempt, key, observation):
    return agent.act(key, observation, agent.start(key, EpisodeSpec(attempt, attempt, attempt), observation))[0]


@eqx.filter_jit
def likeliest_and_drawn(policy, key, observation):
    batch = jax.tree.map(lambda x: x[None], observation)
    actions = policy.act(batch), policy.to_action(policy.sample(key, batch).choice)
    return jax.tree.map(lambda x: x[0], actions)


def same(left, right):
    return all(map(np.array_equal, jax.tree.leaves(left), jax.tree.leaves(right)))


def check_attempts(agent, observation, editor, seen_by_editor):
    """The first attempt acts greedily, the others draw; both from what the editor sees."""
    drawn = []
    for key in jax.random.split(jax.random.key(1), 4):
        likeliest, other = likeliest_and_drawn(editor, key, seen_by_editor)
        assert same(act(agent, jnp.int32(0), key, observation), likeliest)
        assert same(act(agent, jnp.int32(1), key, observation), other)
        assert same(act(agent, jnp.int32(2), key, observation), other)
        drawn.append(same(other, likeliest))
    assert not all(drawn)


def test_the_first_attempt_takes_the_likeliest_edit_and_the_others_draw_theirs(policy):
    check_attempts(EditAgent(policy), OBSERVATION, policy, OBSERVATION)


def test_a_predicting_agent_edits_towards_what_it_predicts_in_every_attempt(policy, mirroring):
    slots = jnp.full((2, SIDE, SIDE), -1, jnp.int8)
    shown = {"inputs": slots, "outputs": slots, "mask": jnp.zeros(2, jnp.bool_)}
    grid = OBSERVATION["working_grid"]
    observation = {
        "working_grid": grid, "input_grid": grid, "step_count": OBSERVATION["step_count"], "demonstrations": shown,
    }  # fmt: skip
    predicted = jnp.array([[2, 1, -1], [4, 3, -1], [-1, -1, -1]], jnp.int8)
    agent = EditAgent(policy, mirroring.predictor)
    check_attempts(agent, observation, policy, with_answer(observation, predicted))


def test_a_predicting_agent_plays_tests_whose_answers_it_never_sees(mirroring):
    result = evaluate(mirroring, MIRRORS, HIDDEN)
    assert result.score.solved == {"first": (True, True), "second": (True,), "no mirror": (False,)}
    wrong_cells = {"first": [4, 2], "second": [4], "no mirror": [2]}
    for row in result.rows:
        assert row.mean_steps == np.mean(wrong_cells[row.task_id]) + 1
        assert row.submitted == row.attempts
    with pytest.raises(ConfigValidationError, match="target"):
        evaluate(mirroring, MIRRORS, HIDDEN.with_fields(reveal_target=True))
    with pytest.raises(AgentMismatchError):
        evaluate(mirroring, MIRRORS, HIDDEN.with_fields(include_input=False))


def test_a_policy_that_is_shown_the_answer_repairs_any_grid(repairing):
    sizes = task_set(task("grow", ([[1]], [[2, 3], [4, 0]])), task("shrink", mirrored([5, 5, 1]), ([[1, 2]], [[9]])))
    result = evaluate(EditAgent(repairing), sizes, SHOWN, answers_visible=True)
    assert result.score.solved == {"grow": (True,), "shrink": (True, True)}
