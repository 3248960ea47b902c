"""Similarity, endings and rewards: every combination against the rules in plain Python, and whole submits."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.config import EnvironmentConfig, JaxArcConfig
from jaxarc.constants import NEXT_DEMO_PAIR, SUBMIT
from jaxarc.envs import BboxAction, arc_reset, arc_step
from jaxarc.envs.canvas import count_matches
from jaxarc.envs.transition import RewardInputs, compute_reward, decide_ending
from jaxarc.tasks import create_task
from jaxarc.testing import create_test_config

CELLS = [1, 2, 35, 36, 37, 62, 63, 64, 65, 66, 67, 68, 71, 72, 100, 143, 144, 145, 180, 323, 576, 899, 900]


counted = jax.jit(count_matches)


@pytest.mark.parametrize("cells", CELLS)
def test_matches_are_the_active_cells_of_equal_color(cells):
    rng = np.random.default_rng(cells)
    grid, target = rng.integers(-1, 3, (2, 6, cells), dtype=np.int8)
    grid[0] = target[0] = 9  # every cell counts
    grid[1] = target[1] = -1  # none does
    target[2] = grid[2]
    expected = ((grid == target) & (grid >= 0)).sum(axis=1)
    for found in (counted(grid, target), jax.vmap(counted)(grid, target)):
        assert found.dtype == jnp.int32
        np.testing.assert_array_equal(found, expected)
    for one, other, matches in zip(grid, target, expected, strict=True):  # without a batch
        assert int(counted(one, other)) == matches


BOTH = (False, True)
WEIGHTS = {
    "gamma": 0.5,
    "similarity_weight": 3.0,
    "step_penalty": -0.0625,
    "success_bonus": 16.0,
    "unsolved_submission_penalty": -2.0,
    "invalid_action_penalty": -0.25,
}


@pytest.mark.parametrize(("submitted", "all_solved"), list(itertools.product(BOTH, BOTH)))
@pytest.mark.parametrize("submissions", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("steps", [0, 1, 6, 7, 8])
def test_a_last_or_solving_submit_terminates_and_the_step_limit_truncates(submitted, all_solved, submissions, steps):
    rules = EnvironmentConfig(max_submissions=3, max_episode_steps=7)
    ending = decide_ending(jnp.bool_(submitted), jnp.bool_(all_solved), jnp.int32(submissions), jnp.int32(steps), rules)
    terminated = submitted and (all_solved or submissions >= 3)
    assert (bool(ending.terminated), bool(ending.truncated)) == (terminated, not terminated and steps >= 7)


def test_only_termination_ends_what_is_still_to_come():
    state, _ = arc_reset(jax.random.key(0), JaxArcConfig())
    endings = {"terminated": [True, False], "truncated": [False, True], "running": [False, False]}
    found = {name: dataclasses.replace(state, endings=jnp.array(flags)).discount for name, flags in endings.items()}
    assert found == {"terminated": 0.0, "truncated": 1.0, "running": 1.0}
    assert {discount.dtype for discount in found.values()} == {jnp.dtype("float32")}


def expected_reward(inputs, score_on_submit):
    hidden = inputs.is_hidden
    reward = WEIGHTS["step_penalty"]
    if not hidden:
        shaping = WEIGHTS["gamma"] * inputs.similarity_after - inputs.similarity_before
        reward += WEIGHTS["similarity_weight"] * shaping
    if not hidden or score_on_submit:
        reward += WEIGHTS["success_bonus"] * inputs.newly_solved
        reward += WEIGHTS["unsolved_submission_penalty"] * inputs.wrong_submission
    return reward + WEIGHTS["invalid_action_penalty"] * inputs.invalid


@pytest.mark.parametrize(("mode", "hidden"), [("train", False), ("test", True), ("trials", False), ("trials", True)])
@pytest.mark.parametrize("score_on_submit", BOTH)
def test_a_step_pays_what_happened_and_the_agent_may_know(mode, hidden, score_on_submit):
    config = JaxArcConfig().with_fields(mode=mode, score_on_submit=score_on_submit, **WEIGHTS)
    for newly_solved, wrong, invalid in itertools.product(BOTH, BOTH, BOTH):
        numbers = (jnp.float32(0.75), jnp.float32(0.5))
        inputs = RewardInputs(
            *numbers, jnp.bool_(newly_solved), jnp.bool_(wrong), jnp.bool_(invalid), jnp.bool_(hidden)
        )
        reward = compute_reward(inputs, config)
        plain = RewardInputs(0.75, 0.5, newly_solved, wrong, invalid, hidden)
        assert reward.dtype == jnp.float32
        assert float(reward) == expected_reward(plain, score_on_submit)


CANVAS = (2, 3)
FILL = 2  # the whole grid, which solves both pairs
PAIRS = [([[1, 1]], [[2, 2]]), ([[3, 3]], [[2, 2]])]
RULES = {"allow_demo_switching": True, "max_submissions": 9, "similarity_weight": 0.0, "gamma": 1.0}


def play(operations, **fields):
    """Reward and ending of each step, and the last state."""
    config = create_test_config(selection_format="bbox", grid_shape=CANVAS, **{**RULES, **fields})
    state, _ = arc_reset(jax.random.key(0), config, create_task(PAIRS, PAIRS, CANVAS))
    steps = []
    for operation in operations:
        state, _, reward, done, _ = arc_step(state, BboxAction(operation, 0, 0, 1, 2), config)
        steps.append((float(reward) - config.reward.step_penalty, bool(done)))
    rewards, ends = zip(*steps, strict=True)
    return rewards, ends, state, config


def test_a_pair_that_is_solved_pays_once():
    rewards, ends, state, config = play([FILL, SUBMIT, SUBMIT, NEXT_DEMO_PAIR, FILL, SUBMIT])
    bonus = config.reward.success_bonus
    assert rewards == pytest.approx([0, bonus, 0, 0, 0, bonus], abs=1e-5)
    assert ends == (False,) * 5 + (True,)
    assert bool(state.is_solved)


def test_without_a_history_nothing_is_recorded():
    with_one, without = (play([FILL, SUBMIT], history_enabled=kept) for kept in (True, False))
    assert with_one[:2] == without[:2]
    assert without[2].action_records is None
    assert with_one[2].action_history[:2, 4].tolist() == [FILL, SUBMIT]  # behind the corners of the box
