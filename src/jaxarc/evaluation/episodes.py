"""Play many episodes side by side on the device, each on a given pair until it ends, and record them if asked to.

:func:`play_episodes` returns how each episode ended, for scores. :func:`record_episodes` plays the same episodes and
returns every step of them, for pages and pictures.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Int8, Int32, Key, PyTree, UInt32

from jaxarc.device_arrays import device_array
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction, action_numbers
from jaxarc.evaluation.agent import Agent, EpisodeSpec, Memory, as_structured, require_agent_fits
from jaxarc.interface import Environment
from jaxarc.parallel import NotEnoughMemoryError, available_memory, program_memory, require_memory
from jaxarc.tasks.augmentation import restore_grid
from jaxarc.types import Observation
from jaxarc.unroll import Transition, actor_step

_ENV: Final = ArcEnvironment()
_STEPS: Final = 32  # recorded in one call; episodes of any length need only this one program


class Episodes(NamedTuple):
    """The ends of B episodes, in the order of their specs; on the host once all of them have ended."""

    grids: Int8[Array | np.ndarray, "B H W"]  # submitted, or the last one when time ran out; augmentation undone
    submitted: Bool[Array | np.ndarray, " B"]  # whether the agent submitted it
    steps: Int32[Array | np.ndarray, " B"]  # the submit included
    best_similarity: Float32[Array | np.ndarray, " B"]  # 0 .. 1, of any grid of the episode; agents do not see it


class EpisodeTrajectory(NamedTuple):
    """Every step of one episode, on the host; grids have the size of the canvas, steps after the end are left out."""

    task_index: int
    pair_index: int
    actions: list[tuple[int, ...]]  # as :data:`jaxarc.experts.expert.Action`
    grids: Int8[np.ndarray, "S+1 H W"]  # the first is the one that the episode starts from
    clipboards: Int8[np.ndarray, "S+1 H W"]  # -1 where the clipboard is empty
    target: Int8[np.ndarray, "H W"]
    rewards: Float32[np.ndarray, " S"]
    similarities: Float32[np.ndarray, " S+1"]  # 0 .. 1, with the target, whether or not the agent sees it
    invalid: Bool[np.ndarray, " S"]  # actions that the environment refused
    is_solved: bool


class EpisodeInfo(NamedTuple):
    """The pair that an episode plays, and its player, in words for people."""

    task_id: str
    demonstrations: Sequence[tuple[np.ndarray, np.ndarray]]  # input, output of each
    title: str  # of the task; may be empty
    pair: str  # such as "test 0"
    player: str
    is_learned: bool = False  # whether the player learned from this pair


@dataclass(frozen=True)
class EpisodeBatch:
    """Episodes that one agent plays, all by the same rules, each the first attempt at the first pair of a task."""

    agent: Agent
    params: EnvParams
    infos: Sequence[EpisodeInfo]  # E of them
    task_indices: Sequence[int]  # of each
    lengths: Sequence[int] | None = None  # actions of each, where an episode is not played to its end
    env: Environment[Any, Any] = _ENV  # with a reward of one's own

    def only(self, chosen: Sequence[int]) -> Self:
        """Leave out all other episodes; these are played to their end."""
        infos, indices = ([of_each[i] for i in chosen] for of_each in (self.infos, self.task_indices))
        return replace(self, infos=infos, task_indices=indices, lengths=None)

    def play(self) -> Iterator[tuple[EpisodeInfo, EpisodeTrajectory]]:
        """Play and record each."""
        indices = np.array(self.task_indices, np.int32)
        specs = EpisodeSpec(*np.stack([indices, np.zeros_like(indices), np.zeros_like(indices)]))
        key = jax.random.key(0)
        played = record_episodes(self.agent, self.params, specs, key, lengths=self.lengths, env=self.env)
        yield from zip(self.infos, played, strict=True)


class _Running(eqx.Module):
    """Episodes in progress; every array has a leading axis B."""

    states: ArcEnvState
    memories: Memory
    keys: Key[Array, " B"]  # of the steps
    best_similarity: Float32[Array, " B"]


class _View(NamedTuple):
    """The part of a state that a record keeps."""

    grid: Int8[Array | np.ndarray, "B H W"]
    clipboard: Int8[Array | np.ndarray, "B H W"]
    similarity: Float32[Array | np.ndarray, " B"]
    is_solved: Bool[Array | np.ndarray, " B"]


class _RecordedStep(NamedTuple):
    """The part of a step that a record keeps."""

    action: StructuredAction
    reward: Float32[Array | np.ndarray, " B"]
    invalid: Bool[Array | np.ndarray, " B"]
    is_played: Bool[Array | np.ndarray, " B"]  # false once the episode has ended
    after: _View


def play_episodes(
    agent: Agent,
    params: EnvParams,
    specs: EpisodeSpec,
    key: Key[Array, ""],
    batch_size: int,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    places: Int[np.ndarray, " T"] | None = None,
) -> Episodes:
    """Play the episode of each spec, a batch of them at a time, all with one compiled program.

    An episode depends on its own spec and the key alone, not on the batch it is in; see :func:`episode_keys`. So the
    batches are smaller where those of ``batch_size`` do not fit in memory; then a network may round differently.

    Args:
        agent: acts in every episode.
        params: tasks and rules; the mode says whether ``pair_index`` counts tests or demonstrations.
        specs: arrays of one length.
        key: of the whole evaluation.
        batch_size: episodes side by side at most; the memory that is needed grows with it.
        on_progress: called with episodes done and episodes in all, after each batch.
        places: of the tasks of ``params`` in the task set that they are a part of, by which keys and agent know them.

    Raises:
        AgentMismatchError: the agent needs other observations or takes other actions.
        NotEnoughMemoryError: not even one episode fits in memory; nothing has been played.
    """
    total = len(specs.task_index)
    shared = agent, params, jax.random.key_data(key), None if places is None else jnp.asarray(places, jnp.int32)
    batch_size, play = _program_that_fits(shared, specs, min(batch_size, total))
    # Every batch has the same size, so one program plays all. The last one repeats its last episode, and the repeats
    # are cut off after the batches are joined.
    batches = []
    for first, chosen in _batches(total, batch_size):
        batches.append(jax.device_get(play(_select(specs, chosen))))
        on_progress(min(first + len(chosen), total), total)
    return Episodes(*(np.concatenate(parts)[:total] for parts in zip(*batches, strict=True)))


def record_episodes(
    agent: Agent,
    params: EnvParams,
    specs: EpisodeSpec,
    key: Key[Array, ""],
    batch_size: int = 64,
    lengths: Sequence[int] | None = None,
    env: Environment[Any, Any] = _ENV,
) -> Iterator[EpisodeTrajectory]:
    """Play the episodes of :func:`play_episodes` and yield every step of them, in the order of the specs.

    Args:
        agent: acts in every episode.
        params: tasks and rules; the mode says whether ``pair_index`` counts tests or demonstrations.
        specs: arrays of one length.
        key: of all episodes.
        batch_size: episodes side by side; the device holds 32 steps of each.
        lengths: number of actions to keep of each episode; by default all of them.
        env: with a reward of one's own; by default that of the rules.

    Raises:
        AgentMismatchError: the agent needs other observations or takes other actions.
        ValueError: there are not as many lengths as episodes.
    """
    require_agent_fits(agent, params)
    total = len(specs.task_index)
    if lengths is not None and len(lengths) != total:
        raise ValueError(f"{total} episodes have a length each, got {len(lengths)} lengths; bring one for each")
    longest = np.full(total, np.iinfo(np.int32).max) if lengths is None else np.asarray(lengths)
    key_data = jax.random.key_data(key)
    for first, chosen in _batches(total, batch_size):
        recorded = _record_batch(env, agent, params, key_data, _select(specs, chosen), longest[chosen])
        for row, trajectory in enumerate(recorded):
            if first + row < total:
                yield trajectory


def episode_keys(key: Key[Array, ""], spec: EpisodeSpec) -> Key[Array, " 3"]:
    """Derive the keys of one episode, for its reset, its memory and its steps, from the key of the whole evaluation.

    The key is folded with task, pair and attempt and split in three; the third is folded with the step.
    """
    # Task, pair and attempt: the key says nothing about batches, so an episode is the same in a batch of any size.
    for index in spec:
        key = jax.random.fold_in(key, index)
    return jax.random.split(key, 3)


def batch_of(specs: EpisodeSpec, number: int, batch_size: int) -> EpisodeSpec:
    """Return the batch of this number of those that :func:`play_episodes` makes; the last one repeats its last episode.

    As networks round differently in batches of another size, this is how several processes play with the same bits.
    """
    _, chosen = next(itertools.islice(_batches(len(specs.task_index), batch_size), number, None))
    return _select(specs, chosen)


def _batches(total: int, batch_size: int) -> Iterator[tuple[int, Int32[np.ndarray, " B"]]]:
    """Cut episodes into batches of one size: five in batches of two are 0 1, 2 3, 4 4.

    Yields:
        Number of the first episode, and the numbers of all of them; the last batch repeats the last episode.
    """
    size = min(batch_size, total)
    for first in range(0, total, size):
        yield first, np.minimum(np.arange(first, first + size, dtype=np.int32), total - 1)


def _program_that_fits(
    shared: tuple[Agent, EnvParams, UInt32[Array, " words"], Int32[Array, " T"] | None], specs: EpisodeSpec, size: int
) -> tuple[int, Callable[[EpisodeSpec], Episodes]]:
    """Return the size of a batch, or a smaller one whose program fits in memory, and the program that plays it.

    Raises:
        AgentMismatchError, NotEnoughMemoryError: see :func:`play_episodes`.
    """
    require_agent_fits(*shared[:2])
    free = available_memory()
    while True:
        chosen = _select(specs, np.resize(np.arange(len(specs.task_index), dtype=np.int32), size))
        play: Any = _play_batch  # its type does not say that it can be lowered
        memory = program_memory(play.lower(*shared, chosen).compile().compiled)
        try:
            require_memory(size, memory, free)
        except NotEnoughMemoryError as error:
            if not error.fitting_envs:
                raise
            size = error.fitting_envs
        else:
            return size, functools.partial(_play_batch, *shared)


def _select(specs: EpisodeSpec, chosen: Int32[np.ndarray, " B"]) -> EpisodeSpec:
    return EpisodeSpec(*(jnp.asarray(np.asarray(part)[chosen], jnp.int32) for part in specs))


@eqx.filter_jit
def _start(
    agent: Agent,
    params: EnvParams,
    key_data: UInt32[Array, " words"],
    places: Int32[Array, " T"] | None,
    specs: EpisodeSpec,
) -> _Running:
    # Task 1 of a canvas may be task 7 of the whole set: keys and agent know it as task 7.
    named = specs if places is None else specs._replace(task_index=places[specs.task_index])
    # [B, 3]: for the reset, for the agent's memory, and for its steps.
    keys = jax.vmap(episode_keys, (None, 0))(jax.random.wrap_key_data(key_data), named)
    reset = lambda key, spec: _ENV.reset(key, params, spec.task_index, spec.pair_index)
    states, observations = jax.vmap(reset)(keys[:, 0], specs)
    memories = jax.tree.map(device_array, jax.vmap(agent.start)(keys[:, 1], named, observations))
    return _Running(states, memories, keys[:, 2], states.similarity_score)


def _step(
    agent: Agent, params: EnvParams, running: _Running, env: Environment[Any, Any] = _ENV
) -> tuple[_Running, Transition[ArcEnvState]]:
    def act(
        keys: Key[Array, " B"], observation: Observation, states: ArcEnvState
    ) -> tuple[StructuredAction, PyTree[Array]]:
        # The key of a step is that of the episode, folded with the number of the step;
        # so nothing has to be carried along.
        keys = jax.vmap(jax.random.fold_in)(keys, states.step_count)
        action, memories = jax.vmap(agent.act)(keys, observation, running.memories)
        return as_structured(action, params), memories

    states, taken = actor_step(env, params, act, running.states, running.keys)
    # Kept apart from the state, since an agent may pass the answer and then leave it again.
    best = jnp.maximum(running.best_similarity, states.similarity_score)
    return _Running(states, taken.extras, running.keys, best), taken


@eqx.filter_jit
def _play_batch(
    agent: Agent,
    params: EnvParams,
    key_data: UInt32[Array, " words"],
    places: Int32[Array, " T"] | None,
    specs: EpisodeSpec,
) -> Episodes:
    """Play until the last episode has ended; those that ended before stay as they are."""
    ended = jax.lax.while_loop(
        lambda running: jnp.any(~running.states.done),
        lambda running: _step(agent, params, running)[0],
        _start(agent, params, key_data, places, specs),
    )
    states = ended.states
    grids = states.working_grid
    # A submission is about the task as it is in the file: turned and recolored grids are turned back.
    if states.augmentation is not None:
        grids = jax.vmap(restore_grid)(grids, states.augmentation)
    return Episodes(grids, states.terminated, states.step_count, ended.best_similarity)


def _record_batch(
    env: Environment[Any, Any],
    agent: Agent,
    params: EnvParams,
    key_data: UInt32[Array, " words"],
    specs: EpisodeSpec,
    longest: Int[np.ndarray, " B"],
) -> Iterator[EpisodeTrajectory]:
    """Play 32 steps at a time and move their records to the host, until the last episode has ended."""
    running = _start(agent, params, key_data, None, specs)
    start = jax.device_get(_view(running.states))
    # Only 32 steps are on the device at a time. One look at ``done`` after each 32 decides whether to go on.
    parts = []
    while not bool(running.states.done.all()):
        running, steps = _record_steps(env, agent, params, running)
        parts.append(jax.device_get(steps))
    steps = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)  # [S, B, ...]
    targets = jax.device_get(running.states.target_grid)
    for row, target in enumerate(targets):
        # Steps after the end repeat the last state; only those that were played are kept: true true false gives 2.
        count = int(min(steps.is_played[:, row].sum(), longest[row]))
        own: _RecordedStep = jax.tree.map(lambda leaf, row=row, count=count: leaf[:count, row], steps)
        yield EpisodeTrajectory(
            task_index=int(specs.task_index[row]),
            pair_index=int(specs.pair_index[row]),
            actions=action_numbers(own.action),
            grids=_prepend(start.grid[row], own.after.grid),
            clipboards=_prepend(start.clipboard[row], own.after.clipboard),
            target=target,
            rewards=np.asarray(own.reward),
            similarities=_prepend(start.similarity[row], own.after.similarity),
            invalid=np.asarray(own.invalid),
            is_solved=bool(_prepend(start.is_solved[row], own.after.is_solved)[-1]),
        )


@eqx.filter_jit
def _record_steps(
    env: Environment[Any, Any], agent: Agent, params: EnvParams, running: _Running
) -> tuple[_Running, _RecordedStep]:
    def step(running: _Running, _: None) -> tuple[_Running, _RecordedStep]:
        after, taken = _step(agent, params, running, env)
        is_played = ~running.states.done
        invalid = taken.info["invalid_action"]
        return after, _RecordedStep(taken.action, taken.reward, invalid, is_played, _view(after.states))

    return jax.lax.scan(step, running, None, _STEPS)


def _view(states: ArcEnvState) -> _View:
    return _View(states.working_grid, states.clipboard, states.similarity_score, states.is_solved)


def _prepend(first: Array | np.ndarray, others: Array | np.ndarray) -> np.ndarray:
    return np.concatenate([np.asarray(first)[None], np.asarray(others)])
