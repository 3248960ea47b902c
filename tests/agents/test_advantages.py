import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.agents.ppo import bootstrap_values, estimate_advantages

GAMMA, LAMBDA = 0.9, 0.8
STEPS, ENVS = 23, 7


def slow_advantages(rewards, values, last_values, final_values, terminated, truncated):
    """The definition, episode by episode: the discounted sum of the errors up to the end of the episode."""
    advantages = np.zeros_like(rewards)
    for env in range(rewards.shape[1]):
        for start in range(rewards.shape[0]):
            weight = 1.0
            for step in range(start, rewards.shape[0]):
                if terminated[step, env]:
                    following = 0.0
                elif truncated[step, env]:
                    following = final_values[step, env]
                elif step + 1 < rewards.shape[0]:
                    following = values[step + 1, env]
                else:
                    following = last_values[env]
                error = rewards[step, env] + GAMMA * following - values[step, env]
                advantages[start, env] += weight * error
                weight *= GAMMA * LAMBDA
                if terminated[step, env] or truncated[step, env]:
                    break
    return advantages


def experience(seed):
    random = np.random.default_rng(seed)
    numbers = [random.normal(size=(STEPS, ENVS)).astype(np.float32) for _ in range(3)]
    rewards, values, final_values = numbers
    ending = random.choice(3, size=(STEPS, ENVS), p=[0.7, 0.15, 0.15])
    return rewards, values, random.normal(size=ENVS).astype(np.float32), final_values, ending == 1, ending == 2


def fast_advantages(rewards, values, last_values, final_values, terminated, truncated):
    arrays = [jnp.asarray(x) for x in (rewards, values, last_values, final_values, terminated, truncated)]
    following = bootstrap_values(arrays[1], arrays[2], arrays[3], arrays[4], arrays[5])
    return estimate_advantages(arrays[0], arrays[1], following, arrays[4] | arrays[5], GAMMA, LAMBDA)


@pytest.mark.parametrize("seed", range(3))
def test_advantages_agree_with_the_definition_including_truncation(seed):
    given = experience(seed)
    assert given[4].any()
    assert given[5].any()
    np.testing.assert_allclose(fast_advantages(*given), slow_advantages(*given), rtol=1e-4, atol=1e-5)


def test_what_follows_an_ending_does_not_reach_back():
    given = list(experience(0))
    given[4][3] = True
    before = fast_advantages(*given)
    given[0][4:] += 100.0
    np.testing.assert_array_equal(fast_advantages(*given)[:4], before[:4])
