"""Look one action ahead: score each of many candidate actions by the grid that it leaves.

Most candidates are fills, and a fill's score needs no edited grid. Of the cells that it selects, those whose target has
its color become right, and those that are right already do not count twice:

    gain = popcount(wanted & cells) - popcount(right & cells)

where ``wanted`` has a bit for each cell whose target has the color, ``right`` for each cell that is right now, and
``cells`` for each selected cell: 30 words for a candidate, where its grid would have 900 cells. In the row

    grid 0 0 3 5     target 3 3 3 0     filling columns 0..2 with 3:  wanted 1 1 1 .   right . . 1 .   gain 3 - 1 = 2

A spoiled cell is one that is right but not wanted, so the difference counts it as -1. Flood fills and the other
operations do make grids, for blocks of those candidates only.
"""

import dataclasses
import functools
from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Shaped, UInt32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.canvas import BoundingBox, Canvas, CheckedAction, count_matches, count_union, pack_columns, similarity
from jaxarc.envs.operations.execute import KernelStatics, execute_batch
from jaxarc.envs.operations.grid_edits import ResolvedSelection, resolve_selection
from jaxarc.envs.pairs import PairTable
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import FLOODS, BaseAction, OperationSet, StructuredAction
from jaxarc.experts.candidates import candidates_of_canvas, require_count
from jaxarc.experts.canvas_state import (
    CanvasState,
    CheckedEdits,
    canvas_of_observation,
    canvas_of_state,
    check_edits,
    edit_statics,
)
from jaxarc.fusion import compiles_for_cpu, materialize
from jaxarc.primitives import Kernel, with_batch_rule
from jaxarc.prng import as_typed_key
from jaxarc.rows import update_rows
from jaxarc.types import Observation, PRNGKey

RIGHT_SUBMIT: Final = 2.0  # above the score of any edit
WRONG_SUBMIT: Final = -1.0  # below it
_BLOCK_FRACTION: Final = 1 / 8  # of all candidates in one block
_GRID_EDITS: Final = OperationSet(((c.FLOOD_FILL, c.SUBMIT - 1),))  # those of which grids are made


class CandidateScores(NamedTuple):
    """Scores of k candidate actions."""

    similarity: Float32[Array, "*B k"]  # of grid and target afterwards, 0 .. 1; of an invalid action, as it is now
    score: Float32[Array, "*B k"]  # the similarity; 2 for a right submit, -1 for a wrong one
    is_valid: Bool[Array, "*B k"]  # legal, inside the canvas, and no change of the pair


def look_ahead(state: ArcEnvState, actions: StructuredAction, params: EnvParams) -> CandidateScores:
    """Score each of k actions by the grid that it would leave, without taking any.

    It reads the target, which an agent in test mode must not: this is a teacher. jit and vmap over states belong to the
    caller.

    Args:
        state: of one environment, made by ``env.reset`` or ``env.step``.
        actions: with a leading axis of k.
        params: what the environment plays.

    Raises:
        TypeError: the actions have another format than the config says.
        ValueError: the state is a batch, or the actions have no leading axis.
    """
    if isinstance(actions, BaseAction) and actions.operation.ndim != 1:
        raise ValueError(
            f"k actions have one leading axis, got shape {actions.operation.shape}; stack them, or vmap over more"
        )
    return score_candidates(canvas_of_state(state, params), actions, params.config)


def score_candidates(canvas_state: CanvasState, actions: StructuredAction, config: JaxArcConfig) -> CandidateScores:
    """Do the same as :func:`look_ahead`, from a canvas state."""
    edits = check_edits(actions, config)
    matches, union = count_outcomes(canvas_state, edits, edit_statics(config))
    # A submit edits nothing: its counts are those of the grid as it is, and say whether the submit is right.
    similarities = similarity(matches, union)
    submits = edits.operation == c.SUBMIT
    score_of_submit = jnp.where(matches == union, jnp.float32(RIGHT_SUBMIT), jnp.float32(WRONG_SUBMIT))
    return CandidateScores(similarities, jnp.where(submits, score_of_submit, similarities), edits.is_valid)


