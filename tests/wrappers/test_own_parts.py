"""An observation and a reward of one's own, by one method each."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc.spaces import Box, Dict
from jaxarc.wrappers import AutoReset, EpisodeStatistics, ObservationWrapper, RewardWrapper


class Reds(ObservationWrapper):
    def observation(self, observation, state, params):
        return {"grid": observation, "reds": jnp.sum(state.working_grid == 2, dtype=jnp.int8), "half": jnp.float32(0.5)}


class Mirrored(ObservationWrapper):
    def observation(self, observation, state, params):
        return observation[::-1]


@dataclasses.dataclass(frozen=True)
class Sparse(RewardWrapper):
    bonus: float = 2.0
    name: str = dataclasses.field(default="sparse", metadata={"static": True})

    def reward(self, reward, info, before, after, params):
        earned = jnp.where(info["success"], self.bonus, 0.0)
        return earned + (after.step_count - before.step_count).astype(jnp.float32)


@pytest.fixture(scope="module")
def starter():
    return jaxarc.make("starter")


@pytest.mark.parametrize("kind", [Reds, Mirrored, Sparse])
def test_an_own_part_keeps_the_contract_of_environments(starter, kind):
    env, params = starter
    jaxarc.testing.check_environment(EpisodeStatistics(AutoReset(kind(env))), params)


def test_a_reward_of_ones_own_is_earned_until_the_end_and_no_longer(starter):
    env, params = starter
    own = Sparse(env, bonus=jnp.float32(3))
    state, _ = own.reset(jax.random.key(0), params)
    state, _, reward, *_ = own.step(state, 0, params)
    assert float(reward) == 1
    state, _, reward, done, _ = own.step(state, own.num_actions - 1, params)
    assert (bool(done), float(reward)) == (True, 1)
    assert float(own.step(state, 0, params)[2]) == 0


def test_what_is_observed_has_the_space_of_what_the_method_returns(starter):
    env, params = starter
    space = Reds(env).observation_space(params)
    assert isinstance(space, Dict)
    assert space.entries["reds"] == Box(-128, 127, (), jnp.int8)
    assert np.isfinite(space.sample(jax.random.key(0))["half"])
    assert Mirrored(env).observation_space(params) == env.observation_space(params)
    state, _ = env.reset(jax.random.key(0), params)
    shown = AutoReset(Mirrored(env)).step(state, 0, params)[-1]["final_observation"]
    np.testing.assert_array_equal(shown, env.step(state, 0, params)[1][::-1])


@pytest.mark.parametrize("kind", [Reds, Sparse])
def test_auto_reset_goes_around_an_own_part(starter, kind):
    with pytest.raises(ValueError, match=f"{kind.__name__}.* put AutoReset around it"):
        kind(EpisodeStatistics(AutoReset(starter[0])))
