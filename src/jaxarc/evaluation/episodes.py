"""Many episodes side by side on the device, each on one given pair until it ends."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32, Key, UInt32

from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import MaskAction, StructuredAction
from jaxarc.evaluation.agent import Agent, EpisodeSpec, Memory, require_agent_fits
from jaxarc.tasks.augmentation import restore_grid

_ENV: Final = ArcEnvironment()


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


_STEPS: Final = 32  # that one call plays; episodes of any length need only this one program


class EpisodeTrajectory(NamedTuple):
    """One episode on the host. Grids have the canvas of the environment; whatever came after the end is left out."""

    task_index: int
    pair_index: int
    actions: list[tuple[int, ...]]  # as :data:`jaxarc.experts.expert.Action`
    grids: Int8[np.ndarray, "S+1 H W"]  # the first is what the episode started from
    clipboards: Int8[np.ndarray, "S+1 H W"]  # -1 where nothing is held
    target: Int8[np.ndarray, "H W"]
    rewards: Float32[np.ndarray, " S"]
    similarities: Float32[np.ndarray, " S+1"]  # 0 .. 1, with the target, whether or not the agent is told
    invalid: Bool[np.ndarray, " S"]  # actions that the environment refused
    is_solved: bool


class _Playing(NamedTuple):
    """Episodes while they are played; every leaf has a leading axis B."""

    states: ArcEnvState
    memories: Memory
    keys: Key[Array, " B"]  # of the steps


class _Look(NamedTuple):
    """What is to be seen of a state."""

    grid: Int8[Array | np.ndarray, "B H W"]
    clipboard: Int8[Array | np.ndarray, "B H W"]
    similarity: Float32[Array | np.ndarray, " B"]
    is_solved: Bool[Array | np.ndarray, " B"]


class _Step(NamedTuple):
    """What happened in a step, and what is to be seen after it."""

    action: StructuredAction
    reward: Float32[Array | np.ndarray, " B"]
    invalid: Bool[Array | np.ndarray, " B"]
    is_played: Bool[Array | np.ndarray, " B"]  # False once the episode has ended
    after: _Look


def record_episodes(
    agent: Agent,
    params: EnvParams,
    places: EpisodeSpec,
    key: Key[Array, ""],
    batch_size: int = 64,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    lengths: Sequence[int] | None = None,
) -> Iterator[EpisodeTrajectory]:
    """Play one episode at each place and yield them in this order; they are those of :func:`play_episodes`.

    Args:
        agent: acts in every episode.
        params: tasks and rules; the mode says whether ``pair_index`` counts tests or demonstrations.
        places: arrays of one length.
        key: of the whole showing.
        batch_size: episodes side by side; memory holds 32 steps of each.
        on_progress: called with episodes done and episodes in all, after each batch.
        lengths: where a film is cut, in actions, one for each episode; by default where the episode ends.

    Raises:
        AgentMismatchError: the agent needs other observations or takes other actions.
        ValueError: there are not as many lengths as episodes.
    """
    require_agent_fits(agent, params)
    total = len(places.task_index)
    if lengths is not None and len(lengths) != total:
        raise ValueError(f"{total} episodes have a length each, got {len(lengths)} lengths; bring one for each")
    longest = np.full(total, np.iinfo(np.int32).max) if lengths is None else np.asarray(lengths)
    size = min(batch_size, total)
    words = jax.random.key_data(key)
    for first in range(0, total, size):
        chosen = np.minimum(np.arange(first, first + size), total - 1)  # the last batch repeats the last episode
        here = jax.tree.map(lambda part, chosen=chosen: np.asarray(part)[chosen], places)
        for row, film in enumerate(_record_batch(agent, params, words, here, longest[chosen])):
            if first + row < total:
                yield film
        on_progress(min(first + size, total), total)


def _record_batch(
    agent: Agent, params: EnvParams, words: Array, places: EpisodeSpec, longest: np.ndarray
) -> Iterator[EpisodeTrajectory]:
    playing, start = _start(agent, params, words, EpisodeSpec(*(jnp.asarray(part, jnp.int32) for part in places)))
    parts = []
    while not bool(playing.states.done.all()):
        playing, steps = _play(agent, params, playing)
        parts.append(jax.device_get(steps))
    start, targets = jax.device_get((start, playing.states.target_grid))
    steps = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)  # [S, B, ...]
    for row in range(len(targets)):
        count = int(min(steps.is_played[:, row].sum(), longest[row]))
        own: _Step = jax.tree.map(lambda leaf, row=row, count=count: leaf[:count, row], steps)
        yield EpisodeTrajectory(
            task_index=int(places.task_index[row]),
            pair_index=int(places.pair_index[row]),
            actions=_numbers(own.action),
            grids=_with_first(start.grid[row], own.after.grid),
            clipboards=_with_first(start.clipboard[row], own.after.clipboard),
            target=targets[row],
            rewards=np.asarray(own.reward),
            similarities=_with_first(start.similarity[row], own.after.similarity),
            invalid=np.asarray(own.invalid),
            is_solved=bool(_with_first(start.is_solved[row], own.after.is_solved)[-1]),
        )


@eqx.filter_jit
def _start(agent: Agent, params: EnvParams, words: Array, places: EpisodeSpec) -> tuple[_Playing, _Look]:
    keys = jax.vmap(episode_keys, (None, 0))(jax.random.wrap_key_data(words), places)
    reset = lambda key, place: _ENV.reset(key, params, place.task_index, place.pair_index)
    states, observations = jax.vmap(reset)(keys[:, 0], places)
    memories = jax.tree.map(jnp.asarray, jax.vmap(agent.start)(keys[:, 1], places, observations))
    return _Playing(states, memories, keys[:, 2]), _look(states)


@eqx.filter_jit
def _play(agent: Agent, params: EnvParams, playing: _Playing) -> tuple[_Playing, _Step]:
    def act(state: ArcEnvState, memory: Memory, key: Key[Array, ""]) -> tuple[ArcEnvState, Memory, tuple]:
        action, memory = agent.act(jax.random.fold_in(key, state.step_count), _ENV.observe(state, params), memory)
        after, _, reward, _, info = _ENV.step(state, action, params)
        return after, memory, (action, reward, info["invalid_action"], ~state.done)

    def play_on(playing: _Playing, _: None) -> tuple[_Playing, _Step]:
        states, memories, (action, reward, invalid, is_played) = jax.vmap(act)(*playing)
        return _Playing(states, memories, playing.keys), _Step(action, reward, invalid, is_played, _look(states))

    return jax.lax.scan(play_on, playing, None, _STEPS)


def _look(states: ArcEnvState) -> _Look:
    return _Look(states.working_grid, states.clipboard, states.similarity_score, states.is_solved)


def _with_first(first: Array | np.ndarray, others: Array | np.ndarray) -> np.ndarray:
    return np.concatenate([np.asarray(first)[None], np.asarray(others)])


def _numbers(actions: StructuredAction) -> list[tuple[int, ...]]:
    """Write actions [S] as numbers: the operation, then the selection."""
    if isinstance(actions, MaskAction):
        cells = (np.argwhere(mask).ravel().tolist() for mask in np.asarray(actions.selection))
        return [(int(operation), *numbers) for operation, numbers in zip(actions.operation, cells, strict=True)]
    return [tuple(row) for row in np.stack(jax.tree.leaves(actions), axis=1).tolist()]