def soft_choice(
    scores: Float32[Array, "*B k"], is_allowed: Bool[Array, "*B k"], temperature: float
) -> Float32[Array, "*B k"]:
    """Turn scores into probabilities, ``softmax(scores / temperature)`` over the candidates that are allowed.

    Equal scores get equal probabilities, a candidate that is not allowed gets 0. Where none is allowed, all get the
    same: the result is finite and sums to 1 for any input.

    Args:
        scores: of each candidate.
        is_allowed: false for duplicates, padding and invalid actions.
        temperature: above 0; the difference of scores that makes a candidate 2.7 times as likely. A cell of a
            10x10 grid counts 0.01.

    Raises:
        ValueError: the temperature is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}; for the best candidate take the argmax")
    # Where nothing is allowed everything is usable with score 0, because a softmax of -inf alone would be NaN.
    usable = is_allowed | ~is_allowed.any(axis=-1, keepdims=True)
    wanted = jnp.where(is_allowed, scores / jnp.float32(temperature), jnp.float32(0))
    return jax.nn.softmax(jnp.where(usable, wanted, -jnp.inf), axis=-1)


class LookaheadAgent(eqx.Module):
    """Draws candidates, looks one action ahead and takes the best, or one drawn by :func:`soft_choice`.

    A :class:`jaxarc.parallel.Policy` for observations that show target and input (``observation.reveal_target``,
    ``include_input``) as planes; :func:`missing_for_lookahead` lists what a config lacks. Of equal scores it takes the
    first.
    With fills of all colors and a resize among the operations it solves every pair: some candidate always fixes a cell.

    Raises:
        ValueError: too few candidates, or a temperature that is not above 0.
    """

    config: JaxArcConfig = eqx.field(static=True)
    num_candidates: int = eqx.field(static=True, default=64)
    temperature: float | None = eqx.field(static=True, default=None)  # None: take the best

    def __check_init__(self) -> None:
        if not isinstance(self.config, JaxArcConfig):
            raise TypeError(f"config must be a JaxArcConfig, got {type(self.config).__name__}; pass params.config")
        require_count(self.num_candidates, self.config)
        if self.temperature is not None and not self.temperature > 0:
            raise ValueError(f"temperature must be above 0, got {self.temperature}; None takes the best candidate")

    def __call__(self, key: PRNGKey, observation: Observation) -> StructuredAction:
        """Choose the action of one environment."""
        key_candidates, key_choice = jax.random.split(as_typed_key(key))
        canvas_state = canvas_of_observation(observation, self.config)
        candidates = candidates_of_canvas(key_candidates, canvas_state, self.num_candidates, self.config)
        scores = score_candidates(canvas_state, candidates.actions, self.config)
        is_allowed = scores.is_valid & candidates.is_distinct
        if self.temperature is None:
            index = jnp.argmax(jnp.where(is_allowed, scores.score, -jnp.inf))
        else:
            # The logarithm of 0, -inf, is a chance of 0 again.
            probabilities = soft_choice(scores.score, is_allowed, self.temperature)
            index = jax.random.categorical(key_choice, jnp.log(probabilities))
        return jax.tree.map(lambda leaf: leaf[index], candidates.actions)


def missing_for_lookahead(config: JaxArcConfig) -> list[str]:
    """List what observations lack for a :class:`LookaheadAgent`, a sentence each; empty when all is there."""
    shown = config.observation
    wanted = (
        ("layout", shown.layout, "dict"),
        ("reveal_target", shown.reveal_target, True),
        ("include_input", shown.include_input, True),
        ("grid_format", shown.grid_format, "planes"),
    )
    return [
        f"looking ahead needs observation.{name}={value!r}, got {given!r}"
        for name, given, value in wanted
        if given != value
    ]


class Outcomes(NamedTuple):
    """Counts of the grids that k edits leave."""

    matches: Int32[Array, "*B k"]  # cells that match the target
    union: Int32[Array, "*B k"]  # cells in the union of grid and target


def count_outcomes(canvas_state: CanvasState, edits: CheckedEdits, statics: KernelStatics) -> Outcomes:
    """Count matches after each of k edits of one canvas; under ``vmap``, one batch kernel serves all canvases."""
    return _count_with_batch_rule(statics)((canvas_state, edits), ())


@functools.cache
def _count_with_batch_rule(statics: KernelStatics) -> Kernel:
    def kernel(rows: tuple[CanvasState, CheckedEdits], _: tuple[()]) -> Outcomes:
        one = lambda row: _outcomes(row[0], row[1], statics)
        # On a CPU one canvas after the other, so that its arrays stay in the cache.
        return jax.lax.map(one, rows) if compiles_for_cpu() else jax.vmap(one)(rows)

    return with_batch_rule(kernel)


def _outcomes(canvas_state: CanvasState, edits: CheckedEdits, statics: KernelStatics) -> Outcomes:
    canvas = canvas_state.canvas
    operation = edits.operation
    count = operation.shape[0]
    # k candidates of one canvas are handled as a batch of k environments that all have this canvas.
    action = CheckedAction(operation, edits.selection, jnp.zeros(count, jnp.int32))
    canvases = jax.tree.map(lambda leaf: _repeat(leaf, operation), canvas)
    use = resolve_selection(canvases, action, statics.shape)
    base = count_matches(canvas.grid, canvas.target)
    fills = (operation >= c.FILL) & (operation < c.FLOOD_FILL)
    # A flood on none or several cells does nothing.
    edits_grid = _GRID_EDITS.has(operation) & (use.is_single | ~FLOODS.has(operation))
    # At first every candidate counts what the grid counts now, and fills what they add to it. The others then replace
    # their rows, collected into blocks, so that grids are made for those rows only.
    out = Outcomes(
        base + jnp.where(fills, _gain_of_fills(canvas, operation, use, statics), 0),
        jnp.broadcast_to(count_union(canvas.sizes[:4]), (count,)),
    )
    if statics.has(_GRID_EDITS):
        kernel = functools.partial(_edit, canvas_state=canvas_state, statics=statics)
        out = update_rows(edits_grid, kernel, out, action, _BLOCK_FRACTION)
    return out


def _gain_of_fills(
    canvas: Canvas, operation: Int32[Array, " k"], use: ResolvedSelection, statics: KernelStatics
) -> Int32[Array, " k"]:
    """Cells that each fill makes right minus those that it spoils; see the top of this file."""
    # uint32[10, W] of wanted cells, one set for each color, and uint32[W] of right cells; a fill's operation is its
    # color, so `take` gives each candidate the words of its color: [W, k]. "clip" serves the operations that are no
    # fills.
    pack = functools.partial(pack_columns, shape=statics.shape)
    color = jnp.arange(c.NUM_COLORS, dtype=jnp.int8)[:, None]
    is_right = (canvas.grid == canvas.target) & (canvas.target > c.PADDING)
    wanted, right = materialize((pack(canvas.target[None] == color), pack(is_right)))
    cells = _columns_of(use.chosen, statics.shape[1]) if use.columns is None else use.columns.T
    wanted = jnp.take(wanted.T, operation, axis=1, mode="clip")
    now_right = jax.lax.population_count(wanted & cells).astype(jnp.int32)
    were_right = jax.lax.population_count(right[:, None] & cells).astype(jnp.int32)
    return (now_right - were_right).sum(axis=0, dtype=jnp.int32)


def _columns_of(box: BoundingBox, width: int) -> UInt32[Array, "W k"]:
    """The cells of boxes as bits, a word for each column whose bit ``r`` is row ``r``.

    ``up_to(row)`` has the bits ``0 .. row``: rows 1..2 are ``up_to(2) ^ up_to(0) = 0b111 ^ 0b001 = 0b110``.
    """
    up_to = lambda row: (jnp.uint32(1) << (row + 1).astype(jnp.uint32)) - jnp.uint32(1)
    # The same rows in every column of the box: for rows 1..2 and columns 0..1 of 3x3, the words 110 110 000.
    rows = jnp.where(box.is_empty, jnp.uint32(0), up_to(box.bottom) ^ up_to(box.top - 1))[None]
    columns = jnp.arange(width, dtype=jnp.int32)[:, None]
    return jnp.where((columns >= box.left[None]) & (columns <= box.right[None]), rows, jnp.uint32(0))


def _edit(out: Outcomes, action: CheckedAction, canvas_state: CanvasState, statics: KernelStatics) -> Outcomes:
    """Count the outcomes of a block of floods, moves, turns, copies and the like."""
    operation = jnp.where(_GRID_EDITS.has(action.operation), action.operation, c.NO_OPERATION)
    action = CheckedAction(operation, action.selection, action.row)
    canvases = jax.tree.map(lambda leaf: _repeat(leaf, operation), canvas_state.canvas)
    # The one operation that loads a pair here is "copy input", and its pair is row 0 of a table of one.
    table = PairTable(canvas_state.pair_input[None], canvas_state.canvas.target[None])
    rest = tuple(i for i in statics.operations if i >= c.FLOOD_FILL)
    canvases, matches = execute_batch(canvases, action, table, dataclasses.replace(statics, operations=rest))
    return Outcomes(matches, count_union(canvases.sizes[:, :4]))


def _repeat(leaf: Shaped[Array, "*leaf"], like: Int32[Array, " k"]) -> Shaped[Array, "k *leaf"]:
    return jnp.broadcast_to(leaf, (like.shape[0], *leaf.shape))
