"""The surrogate of an expert: one forward pass from the data to a logit of each candidate.

A surrogate of the lookahead expert that is quicker than it: linear in counts of cells, with weights it learns.

Which candidate a surrogate likes best.
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
from jaxarc.nn.layers import MLP, Dense, gelu_mlp, lecun_scale
from jaxarc.surrogate import bit_counts as bits
from jaxarc.surrogate.bit_counts import Boxes
from jaxarc.surrogate.candidates import CandidateSet, describe_boxes, describe_grids
from jaxarc.surrogate.encoders import Reading, make_reading
from jaxarc.surrogate.trunk import Trunk
from jaxarc.types import Observation, PRNGKey


class CandidateScorer(eqx.Module):
    """Scores the candidates of one example; ``jax.vmap`` scores a batch.

    A candidate is judged by the cells in its region and by its own features, and not by its place among the
    candidates: when they change places, so do the logits.
    """

    reading: Reading
    trunk: Trunk
    gate: Dense  # from a candidate's features to what counts in its region
    judge: MLP

    def __init__(
        self, key: PRNGKey, config: SurrogateNetworkConfig, num_features: int, grid_shape: tuple[int, int] = (1, 1)
    ):
        """Make a fresh scorer.

        Args:
            key: random key.
            config: size and reading.
            num_features: F, of a candidate.
            grid_shape: (N, d) of a grid of colors; samples take any.
        """
        key_reading, key_trunk, key_gate, key_judge = jax.random.split(key, 4)
        size = config.latent_size
        self.reading = make_reading(key_reading, config, grid_shape)
        self.trunk = Trunk.create(key_trunk, config)
        self.gate = Dense(key_gate, num_features, 2 * size, lecun_scale(num_features))
        self.judge = gelu_mlp(key_judge, (4 * size + num_features, 2 * size, 1), 0.1)

    def __call__(self, data: Float[Array, "N d 3"], candidates: CandidateSet) -> Float[Array, " k"]:
        cells = self.trunk(self.reading(data))
        region = pool(cells, candidates)
        gated = region * self.gate(candidates.features)
        return self.judge(jnp.concatenate([region, gated, candidates.features], axis=-1))[..., 0]


def pool(cells: Float[Array, "R d C"], candidates: CandidateSet) -> Float[Array, "k 2C"]:
    """Return the sum over each candidate's region, in units of the grid's side, and its mean; 0 of an empty region."""
    along_rows = jnp.einsum("kr,rdc->kdc", candidates.rows, cells)
    total = jnp.einsum("kd,kdc->kc", candidates.columns, along_rows)
    area = candidates.rows.sum(axis=-1) * candidates.columns.sum(axis=-1)
    mean = total / jnp.where(area > 0, area, jnp.ones_like(area))[:, None]
    return jnp.concatenate([total / (cells.shape[0] * cells.shape[1]) ** 0.5, mean], axis=-1)


PERCENT: Final = 100.0  # shares of cells are told in percent, so that weights of about 1 tell cells apart
_STATE_FEATURES: Final = 5
_BOX_FEATURES: Final = 2
_FILL, _FLOOD, _OTHERS = range(3)  # kinds of operations; each of the others is a kind of its own
_KINDS: Final = _OTHERS + c.NUM_GRID_OPERATIONS - c.MOVE_UP


class Grids(NamedTuple):
    """What is seen of a state: colors 0 .. 9, and -1 outside of the grid."""

    working: Int[Array, "N d"]
    target: Int[Array, "N d"]
    source: Int[Array, "N d"]  # the input of the pair


class CountingScorer(eqx.Module):
    """Scores candidate boxes by how many of their cells would become right, and how many are right already.

    All colors share their weights, so what it learns of one color holds for all. A state is told to it by a few shares
    of cells: right now, right after a resize to the target's size, after clearing, after loading the input, and
    whether all is right. What is no fill is judged in the light of the best fill among the candidates as well. A fill
    is worth a sum over its cells, so it can be learned exactly; how far a flood spreads, and what a turn or a move of
    the whole grid does, it is not told, so of these it learns how often they are best. 123 weights in all.

    It is called as a :class:`CandidateScorer` is, with grids of at most 32 columns; :meth:`score` takes boxes as they
    are, which is many times as fast.
    """

    of_state: Dense
    of_best_fill: Float[Array, " kinds"]
    of_fill: Float[Array, " 2"]
    of_flood: Float[Array, " 2"]

    def __init__(self, key: PRNGKey):
        self.of_state = Dense(key, _STATE_FEATURES, _KINDS, lecun_scale(_STATE_FEATURES, 0.1))
        self.of_best_fill = jnp.zeros(_KINDS, jnp.float32)
        self.of_fill = jnp.zeros(_BOX_FEATURES, jnp.float32)
        self.of_flood = jnp.zeros(_BOX_FEATURES, jnp.float32)

    def __call__(self, data: Float[Array, "N d 3"], candidates: CandidateSet) -> Float[Array, " k"]:
        colors = jnp.round(data).astype(jnp.int32)
        grids = Grids(colors[..., 0], colors[..., 1], colors[..., 2])
        top, bottom = _ends(candidates.rows)
        left, right = _ends(candidates.columns)
        operation = jnp.argmax(candidates.features, axis=-1).astype(jnp.int32)
        operation = jnp.where(candidates.is_real, operation, c.NO_OPERATION)
        return self.score(grids, operation, Boxes(top, left, bottom, right))

    def score(self, grids: Grids, operation: Int32[Array, " k"], boxes: Boxes) -> Float[Array, " k"]:
        """Return the logits of operations on boxes of one state; ``jax.vmap`` does a batch.

        What is used twice is computed once: without the barriers a CPU would do it anew for each use.

        Args:
            grids: what is seen of the state.
            operation: 0 .. 34, and -1 for what is no candidate, whose logit means nothing.
            boxes: of the operations, inside of the canvas.
        """
        shape, dtype = grids.working.shape, self.of_fill.dtype
        working, target, source = optimization_barrier(tuple(bits.pack_colors(grid) for grid in grids))
        cells = _Cells.of(working, target, source, shape[1])
        by_kind = self.of_state(cells.shares().astype(dtype))
        unit = (PERCENT / cells.union).astype(dtype)
        wanted, right, by_kind, unit = optimization_barrier((cells.wanted, cells.right, by_kind, unit))
        is_fill = (operation >= c.FILL) & (operation < c.FLOOD_FILL)
        by_gained, by_kept = (
            jnp.where(is_fill, self.of_fill[i], self.of_flood[i]) * unit for i in range(_BOX_FEATURES)
        )
        gained, kept = (count.astype(dtype) for count in _count(wanted, right, operation, boxes, shape))
        of_box = optimization_barrier(by_gained * gained + by_kept * kept)
        best_fill = optimization_barrier(jnp.where(is_fill, of_box, jnp.zeros_like(of_box)).max())
        by_kind = optimization_barrier(by_kind + self.of_best_fill * best_fill)
        told = jnp.where(is_fill, by_kind[_FILL], by_kind[_FLOOD])
        for other in range(c.MOVE_UP, c.NUM_GRID_OPERATIONS):  # a look into a table would take a CPU longer
            told = jnp.where(operation == other, by_kind[_OTHERS + other - c.MOVE_UP], told)
        return of_box + told


class _Cells(NamedTuple):
    """What the cells of a state are, as bits."""

    wanted: UInt32[Array, "words 4"]  # the target's colors, where the working grid is
    right: UInt32[Array, " words"]
    right_if_resized: UInt32[Array, " words"]
    right_if_cleared: UInt32[Array, " words"]
    right_in_source: UInt32[Array, " words"]
    union: Float32[Array, ""]  # cells of the smallest rectangle around working grid and target
    target: Float32[Array, ""]  # cells of the target
    source_union: Float32[Array, ""]  # cells of the smallest rectangle around input and target

    @classmethod
    def of(cls, working: Array, target: Array, source: Array, width: int) -> "_Cells":
        active, wanted, given = (bits.active_cells(grid, width) for grid in (working, target, source))
        right = bits.equal_cells(working, target) & active & wanted
        black = wanted & ~(target[:, 0] | target[:, 1] | target[:, 2] | target[:, 3])
        return cls(
            target | ~active[:, None],  # outside of the grid nothing can be filled
            right,
            right | (black & ~active),
            black & active,
            bits.equal_cells(source, target) & wanted & given,
            *(
                bits.covering_area(cells, width).astype(jnp.float32)
                for cells in (active | wanted, wanted, given | wanted)
            ),
        )

    def shares(self) -> Float32[Array, " 5"]:
        """Tell the state, in percent."""
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
    wanted: Array, right: Array, operation: Int32[Array, " k"], boxes: Boxes, shape: tuple[int, ...]
) -> tuple[Int32[Array, " k"], Int32[Array, " k"]]:
    """Count the cells of each box that want the operation's color, and those that are right already."""
    is_flood = (operation >= c.FLOOD_FILL) & (operation < c.MOVE_UP)
    color = jnp.where(is_flood, operation - c.FLOOD_FILL, operation)  # beyond 9 there are none, nor cells of them
    gained = kept = jnp.zeros_like(operation)
    for word in range(len(right)):
        box = bits.cells_of_boxes(boxes, shape, word)
        gained = gained + bits.count_cells(bits.cells_of_color(wanted, color, word) & box)
        kept = kept + bits.count_cells(right[word] & box)
    return gained, kept


