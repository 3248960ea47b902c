"""What ends an episode and what a step pays: every combination, against the rules in plain Python."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import pytest

from jaxarc.config import EnvironmentConfig, JaxArcConfig
from jaxarc.envs.functional import arc_reset
from jaxarc.envs.transition import RewardInputs, compute_reward, decide_ending

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
