"""Let a policy act in a batch of environments, and keep what happened."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from jaxarc.agents import EditPolicy, Trajectories
from jaxarc.envs.params import EnvParams
from jaxarc.parallel.shards import UNSHARDED, DataShard
from jaxarc.types import Observation, PRNGKey
from jaxarc.wrappers import EpisodeStatistics
from jaxarc.wrappers.episode_statistics import StatisticsState


class PlayedSteps(NamedTuple):
    """Which task each step belongs to, and how it ended where it ended."""

    task_index: Int32[Array, "S B"]
    ended: Bool[Array, "S B"]
    solved: Bool[Array, "S B"]  # whether the task is solved so far


class EpisodeCounts(NamedTuple):
    """Sums over the episodes that ended."""

    ended: Int32[Array, ""]
    solved: Int32[Array, ""]
    return_sum: Float32[Array, ""]
    length_sum: Int32[Array, ""]


def collect(
    policy: EditPolicy,
    env: EpisodeStatistics,
    params: EnvParams,
    states: StatisticsState,
    key: PRNGKey,
    num_steps: int,
    shard: DataShard = UNSHARDED,
) -> tuple[StatisticsState, Trajectories, PlayedSteps, EpisodeCounts]:
    """Take ``num_steps`` steps in each environment with edits drawn from the policy.

    Args:
        policy: what acts.
        env: episode statistics around an auto-reset.
        params: tasks and rules.
        states: of B environments.
        key: for the draws.
        num_steps: S, static.
        shard: of the environments that these are; the counts are of these alone.
    """
    take_steps = jax.vmap(env.step, (0, 0, None))

    def step(states: StatisticsState, key_edit: PRNGKey) -> tuple[StatisticsState, tuple]:
        observation = env.observe(states, params)
        output = policy.sample(key_edit, observation, shard)
        states, _, reward, done, info = take_steps(states, policy.to_action(output.edit), params)
        final_value = _value_where_needed(policy, info["final_observation"], info["truncated"])
        counts = EpisodeCounts(
            ended=done.sum(dtype=jnp.int32),
            solved=(done & info["success"]).sum(dtype=jnp.int32),
            return_sum=jnp.where(done, info["episode_return"], jnp.float32(0)).sum(),
            length_sum=jnp.where(done, info["episode_length"], jnp.int32(0)).sum(dtype=jnp.int32),
        )
        next_grid = None if policy.auxiliary is None else info["final_observation"]["working_grid"]
        happened = (observation, output, reward, info["terminated"], info["truncated"], final_value, next_grid)
        return states, (happened, PlayedSteps(info["task_index"], done, info["success"]), counts)

    states, (happened, played, counts) = jax.lax.scan(step, states, jax.random.split(key, num_steps))
    observation, output, reward, terminated, truncated, final_value, next_grid = happened
    trajectories = Trajectories(
        observation=observation,
        edit=output.edit,
        log_prob=output.log_prob,
        value=output.value,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        final_value=final_value,
        last_value=policy.value(env.observe(states, params)),
        next_grid=next_grid,
    )
    return states, trajectories, played, jax.tree.map(lambda x: x.sum(axis=0, dtype=x.dtype), counts)


def _value_where_needed(
    policy: EditPolicy, observation: Observation, needed: Bool[Array, " B"]
) -> Float32[Array, " B"]:
    """Value the observations if any is needed: truncations are rare, and the network is most of a step's cost."""
    return jax.lax.cond(
        jnp.any(needed),
        lambda: policy.value(observation),
        lambda: jnp.zeros(needed.shape, jnp.float32),
    )