def _total(cells: UInt32[Array, " words"]) -> Float32[Array, ""]:
    return bits.count_cells(cells).sum(dtype=jnp.int32).astype(jnp.float32)


def _ends(covered: Float[Array, "k n"]) -> tuple[Int32[Array, " k"], Int32[Array, " k"]]:
    """First and last place that is covered; an empty box ends before it begins."""
    places = jnp.arange(covered.shape[-1], dtype=jnp.int32)[None]
    first = jnp.where(covered > 0, places, covered.shape[-1]).min(axis=-1)
    return first, jnp.where(covered > 0, places, -1).max(axis=-1)


def choose_box(
    model: CountingScorer | CandidateScorer, observation: Observation, actions: BboxAction, is_real: Bool[Array, " k"]
) -> Int32[Array, ""]:
    """Return the place of the candidate that a model likes best, the first of equals.

    Args:
        model: of boxes.
        observation: of one environment, with ``working_grid``, ``target_grid`` and ``input_grid`` as planes.
        actions: k candidates.
        is_real: false for those that are not to be chosen.
    """
    grids = Grids(*(observation[name] for name in ("working_grid", "target_grid", "input_grid")))
    if isinstance(model, CountingScorer):
        operation = jnp.where(is_real, actions.operation, c.NO_OPERATION)
        logits = model.score(grids, operation, Boxes(actions.r1, actions.c1, actions.r2, actions.c2))
    else:
        height, width = grids.working.shape
        logits = model(describe_grids(*grids), describe_boxes(actions, is_real, (height, width)))
    return first_best(jnp.where(is_real, logits, -jnp.inf))


def first_best(logits: Float32[Array, " k"]) -> Int32[Array, ""]:
    """Do what ``argmax`` does, which a CPU takes several times as long for: once the best, then where it is."""
    logits = jax.lax.optimization_barrier(logits)  # or a CPU would compute all logits twice
    places = jnp.arange(logits.size, dtype=jnp.int32)
    return jnp.where(logits == jax.lax.optimization_barrier(logits.max()), places, logits.size - 1).min()
