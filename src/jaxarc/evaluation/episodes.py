"""Many episodes side by side on the device, each on one given pair until it ends."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32, Key, UInt32

from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.evaluation.agent import Agent, EpisodeSpec, Memory
from jaxarc.tasks.augmentation import restore_grid

_ENV = ArcEnvironment()


class Episodes(NamedTuple):
    """How episodes ended, in the order of the places that were played; on the host once all of them have."""

    grids: Int8[Array | np.ndarray, "B H W"]  # handed in, or at hand when time ran out; turned back if augmented
    submitted: Bool[Array | np.ndarray, " B"]  # whether the agent handed it in
    steps: Int32[Array | np.ndarray, " B"]  # the submit included
    best_similarity: Float32[Array | np.ndarray, " B"]  # 0 .. 1, of any grid of the episode; agents do not see it


class _Running(eqx.Module):
    """Episodes while they are played."""

    states: ArcEnvState
    memories: Memory
    best_similarity: Float32[Array, " B"]


def play_episodes(
    agent: Agent,
    params: EnvParams,
    places: EpisodeSpec,
    key: Key[Array, ""],
    batch_size: int,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Episodes:
    """Play one episode at each place, a batch of them at a time, all with one compiled program.

    An episode depends on its own place and the key alone, not on the batch it is in: its key is ``key`` folded with
    task, pair and attempt, and split in three, for the reset, the memory, and the steps (folded with the step).

    Args:
        agent: acts in every episode.
        params: tasks and rules; the mode says whether ``pair_index`` counts tests or demonstrations.
        places: arrays of one length.
        key: of the whole evaluation.
        batch_size: episodes side by side; the memory that is needed grows with it.
        on_progress: called with episodes done and episodes in all, after each batch.
    """
    total = len(places.task_index)
    size = min(batch_size, total)
    words, batches = jax.random.key_data(key), []
    for first in range(0, total, size):
        chosen = np.minimum(np.arange(first, first + size), total - 1)  # the last batch repeats the last episode
        here = EpisodeSpec(*(jnp.asarray(part[chosen], jnp.int32) for part in places))
        batches.append(jax.device_get(_play_batch(agent, params, words, here)))
        on_progress(min(first + size, total), total)
    return Episodes(*(np.concatenate(parts)[:total] for parts in zip(*batches, strict=True)))


@eqx.filter_jit
def _play_batch(agent: Agent, params: EnvParams, words: UInt32[Array, " words"], places: EpisodeSpec) -> Episodes:
    keys = jax.vmap(episode_keys, (None, 0))(jax.random.wrap_key_data(words), places)

    def act(state: ArcEnvState, memory: Memory, key: Key[Array, ""]) -> tuple[ArcEnvState, Memory]:
        action, memory = agent.act(jax.random.fold_in(key, state.step_count), _ENV.observe(state, params), memory)
        return _ENV.step(state, action, params)[0], memory

    def play_on(running: _Running) -> _Running:
        states, memories = jax.vmap(act)(running.states, running.memories, keys[:, 2])
        best = jnp.maximum(running.best_similarity, states.similarity_score)
        return _Running(states, memories, best)

    reset = lambda key, place: _ENV.reset(key, params, place.task_index, place.pair_index)
    states, observations = jax.vmap(reset)(keys[:, 0], places)
    running = _Running(states, jax.vmap(agent.start)(keys[:, 1], places, observations), states.similarity_score)
    ended = jax.lax.while_loop(lambda running: jnp.any(~running.states.done), play_on, running)
    states = ended.states
    grids = states.working_grid
    if states.augmentation is not None:
        grids = jax.vmap(restore_grid)(grids, states.augmentation)
    return Episodes(grids, states.terminated, states.step_count, ended.best_similarity)


def episode_keys(key: Key[Array, ""], place: EpisodeSpec) -> Key[Array, " 3"]:
    """Derive the keys of one episode, for its reset, its memory and its steps, from that of the whole evaluation."""
    for index in place:
        key = jax.random.fold_in(key, index)
    return jax.random.split(key, 3)
