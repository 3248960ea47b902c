"""Scorers of candidates: from the state and k candidates to k logits.

:class:`CandidateScorer` is a network for sets of variables. :class:`CountingScorer` is a linear model for boxes, many
times faster. :func:`choose_box` takes the best of its candidates.
"""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import optimization_barrier
from jaxtyping import Array, Bool, Float, Float32, Int, Int32, UInt32

from jaxarc import constants as c
from jaxarc.config import SurrogateNetworkConfig
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.nn.layers import MLP, Dense, cast_floats, gelu_mlp, lecun_scale
from jaxarc.surrogate import bit_counts as bits
from jaxarc.surrogate.bit_counts import Boxes
from jaxarc.surrogate.candidate_features import CandidateSet, ends
from jaxarc.surrogate.encoders import MomentEncoder
from jaxarc.surrogate.trunk import Trunk
from jaxarc.types import Observation, PRNGKey


class CandidateScorer(eqx.Module):
    """Scores the candidates of one example; ``jax.vmap`` scores a batch.

    The encoder and the trunk make a grid of cells. The head sees the sum and mean of the cells in a candidate's region
    and the candidate's own features, not its index: when candidates change places, so do the logits.
    """

    encoder: MomentEncoder
    trunk: Trunk
    gate: Dense  # from a candidate's features to factors of its region's features
    head: MLP

    def __init__(self, key: PRNGKey, config: SurrogateNetworkConfig, num_features: int):
        """Make a fresh scorer.

        Args:
            key: random key.
            config: sizes.
            num_features: F, of a candidate.
        """
        key_encoder, key_trunk, key_gate, key_head = jax.random.split(key, 4)
        size = config.latent_size
        self.encoder = MomentEncoder(key_encoder, size)
        self.trunk = Trunk.create(key_trunk, config)
        self.gate = Dense(key_gate, num_features, 2 * size, lecun_scale(num_features))
        # The head reads [sum, mean, gated sum, gated mean, features], 4C + F numbers, and starts with small logits.
        self.head = gelu_mlp(key_head, (4 * size + num_features, 2 * size, 1), 0.1)

    def __call__(self, data: Float[Array, "N d 3"], candidates: CandidateSet) -> Float[Array, " k"]:
        # The cells [R, d, C] are computed once for all candidates; for each of them only the pooling and the head run.
        # The gate lets the candidate's features decide which numbers of the region count.
        cells = self.trunk(self.encoder(data))
        candidates = cast_floats(candidates, cells.dtype)
        region = pool(cells, candidates)
        gated = region * self.gate(candidates.features)
        return self.head(jnp.concatenate([region, gated, candidates.features], axis=-1))[..., 0]


def pool(cells: Float[Array, "R d C"], candidates: CandidateSet) -> Float[Array, "k 2C"]:
    """Return the sum over each candidate's region, divided by the side of the grid, and the mean; 0 of an empty region.

    A region is an outer product of row and column weights, so the sum is two products of matrices and needs no mask of
    k x R x d: rows (0, 1, 1) and columns (1, 0) sum the cells (1, 0) and (2, 0).
    """
    # [k, R] x [R, d, C] -> [k, d, C], and then [k, d] x [k, d, C] -> [k, C]. An empty region has the sum 0, which is
    # divided by 1 instead of its area. The sum tells large regions from small ones, the mean does not.
    along_rows = jnp.einsum("kr,rdc->kdc", candidates.rows, cells)
    total = jnp.einsum("kd,kdc->kc", candidates.columns, along_rows)
    area = candidates.rows.sum(axis=-1) * candidates.columns.sum(axis=-1)
    mean = total / jnp.where(area > 0, area, jnp.ones_like(area))[:, None]
    return jnp.concatenate([total / (cells.shape[0] * cells.shape[1]) ** 0.5, mean], axis=-1)


PERCENT: Final = 100.0  # shares of cells are in percent, so that weights of about 1 separate scores by one cell
_STATE_FEATURES: Final = 5
_BOX_FEATURES: Final = 2
_FILL, _FLOOD, _OTHERS = range(3)  # kinds of operations: fills, flood fills, and from 2 on each other operation
_KINDS: Final = _OTHERS + c.NUM_GRID_OPERATIONS - c.MOVE_UP


class Grids(NamedTuple):
    """The three grids of a state: colors 0 .. 9, and -1 outside of the grid."""

    working: Int[Array, "N d"]
    target: Int[Array, "N d"]
    source: Int[Array, "N d"]  # the input of the pair


