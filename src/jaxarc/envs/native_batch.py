"""What the C++ library does for a batch of environments in one call: a step, the start of next episodes, or both.

It takes the arrays of states and params in the order of their fields; see :mod:`jaxarc.native`.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32

from jaxarc.config import JaxArcConfig
from jaxarc.envs.observations import shows_only_the_grid
from jaxarc.envs.pairs import PairSource, PairTable, stack_tables
from jaxarc.envs.params import EnvParams, declared_params
from jaxarc.envs.state import ArcEnvState, declared_state
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.primitives import choose_executor, native_call, with_batch_rule
from jaxarc.prng import from_key_data, splits_by_counter
from jaxarc.tasks.buffer import TaskBuffer, cumulative_weights

_MODES: Final = ("train", "test", "trials")  # as step.h numbers them
_FORMATS: Final = ("point", "bbox", "mask")  # as library.cc numbers them
_OF_TASKS: Final = ("augmentation", "task_data", "pairs", "demonstrations")  # fields of a state of changed tasks
_LEFT_ALONE: Final = ("key", *_OF_TASKS)  # by a step
_GRID, _COUNTS, _SIMILARITY = (0, 5, 6)  # places among the arrays of a state

StepInXla = Callable[[ArcEnvState, StructuredAction, PairSource, JaxArcConfig], tuple[ArcEnvState, "StepFacts"]]
ResetBatch = Callable[[bool, ArcEnvState, Bool[Array, " B"], EnvParams], ArcEnvState]  # in front: in blocks of rows
StepAndReset = Callable[[ArcEnvState, StructuredAction, EnvParams], "SteppedAndReset"]  # of a batch


class StepFacts(NamedTuple):
    """What the reward of a step depends on, besides the similarities, in the order of the bits of step.h."""

    running: Bool[Array, "*B"]  # the episode had not ended before the step
    newly_solved: Bool[Array, "*B"]
    wrong_submission: Bool[Array, "*B"]
    invalid: Bool[Array, "*B"]


class SteppedAndReset(NamedTuple):
    """A step, and the state after the next episode began where one ended."""

    state: ArcEnvState
    facts: StepFacts
    endings: Bool[Array, "*B 2"]  # of the step, as the next two are
    counts: Int32[Array, "*B 5"]
    similarity: Float32[Array, "*B"]
    similarity_before: Float32[Array, "*B"]
    next_grid: Int8[Array, "*B HW"]  # a copy of that of the state
    grid: Int8[Array, "*B HW"]  # as the step left it


def step_natively(
    state: ArcEnvState, action: StructuredAction, source: PairSource, config: JaxArcConfig, in_xla: StepInXla
) -> tuple[ArcEnvState, StepFacts]:
    """Take a step but for its reward; under ``jax.vmap``, however nested, one call serves all environments.

    Args:
        state: of one environment.
        action: as it is; the library checks it.
        source: the pairs of the state's task.
        config: the one that the state was started with.
        in_xla: does the same.
    """
    action.rules(config)  # raises for an action of another format
    place = (source.first_row, source.count, source.order, source.colors, source.num_open)
    step = _step_of(config, source.hides_all, in_xla)
    after, bits = step((_bare(state), action, place), source.table)
    held = {name: getattr(state, name) for name in _LEFT_ALONE}
    return dataclasses.replace(after, **held), _facts(bits)


def _bare(state: ArcEnvState) -> ArcEnvState:
    """Return the state without what a step leaves alone."""
    return dataclasses.replace(state, **dict.fromkeys(_LEFT_ALONE))


def _facts(bits: Int32[Array, "*B"]) -> StepFacts:
    return StepFacts(*(_has(bits, i) for i in range(len(StepFacts._fields))))


def _has(bits: Int32[Array, "*B"], index: int) -> Bool[Array, "*B"]:
    return (bits >> index & 1).astype(jnp.bool_)


def _to_bits(*facts: Bool[Array, "*B"]) -> Int32[Array, "*B"]:
    return functools.reduce(operator.or_, (fact.astype(jnp.int32) << i for i, fact in enumerate(facts)))


@functools.cache
def _step_of(config: JaxArcConfig, hides_all: bool, in_xla: StepInXla) -> Callable[..., Any]:
    """Return the step of one environment, the same function for equal arguments, so that JAX traces it once."""

    def step_in_xla(states: ArcEnvState, actions: StructuredAction, place: Any, table: PairTable) -> Any:
        def one(state: ArcEnvState, action: StructuredAction, place: Any) -> tuple[ArcEnvState, Int32[Array, ""]]:
            first_row, count, order, colors, num_open = place
            source = PairSource(table, first_row, count, order, colors, num_open, hides_all)
            after, facts = in_xla(state, action, source, config)
            return after, _to_bits(*facts)

        return jax.vmap(one)(states, actions, place)

    def step(rows: Any, table: PairTable) -> tuple[ArcEnvState, Int32[Array, " B"]]:
        states, actions, place = rows
        numbers = [*_form(config), *(option is not None for option in place[2:])]
        numbers += step_numbers(config, hides_all).values()
        # One environment is mostly stepped from Python, which keeps the state. XLA would copy each of its arrays by a
        # kernel, and hand some of so many kernels to another thread; the library copies them in the call.
        in_place = states.counts.shape[0] > 1
        others = (actions, place, table)
        after, (bits,) = _change("step", numbers, states, others, [_after(states)], step_in_xla, in_place=in_place)
        return after, bits

    def with_first_row(rows: Any, offset: Int32[Array, "..."]) -> Any:
        states, actions, (first_row, *place) = rows
        return states, actions, (first_row + offset, *place)

    return with_batch_rule(step, functools.partial(stack_tables, with_first_row))


def _change(
    kernel: str,
    numbers: Sequence[int],
    states: ArcEnvState,
    others: tuple[Any, ...],
    like: Sequence[int],
    in_xla: Any,
    num_optional: int = 0,
    in_place: bool = True,
) -> tuple[ArcEnvState, list[Array]]:
    """Call a kernel that changes states; return them and its other results, each like an argument."""
    leaves, tree = jax.tree.flatten((states, *others))
    count = _after(states)
    num_in_place = count if in_place else 0
    of_leaves = _of_leaves(in_xla, tree)
    changed = native_call(kernel, numbers, leaves, [*range(count), *like], num_in_place, of_leaves, num_optional)
    return jax.tree.unflatten(jax.tree.structure(states), changed[:count]), changed[count:]


def _after(states: ArcEnvState) -> int:
    """How many arrays there are in states, and so the place of the next argument."""
    return len(jax.tree.leaves(states))


@functools.cache
def _of_leaves(function: Callable[..., Any], tree: Any) -> Callable[..., list[Array]]:
    return lambda *leaves: jax.tree.leaves(function(*jax.tree.unflatten(tree, leaves)))


def _form(config: JaxArcConfig) -> list[int]:
    """The numbers that begin a call on states: the canvas, and which arrays there are."""
    return [*config.grid_shape, _FORMATS.index(config.action.selection_format), config.history.history_enabled]


def step_numbers(config: JaxArcConfig, hides_all: bool) -> dict[str, int]:
    """What a step depends on, and a config fixes; rules that are true or false are bits in the order of step.h."""
    rules = (
        config.action.invalid_action_policy == "clip",
        config.switches_pairs,
        config.scores_submissions,
        config.reward.score_on_submit,
        hides_all,
    )
    return {
        "legal": sum(1 << operation for operation in config.legal_operations),
        "flags": sum(1 << bit for bit, holds in enumerate(rules) if holds),
        "max_submissions": config.environment.max_submissions,
        "max_steps": config.environment.max_episode_steps,
    }


def reset_numbers(config: JaxArcConfig) -> dict[str, int]:
    """How a reset chooses task and pair."""
    episode = config.episode
    choice = {"train": episode.demo_selection, "test": episode.test_selection}.get(episode.mode)
    return {
        "mode": _MODES.index(episode.mode),
        "is_in_turn": int(episode.task_order == "in_turn"),
        "is_random_pair": int(choice == "random"),
    }


def reset_natively(
    states: ArcEnvState, need: Bool[Array, " B"], params: EnvParams, in_xla: ResetBatch
) -> ArcEnvState | None:
    """Start the next episode of each environment that needs it, in place; None where the library cannot.

    Args:
        states: of the batch.
        need: which environments.
        params: what the batch shares.
        in_xla: does the same.
    """
    states, params = declared_state(states), declared_params(params)
    if need.dtype != jnp.bool_ or need.shape != states.counts.shape[:-1]:
        raise TypeError(f"need must be bool{list(states.counts.shape[:-1])}, got {need.dtype}{list(need.shape)}")
    if not resets_natively(states, params):
        return None
    numbers = [*_form(params.config), *_of_params(params)]
    others = (need, params, cumulative_weights(params.weights))
    return _change("reset", numbers, states, others, [], _without_sums(in_xla))[0]


def resets_natively(states: ArcEnvState, params: EnvParams) -> bool:
    """Whether the library starts such episodes: on stored tasks, as they are, with a key of two words."""
    config = params.config
    tasks = params.tasks
    return (
        isinstance(tasks, TaskBuffer)
        and params.weights.dtype == jnp.float32
        and config.episode.start_grid == "input"
        and all(getattr(states, name) is None for name in _OF_TASKS)
        and splits_by_counter(from_key_data(states.key.reshape(-1, states.key.shape[-1])[0]))
    )


def _of_params(params: EnvParams) -> list[int]:
    return [*reset_numbers(params.config).values(), params.pair_index is not None]


@functools.cache
def _without_sums(function: Callable[..., Any]) -> Callable[..., Any]:
    """The cumulative weights follow from the params."""
    return lambda *arguments: function(True, *arguments[:-1])


def steps_and_resets_natively(state: ArcEnvState, params: EnvParams) -> bool:
    """Whether one call of the library takes a step, starts the next episode, and shows its grid."""
    config = params.config
    is_native = choose_executor(config.environment.executor) == "native" and shows_only_the_grid(config)
    return is_native and resets_natively(state, params)


def step_and_reset_natively(
    state: ArcEnvState, action: StructuredAction, params: EnvParams, in_xla: StepAndReset, by_parts: StepAndReset
) -> SteppedAndReset:
    """Take a step, and start the next episode where one ended; under ``jax.vmap`` one call serves all environments.

    Args:
        state: of one environment, for which :func:`steps_and_resets_natively` is true.
        action: as it is; the library checks it.
        params: those of the state.
        in_xla: does the same.
        by_parts: does the same, each part by the library where it can.
    """
    action.rules(params.config)  # raises for an action of another format
    return _step_and_reset_of(in_xla, by_parts)((state, action), params)


@functools.cache
def _step_and_reset_of(in_xla: StepAndReset, by_parts: StepAndReset) -> Callable[..., SteppedAndReset]:
    def in_xla_of_leaves(states: ArcEnvState, actions: StructuredAction, params: EnvParams, _: Array) -> Any:
        done = in_xla(states, actions, params)
        bits = _to_bits(*done.facts, *(done.endings[:, i] for i in range(2)))
        return done.state, bits, done.similarity_before, done.similarity, done.counts, done.next_grid, done.grid

    def step_and_reset(rows: tuple[ArcEnvState, StructuredAction], params: EnvParams) -> SteppedAndReset:
        states, actions = rows
        config = params.config
        numbers = [*_form(config), *step_numbers(config, config.episode.mode == "test").values(), *_of_params(params)]
        like = [_after(states), _SIMILARITY, _SIMILARITY, _COUNTS, _GRID, _GRID]
        others = (actions, params, cumulative_weights(params.weights))
        # The grids at the end are written only where somebody reads them.
        after, (bits, before, similarity, counts, next_grid, grid) = _change(
            "step_and_reset", numbers, states, others, like, in_xla_of_leaves, num_optional=2
        )
        facts = _facts(bits)
        endings = jnp.stack([_has(bits, len(facts) + i) for i in range(2)], axis=-1)
        # Only those of episodes that ended were written.
        grid = jnp.where(endings.any(axis=-1)[:, None], grid, next_grid)
        return SteppedAndReset(after, facts, endings, counts, similarity, before, next_grid, grid)

    def apart(_: Any, has_axis: Any, rows: Any, params: EnvParams) -> SteppedAndReset:
        """Each batch has params of its own: nothing to fold."""
        axes = jax.tree.map(lambda has: 0 if has else None, has_axis)
        states, actions = rows
        return jax.vmap(by_parts, (0, 0, axes))(states, actions, params)

    return with_batch_rule(step_and_reset, apart)
