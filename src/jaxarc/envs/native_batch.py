"""What the C++ library does for a batch of environments in one call: a step, and the start of the next episodes.

It takes the arrays of states and params in the order of their fields; see :mod:`jaxarc.native`.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.canvas import Canvas
from jaxarc.envs.compilation import call_native, choose_executor, with_batch_rule
from jaxarc.envs.pairs import PairSource, PairTable, stack_tables
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.prng import from_key_data, splits_by_counter
from jaxarc.tasks.buffer import LocalRows, TaskBuffer
from jaxarc.tasks.sampling import cumulative_weights

_MODES: Final = ("train", "test", "trials")  # as restart.h numbers them
_STATE_ARRAYS: Final = 10  # of a state with records

Advance = Callable[[ArcEnvState, StructuredAction, PairSource, JaxArcConfig], tuple[ArcEnvState, "StepFacts"]]
Restart = Callable[[ArcEnvState, Bool[Array, " B"], EnvParams], ArcEnvState]


class StepFacts(NamedTuple):
    """What the reward of a step depends on, besides the similarities, in the order of the bits of step.h."""

    running: Bool[Array, "*B"]  # the episode had not ended before the step
    newly_solved: Bool[Array, "*B"]
    wrong_submission: Bool[Array, "*B"]
    invalid: Bool[Array, "*B"]


def steps_natively(source: PairSource, config: JaxArcConfig) -> bool:
    """Whether the library takes the steps; rows of pairs on other devices come through XLA."""
    return choose_executor(config.environment.executor) == "native" and source.table.row_loader == LocalRows()


def step_natively(
    state: ArcEnvState, action: StructuredAction, source: PairSource, config: JaxArcConfig, in_xla: Advance
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
    changing = (state.canvas, state.counts, state.similarity_score, state.endings, state.action_records)
    place = (source.first_row, source.count, source.order, source.colors, source.num_open)
    step = _step_of(config, source.hides_all, in_xla)
    changed, bits = step((changing, action, place), source.table)
    canvas, counts, similarity_score, endings, records = changed
    after = dataclasses.replace(
        state,
        canvas=canvas,
        counts=counts,
        similarity_score=similarity_score,
        endings=endings,
        action_records=records,
    )
    return after, StepFacts(*((bits >> i & 1).astype(jnp.bool_) for i in range(len(StepFacts._fields))))


@functools.cache
def _step_of(config: JaxArcConfig, hides_all: bool, in_xla: Advance) -> Callable[..., Any]:
    """Return the step of one environment, the same function for equal arguments, so that JAX traces it once."""

    def step(rows: Any, table: PairTable) -> Any:
        return _step_batch(rows, table, config, hides_all, in_xla)

    def with_first_row(rows: Any, offset: Int32[Array, "..."]) -> Any:
        changing, action, (first_row, *place) = rows
        return changing, action, (first_row + offset, *place)

    return with_batch_rule(step, functools.partial(stack_tables, with_first_row))


def _step_batch(rows: Any, table: PairTable, config: JaxArcConfig, hides_all: bool, in_xla: Advance) -> Any:
    (canvas, counts, *scores, records), action, place = rows
    batch = counts.shape[0]
    # The library counts its arguments: what is not there is an array without elements.
    nothing = jnp.zeros((0,), jnp.int32)
    first_row, count, order, colors, num_open = place
    kept = jnp.zeros((batch, 0, 0), jnp.uint8) if records is None else records
    changing = [canvas.grid, canvas.clipboard, canvas.target, canvas.selection, canvas.sizes, counts, *scores, kept]
    order = jnp.zeros((0, 0), jnp.int8) if order is None else order
    colors = jnp.zeros((0, c.NUM_COLORS), jnp.int8) if colors is None else colors
    num_open = nothing if num_open is None else num_open
    arguments = [*changing, action.operation, *_selected(action)]
    *changed, facts = call_native(
        "step",
        [*arguments, first_row, count, order, colors, num_open, table.inputs, table.outputs],
        range(len(changing) + 1),  # the facts are a number for each environment, as the operations are
        len(changing),
        in_xla=_step_in_xla(config, hides_all, in_xla),
        **step_numbers(config, hides_all),
    )
    *canvas, counts, similarity_score, endings, kept = changed
    return (Canvas(*canvas), counts, similarity_score, endings, None if records is None else kept), facts


def _selected(action: StructuredAction) -> list[Array]:
    """Row, column, row and column of two corners; or the cells of masks, and three arrays without elements."""
    match action:
        case PointAction():
            return [action.row, action.col, action.row, action.col]
        case BboxAction():
            return [action.r1, action.c1, action.r2, action.c2]
        case MaskAction():
            cells = action.selection.reshape(action.selection.shape[0], -1)
            return [cells, *[jnp.zeros((0,), jnp.int32)] * 3]


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
        "height": config.grid_shape[0],
        "width": config.grid_shape[1],
        "legal": sum(1 << operation for operation in config.legal_operations),
        "flags": sum(1 << bit for bit, holds in enumerate(rules) if holds),
        "max_submissions": config.environment.max_submissions,
        "max_steps": config.environment.max_episode_steps,
    }


@functools.cache
def _step_in_xla(config: JaxArcConfig, hides_all: bool, in_xla: Advance) -> Callable[..., list[Array]]:
    """Return what the library does, of the same arrays."""
    make = {
        "point": lambda operation, row, column, *_: PointAction(operation, row, column),
        "bbox": BboxAction,
        "mask": lambda operation, cells, *_: MaskAction(operation, cells.reshape(-1, *config.grid_shape)),
    }[config.action.selection_format]
    or_none = lambda x: x if x.size else None

    def step(*arrays: Array) -> list[Array]:
        *canvas, counts, similarity_score, endings, kept = arrays[:9]
        action = make(*arrays[9:14])
        first_row, count, order, colors, num_open, inputs, outputs = arrays[14:]
        table = PairTable(inputs, outputs)
        states = ArcEnvState(
            canvas=Canvas(*canvas),
            counts=counts,
            similarity_score=similarity_score,
            endings=endings,
            key=jnp.zeros((counts.shape[0], 2), jnp.uint32),
            action_records=kept if config.history.history_enabled else None,
            augmentation=None,
            task_data=None,
            pairs=None,
            demonstrations=None,
            grid_shape=config.grid_shape,
            selection_format=config.action.selection_format,
        )

        def one(state: ArcEnvState, action: StructuredAction, *place: Any) -> tuple[ArcEnvState, StepFacts]:
            return in_xla(state, action, PairSource(table, *place, hides_all=hides_all), config)

        place = (first_row, count, or_none(order), or_none(colors), or_none(num_open))
        after, facts = jax.vmap(one)(states, action, *place)
        bits = functools.reduce(operator.or_, (fact.astype(jnp.int32) << i for i, fact in enumerate(facts)))
        records = kept if after.action_records is None else after.action_records
        canvas = after.canvas
        changed = [canvas.grid, canvas.clipboard, canvas.target, canvas.selection, canvas.sizes]
        return [*changed, after.counts, after.similarity_score, after.endings, records, bits]

    return step


def restart_natively(
    states: ArcEnvState, need: Bool[Array, " B"], params: EnvParams, in_xla: Restart
) -> ArcEnvState | None:
    """Start the next episode of each environment that needs it, in place; None where the library cannot.

    Args:
        states: of the batch.
        need: which environments.
        params: what the batch shares.
        in_xla: does the same.
    """
    if not restarts_natively(states, params):
        return None
    config = params.config
    leaves, tree = jax.tree.flatten((states, need, params))
    # Records and the pair to play may be None, and stand last in their class. Of the library's arguments, whose number
    # is fixed, they are then arrays without elements.
    has_records = states.action_records is not None
    arrays = leaves if has_records else _insert(leaves, _STATE_ARRAYS - 1, jnp.zeros((need.shape[0], 0, 0), jnp.uint8))
    has_pair = params.pair_index is not None
    arrays = arrays if has_pair else [*arrays, jnp.zeros((0,), jnp.int32)]
    restarted = call_native(
        "restart",
        [*arrays, cumulative_weights(params.weights)],
        range(_STATE_ARRAYS),
        _STATE_ARRAYS,
        in_xla=_restart_in_xla(in_xla, tree, has_records, has_pair),
        height=config.grid_shape[0],
        width=config.grid_shape[1],
        **restart_numbers(config),
    )
    return jax.tree.unflatten(jax.tree.structure(states), restarted if has_records else restarted[:-1])


def restart_numbers(config: JaxArcConfig) -> dict[str, int]:
    """How a restart chooses task and pair."""
    episode = config.episode
    choice = {"train": episode.demo_selection, "test": episode.test_selection}.get(episode.mode)
    return {
        "mode": _MODES.index(episode.mode),
        "is_in_turn": int(episode.task_order == "in_turn"),
        "is_random_pair": int(choice == "random"),
    }


def restarts_natively(states: ArcEnvState, params: EnvParams) -> bool:
    """Whether the library starts such episodes: on stored tasks, as they are, with a key of two words."""
    config = params.config
    tasks = params.tasks
    return (
        isinstance(tasks, TaskBuffer)
        and tasks.row_loader == LocalRows()
        and params.weights.dtype == jnp.float32
        and config.episode.start_grid == "input"
        and (states.augmentation, states.pairs, states.demonstrations, states.task_data) == (None,) * 4
        and splits_by_counter(from_key_data(states.key.reshape(-1, states.key.shape[-1])[0]))
    )


@functools.cache
def _restart_in_xla(in_xla: Restart, tree: Any, has_records: bool, has_pair: bool) -> Callable[..., list[Array]]:
    """Return what the library does, of the same arrays."""

    def restart(*arrays: Array) -> list[Array]:
        leaves = arrays[:-1] if has_pair else arrays[:-2]
        given = leaves if has_records else [*leaves[: _STATE_ARRAYS - 1], *leaves[_STATE_ARRAYS:]]
        restarted = jax.tree.leaves(in_xla(*jax.tree.unflatten(tree, given)))
        return restarted if has_records else [*restarted, arrays[_STATE_ARRAYS - 1]]

    return restart


def _insert(leaves: Sequence[Array], index: int, leaf: Array) -> list[Array]:
    return [*leaves[:index], leaf, *leaves[index:]]