class CountingScorer(eqx.Module):
    """Scores candidate boxes by two counts: cells that want the fill's color, and cells that are right already.

    Say a row is 1 1 0 and its target 2 1 2. A fill of all three cells with color 2 gains 2 cells, the first and the
    last, and overwrites 1 right cell: the share of right cells goes from 1/3 to (1 - 1 + 2)/3. So with the weights +1
    and -1 the score of a fill is exact. All colors share their weights.

    A state adds five shares of cells: right now, right after a resize to the target's size, right after a clear, right
    after loading the input, and whether all are right. Operations other than fills also get a weight of the best fill
    among the candidates. How far a flood spreads and what a rotation or move makes is not in the features, so of these
    the model learns only how often they are best. 123 weights in all.

    Grids have at most 32 columns. A call takes candidates as a :class:`CandidateScorer` does; :meth:`score` takes boxes
    as they are, which is many times as fast.
    """

    state_layer: Dense
    best_fill_weights: Float[Array, " kinds"]
    fill_weights: Float[Array, " 2"]
    flood_weights: Float[Array, " 2"]

    def __init__(self, key: PRNGKey):
        self.state_layer = Dense(key, _STATE_FEATURES, _KINDS, lecun_scale(_STATE_FEATURES, 0.1))
        self.best_fill_weights = jnp.zeros(_KINDS, jnp.float32)
        self.fill_weights = jnp.zeros(_BOX_FEATURES, jnp.float32)
        self.flood_weights = jnp.zeros(_BOX_FEATURES, jnp.float32)

    def __call__(self, data: Float[Array, "N d 3"], candidates: CandidateSet) -> Float[Array, " k"]:
        # Undo the description of the candidates: colors from floats, corners from the covered rows and columns, and
        # the operation from its one-hot features.
        colors = jnp.round(data).astype(jnp.int32)
        grids = Grids(colors[..., 0], colors[..., 1], colors[..., 2])
        top, bottom = ends(candidates.rows)
        left, right = ends(candidates.columns)
        operation = jnp.argmax(candidates.features, axis=-1).astype(jnp.int32)
        operation = jnp.where(candidates.is_real, operation, c.NO_OPERATION)
        return self.score(grids, operation, Boxes(top, left, bottom, right))

    def score(self, grids: Grids, operation: Int32[Array, " k"], boxes: Boxes) -> Float[Array, " k"]:
        """Return the logits of operations on boxes of one state; ``jax.vmap`` does a batch.

        A value that is used twice is kept by an optimization barrier: without it XLA fuses its computation into each
        use, and a CPU computes it twice.

        Args:
            grids: of the state.
            operation: 0 .. 34, and -1 for padding, whose logit means nothing.
            boxes: of the operations, inside of the canvas.
        """
        shape = grids.working.shape
        dtype = self.fill_weights.dtype
        # Everything about the state alone comes first: sets of cells as bits, and from
        # their sizes a score for each kind.
        working, target, source = optimization_barrier(tuple(bits.pack_colors(grid) for grid in grids))
        cells = _Cells.of(working, target, source, shape[1])
        by_kind = self.state_layer(cells.shares().astype(dtype))
        # What one cell counts: of a union of 25 cells it is 4 percent.
        percent_per_cell = (PERCENT / cells.union).astype(dtype)
        wanted, right, by_kind, percent_per_cell = optimization_barrier(
            (cells.wanted, cells.right, by_kind, percent_per_cell)
        )
        is_fill = (operation >= c.FILL) & (operation < c.FLOOD_FILL)
        # A box scores linearly in its two counts. With the fill weights (1, -1) and a union of 3 cells, a box with 2
        # gained and 1 right cell scores 33.3 * (2 - 1) = 33.3 percent.
        per_gained = jnp.where(is_fill, self.fill_weights[0], self.flood_weights[0]) * percent_per_cell
        per_right = jnp.where(is_fill, self.fill_weights[1], self.flood_weights[1]) * percent_per_cell
        gained, already_right = _count(wanted, right, operation, boxes, shape)
        box_score = optimization_barrier(per_gained * gained.astype(dtype) + per_right * already_right.astype(dtype))
        # Other operations compete with the best fill, so each kind adds its weight times that score. It is at least 0,
        # where candidates include one that is no fill.
        best_fill = optimization_barrier(jnp.where(is_fill, box_score, jnp.zeros_like(box_score)).max())
        by_kind = optimization_barrier(by_kind + self.best_fill_weights * best_fill)
        kind_score = jnp.where(is_fill, by_kind[_FILL], by_kind[_FLOOD])
        for other in range(c.MOVE_UP, c.NUM_GRID_OPERATIONS):  # 15 selects take a CPU less time than a gather
            kind_score = jnp.where(operation == other, by_kind[_OTHERS + other - c.MOVE_UP], kind_score)
        return box_score + kind_score


