"""The one place that chooses what runs a step or a reset: the C++ library in one call for a batch, or the rules in XLA.

Public functions take one environment. Under ``jax.vmap``, however nested, one call of the library serves all of them,
with the bits of :mod:`jaxarc.envs.step` and :mod:`jaxarc.envs.start`. The library takes the arrays of states and params
in the order of their fields; see :mod:`jaxarc.native`.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32

from jaxarc.config import JaxArcConfig
from jaxarc.envs.compilation import as_declared
from jaxarc.envs.observations import shows_only_the_grid
from jaxarc.envs.pairs import PairSource, PairTable, stack_tables
from jaxarc.envs.params import EnvParams, declared_params
from jaxarc.envs.rows import RESET_FRACTION, reset_where, update_rows
from jaxarc.envs.start import start_next
from jaxarc.envs.state import ArcEnvState, declared_state
from jaxarc.envs.step import StepFacts, StepOutcome, outcome_of, pairs_of, step_by_rules
from jaxarc.envs.structured_actions import MaskAction, StructuredAction, refuse_invalid
from jaxarc.primitives import choose_executor, native_call, with_batch_rule
from jaxarc.prng import from_key_data, splits_by_counter
from jaxarc.tasks.buffer import TaskBuffer, cumulative_weights
from jaxarc.utils.error_handling import refuse_unstructured

_MODES: Final = ("train", "test", "trials")  # as step.h numbers them
_FORMATS: Final = ("point", "bbox", "mask")  # as library.cc numbers them
_OF_TASKS: Final = ("augmentation", "task_data", "pairs", "demonstrations")  # fields of a state of changed tasks
LEFT_ALONE: Final = ("key", *_OF_TASKS)  # by a step
_GRID, _COUNTS, _SIMILARITY = (0, 5, 6)  # places among the arrays of a state

BatchKernel = Callable[..., Any]  # of states with a leading axis B, and what else it takes


def take_step(state: ArcEnvState, action: StructuredAction, source: PairSource, config: JaxArcConfig) -> StepOutcome:
    """Take one step; a state that is done stays as it is, with reward 0.

    Args:
        state: the state of one environment.
        action: of :func:`as_single`; the config's invalid-action policy treats a wrong one.
        source: the pairs of the state's task.
        config: the one that the state was started with.
    """
    action = refuse_invalid(action, config)
    is_native = choose_executor(config.environment.executor) == "native"
    after, facts = (_step_natively if is_native else step_by_rules)(state, action, source, config)
    return outcome_of(state.similarity_score, after, facts, source, config)


def start_where(need: Bool[Array, ""], state: ArcEnvState, params: EnvParams) -> ArcEnvState:
    """Start the next episode of an environment that needs it; the state of another stays as it is.

    Args:
        need: whether it is needed.
        state: of one environment.
        params: what all environments share.
    """
    if choose_executor(params.config.environment.executor) == "native" and resets_natively(state, params):
        return _start_rows_natively((state, need), params)
    return reset_where(need, lambda state, _, params: start_next(state, params)[0], state, (), params)


def step_and_start(
    state: ArcEnvState, action: StructuredAction, params: EnvParams
) -> tuple[StepOutcome, PairSource, ArcEnvState, ArcEnvState]:
    """Take one step, and start the next episode where it ended, by one call of the library.

    Args:
        state: of one environment, for which :func:`steps_and_starts_natively` is true.
        action: of :func:`as_single`.
        params: those of the state.

    Returns:
        The outcome of the step, in the state of which only counters, similarity, endings and grid are those of the
        step; the pairs of its task; the state to go on with; and the same with a copy of its grid, which observations
        show: another array than the one that the next step changes in place.
    """
    action = refuse_invalid(action, params.config)
    done = _step_and_start_rows((state, action), params)
    with_grid = lambda grid: dataclasses.replace(done.state, canvas=dataclasses.replace(done.state.canvas, grid=grid))
    ended = dataclasses.replace(
        with_grid(done.grid),
        counts=done.counts,
        similarity_score=done.similarity,
        endings=done.endings,
    )
    source = pairs_of(ended, params)
    outcome = outcome_of(done.similarity_before, ended, done.facts, source, params.config)
    return outcome, source, done.state, with_grid(done.next_grid)


def steps_and_starts_natively(state: ArcEnvState, params: EnvParams) -> bool:
    """Whether one call of the library takes a step, starts the next episode, and shows its grid."""
    config = params.config
    is_native = choose_executor(config.environment.executor) == "native" and shows_only_the_grid(config)
    return is_native and resets_natively(state, params)


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


# A step.


def _step_natively(
    state: ArcEnvState, action: StructuredAction, source: PairSource, config: JaxArcConfig
) -> tuple[ArcEnvState, StepFacts]:
    place = (source.first_row, source.count, source.order, source.colors, source.num_open)
    bare = dataclasses.replace(state, **dict.fromkeys(LEFT_ALONE))
    after, bits = _step_of(config, source.hides_all)((bare, action, place), source.table)
    return dataclasses.replace(after, **{name: getattr(state, name) for name in LEFT_ALONE}), _facts(bits)


@functools.cache
def _step_of(config: JaxArcConfig, hides_all: bool) -> Callable[..., Any]:
    """Return the step of one environment, the same function for equal arguments, so that JAX traces it once."""

    def in_xla(states: ArcEnvState, actions: StructuredAction, place: Any, table: PairTable) -> Any:
        def one(state: ArcEnvState, action: StructuredAction, place: Any) -> tuple[ArcEnvState, Int32[Array, ""]]:
            first_row, count, order, colors, num_open = place
            source = PairSource(table, first_row, count, order, colors, num_open, hides_all)
            after, facts = step_by_rules(state, action, source, config)
            return after, _to_bits(*facts)

        return jax.vmap(one)(states, actions, place)

    def step(rows: Any, table: PairTable) -> tuple[ArcEnvState, Int32[Array, " B"]]:
        states, actions, place = rows
        numbers = [*form_numbers(config), *(option is not None for option in place[2:])]
        numbers += step_numbers(config, hides_all)
        # One environment is mostly stepped from Python, which keeps the state. XLA would copy each of its arrays by a
        # kernel, and hand some of so many kernels to another thread; the library copies them in the call.
        in_place = states.counts.shape[0] > 1
        others = (actions, place, table)
        after, (bits,) = _change("step", numbers, states, others, [_after(states)], in_xla, in_place=in_place)
        return after, bits

    def with_first_row(rows: Any, offset: Int32[Array, "..."]) -> Any:
        states, actions, (first_row, *place) = rows
        return states, actions, (first_row + offset, *place)

    return with_batch_rule(step, functools.partial(stack_tables, with_first_row))


# The start of next episodes.


def _start_rows(
    states: ArcEnvState, need: Bool[Array, " B"], params: EnvParams, *_: Array, in_blocks: bool = True
) -> ArcEnvState:
    """Start the next episode of each environment that needs it, in XLA."""
    start = lambda states, _: jax.vmap(start_next, (0, None))(states, params)[0]
    return update_rows(need, start, states, (), RESET_FRACTION, in_blocks)


def _start_in_place(rows: tuple[ArcEnvState, Bool[Array, " B"]], params: EnvParams) -> ArcEnvState:
    states, need = rows
    states, params = declared_state(states), declared_params(params)
    if need.dtype != jnp.bool_ or need.shape != states.counts.shape[:-1]:
        raise TypeError(f"need must be bool{list(states.counts.shape[:-1])}, got {need.dtype}{list(need.shape)}")
    numbers = [*form_numbers(params.config), *reset_numbers(params)]
    return _change("reset", numbers, states, (need, params, cumulative_weights(params.weights)), [], _start_rows)[0]


def _start_apart(_: Any, has_axis: Any, rows: tuple[ArcEnvState, Bool[Array, "A B"]], params: EnvParams) -> ArcEnvState:
    """Each batch has params of its own: nothing to fold."""
    # All rows: under vmap the loop over blocks would run, in every batch, as long as the batch that needs the most.
    axes = jax.tree.map(lambda has: 0 if has else None, has_axis)
    states, need = rows
    return jax.vmap(functools.partial(_start_rows, in_blocks=False), (0, 0, axes))(states, need, params)


_start_rows_natively = with_batch_rule(_start_in_place, _start_apart)


# Both at once.


class SteppedAndStarted(NamedTuple):
    """A step, and the state after the next episode began where one ended."""

    state: ArcEnvState
    facts: StepFacts
    endings: Bool[Array, "*B 2"]  # of the step, as the next two are
    counts: Int32[Array, "*B 5"]
    similarity: Float32[Array, "*B"]
    similarity_before: Float32[Array, "*B"]
    next_grid: Int8[Array, "*B HW"]  # a copy of that of the state
    grid: Int8[Array, "*B HW"]  # as the step left it


def _step_then_start(
    step: BatchKernel, in_blocks: bool, states: ArcEnvState, actions: StructuredAction, params: EnvParams
) -> SteppedAndStarted:
    """Do one after the other, the second in XLA."""
    one = lambda state, action: step(state, action, pairs_of(state, params), params.config)
    ended, facts = jax.vmap(one)(states, actions)
    after = _start_rows(ended, ended.done, params, in_blocks=in_blocks)
    of_step = (ended.endings, ended.counts, ended.similarity_score, states.similarity_score)
    return SteppedAndStarted(after, facts, *of_step, after.canvas.grid, ended.canvas.grid)


def _step_and_start_in_xla(states: ArcEnvState, actions: StructuredAction, params: EnvParams, _: Array) -> Any:
    done = _step_then_start(step_by_rules, True, states, actions, params)
    bits = _to_bits(*done.facts, *(done.endings[:, i] for i in range(2)))
    return done.state, bits, done.similarity_before, done.similarity, done.counts, done.next_grid, done.grid


def _step_and_start_batch(rows: tuple[ArcEnvState, StructuredAction], params: EnvParams) -> SteppedAndStarted:
    states, actions = rows
    config = params.config
    numbers = [*form_numbers(config), *step_numbers(config, config.episode.mode == "test"), *reset_numbers(params)]
    like = [_after(states), _SIMILARITY, _SIMILARITY, _COUNTS, _GRID, _GRID]
    others = (actions, params, cumulative_weights(params.weights))
    # The two grids at the end, after the reset and before it, are written only where somebody reads them.
    after, (bits, before, similarity, counts, next_grid, grid) = _change(
        "step_and_reset", numbers, states, others, like, _step_and_start_in_xla, num_optional=2
    )
    facts = _facts(bits)
    endings = jnp.stack([_has(bits, len(facts) + i) for i in range(2)], axis=-1)
    return SteppedAndStarted(after, facts, endings, counts, similarity, before, next_grid, grid)


def _step_and_start_apart(_: Any, has_axis: Any, rows: Any, params: EnvParams) -> SteppedAndStarted:
    """Each batch has params of its own: nothing to fold, and the step alone is by the library."""
    axes = jax.tree.map(lambda has: 0 if has else None, has_axis)
    states, actions = rows
    return jax.vmap(functools.partial(_step_then_start, _step_natively, False), (0, 0, axes))(states, actions, params)


_step_and_start_rows = with_batch_rule(_step_and_start_batch, _step_and_start_apart)


# Calls of the library.


def _facts(bits: Int32[Array, "*B"]) -> StepFacts:
    return StepFacts(*(_has(bits, i) for i in range(len(StepFacts._fields))))


def _has(bits: Int32[Array, "*B"], index: int) -> Bool[Array, "*B"]:
    return (bits >> index & 1).astype(jnp.bool_)


def _to_bits(*facts: Bool[Array, "*B"]) -> Int32[Array, "*B"]:
    return functools.reduce(operator.or_, (fact.astype(jnp.int32) << i for i, fact in enumerate(facts)))


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


def form_numbers(config: JaxArcConfig) -> list[int]:
    """The numbers that begin a call on states: the canvas, and which arrays there are."""
    return [*config.grid_shape, _FORMATS.index(config.action.selection_format), config.history.history_enabled]


def step_numbers(config: JaxArcConfig, hides_all: bool) -> list[int]:
    """What a step depends on, and a config fixes; rules that are true or false are bits in the order of step.h."""
    rules = (
        config.action.invalid_action_policy == "clip",
        config.episode.switches_pairs,
        config.scores_submissions,
        config.reward.score_on_submit,
        hides_all,
    )
    return [
        sum(1 << operation for operation in config.legal_operations),
        sum(1 << bit for bit, holds in enumerate(rules) if holds),
        config.environment.max_submissions,
        config.environment.max_episode_steps,
    ]


def reset_numbers(params: EnvParams) -> list[int]:
    """How a reset chooses task and pair."""
    episode = params.config.episode
    choice = {"train": episode.demo_selection, "test": episode.test_selection}.get(episode.mode)
    in_turn = episode.task_order == "in_turn"
    return [_MODES.index(episode.mode), in_turn, choice == "random", params.pair_index is not None]


# What a caller passes.


def as_single(
    state: ArcEnvState, action: StructuredAction, config: JaxArcConfig
) -> tuple[ArcEnvState, StructuredAction]:
    """Return the state and the action of one environment with the dtypes that they declare.

    Raises:
        TypeError: the action is not a structured one, or an array has a dtype whose values may not fit.
        ValueError: state or action is a batch, the state was made with a config of another canvas, selection format or
            history, or an array has another shape.
    """
    refuse_unstructured(action)
    shapes = {"state": np.shape(state.counts)[:-1], "action": np.shape(action.operation)}
    if isinstance(action, MaskAction):
        shapes["mask"] = np.shape(action.selection)[:-2]
    for name, shape in shapes.items():
        if shape != ():
            raise ValueError(
                f"one environment takes one step at a time, but the {name} is a batch of shape {shape}; "
                "use batch_step, or jax.vmap over states and actions"
            )
    _require_matching_config(state, config)
    action.rules(config)  # raises for another format, and for a mask of another canvas
    return declared_state(state, ()), as_declared(action, "action", ())


def _require_matching_config(state: ArcEnvState, config: JaxArcConfig) -> None:
    capacity = config.history_capacity if config.history.history_enabled else None
    records = None if state.action_records is None else state.action_records.shape[-2]
    facts = {
        "canvas": (state.grid_shape, config.grid_shape),
        "selection_format": (state.selection_format, config.action.selection_format),
        "history capacity": (records, capacity),
    }
    for name, (made, wanted) in facts.items():
        if made != wanted:
            raise ValueError(
                f"the state was made with {name} {made}, but the config says {wanted}; reset with it first"
            )