class _Cells(NamedTuple):
    """Sets of cells of a state, as bits, and their sizes."""

    wanted: UInt32[Array, "words 4"]  # the target's colors; no color outside of the working grid
    right: UInt32[Array, " words"]  # the working grid equals the target
    right_if_resized: UInt32[Array, " words"]
    right_if_cleared: UInt32[Array, " words"]
    right_in_source: UInt32[Array, " words"]
    union: Float32[Array, ""]  # cells of the smallest rectangle around working grid and target
    target: Float32[Array, ""]  # cells of the target
    source_union: Float32[Array, ""]  # cells of the smallest rectangle around input and target

    @classmethod
    def of(
        cls,
        working: UInt32[Array, "words 4"],
        target: UInt32[Array, "words 4"],
        source: UInt32[Array, "words 4"],
        width: int,
    ) -> "_Cells":
        # The working row 1 1 0 and its target 2 1 2 have right = 0b010. After a clear no cell would be right, since no
        # target cell is black: black has no bit in any plane.
        in_working = bits.active_cells(working, width)
        in_target = bits.active_cells(target, width)
        in_source = bits.active_cells(source, width)
        right = bits.equal_cells(working, target) & in_working & in_target
        black = in_target & ~(target[:, 0] | target[:, 1] | target[:, 2] | target[:, 3])
        return cls(
            wanted=target | ~in_working[:, None],  # outside of the working grid no fill has an effect
            right=right,
            right_if_resized=right | (black & ~in_working),  # a resize adds black cells
            right_if_cleared=black & in_working,
            right_in_source=bits.equal_cells(source, target) & in_target & in_source,
            union=bits.covering_area(in_working | in_target, width).astype(jnp.float32),
            target=bits.covering_area(in_target, width).astype(jnp.float32),
            source_union=bits.covering_area(in_source | in_target, width).astype(jnp.float32),
        )

    def shares(self) -> Float32[Array, " 5"]:
        """Return the features of the state, in percent."""
        # For the row above: 1 of 3 cells is right now, 0 of 3 after a clear, and not all are right.
        right = _total(self.right)
        shares = [
            right / self.union,
            _total(self.right_if_resized) / self.target,
            _total(self.right_if_cleared) / self.union,
            _total(self.right_in_source) / self.source_union,
            (right == self.union).astype(jnp.float32),
        ]
        return PERCENT * jnp.stack(shares)


def _count(
    wanted: UInt32[Array, "words 4"],
    right: UInt32[Array, " words"],
    operation: Int32[Array, " k"],
    boxes: Boxes,
    shape: tuple[int, ...],
) -> tuple[Int32[Array, " k"], Int32[Array, " k"]]:
    """Count the cells of each box that want the operation's color, and those that are right already."""
    is_flood = (operation >= c.FLOOD_FILL) & (operation < c.MOVE_UP)
    color = jnp.where(is_flood, operation - c.FLOOD_FILL, operation)  # no cell wants a number above 9
    gained = jnp.zeros_like(operation)
    already_right = jnp.zeros_like(operation)
    # A count is the sum over the words of the bits in common. For the row above and a fill of its three cells by 2, the
    # cells that want 2 are 0b101, the box is 0b111, and 0b101 has two bits.
    for word in range(len(right)):
        box = bits.cells_of_boxes(boxes, shape, word)
        gained = gained + bits.count_cells(bits.cells_of_color(wanted, color, word) & box)
        already_right = already_right + bits.count_cells(right[word] & box)
    return gained, already_right


def _total(cells: UInt32[Array, " words"]) -> Float32[Array, ""]:
    return bits.count_cells(cells).sum(dtype=jnp.int32).astype(jnp.float32)


def choose_box(
    model: CountingScorer,
    observation: Observation,
    actions: BboxAction,
    is_real: Bool[Array, " k"],
) -> Int32[Array, ""]:
    """Return the index of the candidate with the highest logit, the first of equals.

    Args:
        model: scores boxes.
        observation: of one environment, with ``working_grid``, ``target_grid`` and ``input_grid`` as planes.
        actions: k candidates.
        is_real: false for padding, which is never chosen.
    """
    grids = Grids(*(observation[name] for name in ("working_grid", "target_grid", "input_grid")))
    operation = jnp.where(is_real, actions.operation, c.NO_OPERATION)
    logits = model.score(grids, operation, Boxes(actions.r1, actions.c1, actions.r2, actions.c2))
    logits = jnp.where(is_real, logits.astype(jnp.float32), -jnp.inf)
    return first_best(logits)


def first_best(logits: Float32[Array, " k"]) -> Int32[Array, ""]:
    """Return ``argmax`` in two passes, which a CPU vectorizes: the maximum, then the lowest index that reaches it.

    Of (1, 3, 3) the maximum is 3, the indices that reach it are 1 and 2, and the lowest is 1. XLA's ``argmax`` is one
    pass that carries value and index together, and takes several times as long.
    """
    logits = optimization_barrier(logits)  # or a CPU would compute all logits for each pass
    indices = jnp.arange(logits.size, dtype=jnp.int32)
    return jnp.where(logits == optimization_barrier(logits.max()), indices, logits.size - 1).min()
