"""A network that sees only which colors are equal: it treats all ten colors, all cells and all canvas sizes alike.

What it knows of a cell fits ten bits, so the layers for single cells run once for each of the 1024 kinds of cell and
not once for each cell; a cell looks its score up. On 30x30 that is far less work for the same numbers.
"""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int8, Int16, Int32, Key

from jaxarc import constants as c
from jaxarc.agents.edits import EditKind, Network, PolicyInput, first_kind_logits, neighbors, one_hot, pick
from jaxarc.config import NetworkConfig
from jaxarc.nn.layers import MLP, draw_together

NUM_BITS: Final = 10  # inside the target, wrong; 4 neighbors of the same target color; 4 neighbors wrong
_WHOLE: Final = 8  # numbers that describe the whole grid
_BOX: Final = 9  # numbers that describe a box
_COLOR: Final = 4  # numbers that describe a color
_WIDE: Final = 32  # hidden units of the heads that see the whole grid
_LARGE: Final = float(np.log1p(c.MAX_GRID_SIZE**2))


class RelationalFeatures(NamedTuple):
    """The features that all heads of the network read."""

    target: Int8[Array, "B HW"]
    working: Int8[Array, "B HW"]
    wrong: Bool[Array, "B HW"]
    cell_kind: Int16[Array, "B HW"]  # the ten bits as a number, 0 .. 1023
    scores: Float[Array, "1024 2"]  # of each kind of cell, as a corner to paint from, and for all else
    whole: Float32[Array, "B 8"]
    lasts: tuple[Int32[Array, "B 2"], Int32[Array, "B 2"]]  # last row and column of the target and the working grid


class RelationalNetwork(Network):
    """Small layers on relations between the working grid and its target."""

    kind_layers: MLP
    value_layers: MLP
    cell_layers: MLP
    box_layers: MLP
    color_layers: MLP
    size_weights: Float32[Array, "2"]  # for the last row or column of the target, of the working grid
    grid_shape: tuple[int, int] = eqx.field(static=True)
    paints: tuple[bool, ...] = eqx.field(static=True)  # whether the kind paints, of each kind

    def __init__(
        self, key: Key[Array, ""], grid_shape: tuple[int, int], kinds: tuple[EditKind, ...], config: NetworkConfig
    ):
        size = config.hidden_size
        draws = draw_together(key, 5, max(_WHOLE * _WIDE, _WIDE * len(kinds), NUM_BITS * size))
        kind_layers = MLP(draws[0], (_WHOLE, _WIDE, len(kinds)))
        biases = jnp.asarray(first_kind_logits(kinds, config))
        self.kind_layers = eqx.tree_at(lambda layers: layers.last.bias, kind_layers, biases)
        self.value_layers = MLP(draws[1], (_WHOLE, _WIDE, 1), last_scale=0.1)
        self.cell_layers = MLP(draws[2], (NUM_BITS, size, 2))
        box_layers = MLP(draws[3], (_BOX, size, 1))
        self.box_layers = box_layers
        self.color_layers = MLP(draws[4], (_COLOR, size, 1), 0.7)
        self.size_weights = jnp.zeros((2,), jnp.float32)
        self.grid_shape = grid_shape
        self.paints = tuple(kind.operation == c.FILL for kind in kinds)

    def encode(self, inputs: PolicyInput) -> RelationalFeatures:
        """Describe each cell by ten bits and the whole grid by eight numbers.

        A 3x3 target of one red rectangle on black, while the working grid is still black everywhere:

            target   wrong    bits of the cell in the center, bit 0 first
            0 2 2    . x x    inside 1, wrong 1,
            0 2 2    . x x    same target color above 1, below 0, left 0, right 1,
            0 0 0    . . .    wrong above 1, below 0, left 0, right 1: its kind is 0b1001100111 = 615

        A start is a wrong cell with no wrong cell of its color above it or to its left, so the rectangle has one.
        """
        target = inputs.target
        working = inputs.working
        wrong = target != working
        inside = target > c.PADDING
        # Lists of four grids in the order above, below, left, right. A neighbor beyond
        # the canvas has no color, and is right.
        same_color = [inside & (neighbor == target) for neighbor in neighbors(target, c.PADDING)]
        wrong_around = neighbors(wrong, False)
        bits = [inside, wrong, *same_color, *wrong_around]
        # Ten masks become one number of ten bits, mask i at bit i.
        cell_kind = sum((bit.astype(jnp.int16) << index for index, bit in enumerate(bits)), jnp.int16(0))
        lasts = _last_row_and_column(inside), _last_row_and_column(working > c.PADDING)
        # Every wrong rectangle of one color has one cell with nothing of it above or to the left: its upper left
        # corner. So the number of starts is about the number of fills that are left to do.
        continues_from_above = same_color[0] & wrong_around[0]
        continues_from_left = same_color[2] & wrong_around[2]
        starts = wrong & inside & ~continues_from_above & ~continues_from_left
        flat = lambda grid: grid.reshape(grid.shape[0], -1)
        return RelationalFeatures(
            target=flat(target),
            working=flat(working),
            wrong=flat(wrong),
            cell_kind=flat(cell_kind),
            scores=self.cell_layers(jnp.asarray(_every_kind_of_cell())),
            whole=_describe_whole(flat(wrong), flat(starts), lasts, inputs.time),
            lasts=lasts,
        )

    def kind_logits(self, features: RelationalFeatures) -> Float[Array, "B K"]:
        return self.kind_layers(features.whole)

    def value(self, features: RelationalFeatures) -> Float[Array, " B"]:
        return self.value_layers(features.whole)[..., 0]

    def first_logits(self, features: RelationalFeatures, kind: Int32[Array, " B"]) -> Float[Array, "B HW"]:
        # The table [1024, 2] is flattened: kind 615 has its score for painting at 1230, and the other at 1231.
        column = jnp.where(jnp.asarray(self.paints)[kind], 0, 1)
        return features.scores.reshape(-1)[2 * features.cell_kind.astype(jnp.int32) + column[:, None]]

    def second_logits(self, features: RelationalFeatures, first: Int32[Array, " B"]) -> Float[Array, "B HW"]:
        """Score a corner by what painting the box in the color that the target has at the first one would do."""
        return _score_features(self.box_layers, describe_boxes(features, first, self.grid_shape))

    def color_logits(
        self, features: RelationalFeatures, first: Int32[Array, " B"], second: Int32[Array, " B"]
    ) -> Float[Array, "B 10"]:
        """Score a color by whether the grids have it at the corners."""
        # [B, 4] colors -> [B, 4, 10] -> [B, 10, 4]: each color becomes four bits, target and working grid at both
        # corners, and the same layers score all ten.
        at_corners = [pick(grid, corner) for grid in (features.target, features.working) for corner in (first, second)]
        relations = one_hot(jnp.stack(at_corners, axis=-1).astype(jnp.int32), c.NUM_COLORS)
        return self.color_layers(jnp.swapaxes(relations, -1, -2))[..., 0]

    def size_logits(self, features: RelationalFeatures) -> tuple[Float32[Array, "B H"], Float32[Array, "B W"]]:
        weights = self.size_weights.astype(jnp.float32)

        def score(axis: int) -> Float32[Array, "B N"]:
            # Two rows can score: the last one of the target and the last one of the working grid, each by its weight.
            marks = [one_hot(last[:, axis], self.grid_shape[axis]) for last in features.lasts]
            return marks[0] * weights[0] + marks[1] * weights[1]

        return score(0), score(1)


def _every_kind_of_cell() -> Float32[np.ndarray, "1024 10"]:
    """Return the bits of the numbers 0 .. 1023, the lowest first."""
    # Row 615 is 1 1 1 0 0 1 1 0 0 1: the lowest bit of 0b1001100111 comes first.
    kinds = np.arange(2**NUM_BITS)
    return ((kinds[:, None] >> np.arange(NUM_BITS)) & 1).astype(np.float32)


def _last_row_and_column(inside: Bool[Array, "B H W"]) -> Int32[Array, "B 2"]:
    # A grid begins at the top left, so its first column has as many cells as it has rows: 3 rows have the last row 2.
    return jnp.stack([inside[:, :, 0].sum(axis=1), inside[:, 0].sum(axis=1)], axis=-1).astype(jnp.int32) - 1


def _describe_whole(
    wrong: Bool[Array, "B HW"],
    starts: Bool[Array, "B HW"],
    lasts: tuple[Int32[Array, "B 2"], Int32[Array, "B 2"]],
    time: Float32[Array, " B"],
) -> Float32[Array, "B 8"]:
    """Describe how much is wrong, in how many rectangles about, the sizes of the grids, and the time."""
    # Counts grow to 900, so the layers get their logarithm, scaled to 0 .. 1.
    counts = [cells.sum(axis=1, dtype=jnp.int32).astype(jnp.float32) for cells in (wrong, starts)]
    areas = [jnp.prod(last + 1, axis=-1).astype(jnp.float32) for last in lasts]
    numbers = [
        (counts[0] > 0).astype(jnp.float32),
        counts[0] / jnp.maximum(areas[0], areas[1]),
        *(jnp.log1p(count) / _LARGE for count in counts),
        (lasts[0] == lasts[1]).all(axis=-1).astype(jnp.float32),
        *(jnp.log1p(area) / _LARGE for area in areas[:1]),
        time,
        (counts[0] == 1).astype(jnp.float32),
    ]
    return jnp.stack(numbers, axis=-1)


def _score_features(layers: MLP, features: Float32[Array, "F B HW"]) -> Float[Array, "B HW"]:
    """Apply the layers to each cell.

    With the features as the first axis this is two large matrix products; as the last axis it would be many small
    ones, and a copy to bring the features there.
    """
    # [F, B, HW] -> [F, B * HW]: the weights from the left, [hidden, F] and then [1, hidden].
    flat = features.reshape(features.shape[0], -1).astype(layers.hidden.weight.dtype)
    hidden = jax.nn.relu(layers.hidden.weight.T @ flat + layers.hidden.bias[:, None])
    return (layers.last.weight.T @ hidden + layers.last.bias[:, None]).reshape(features.shape[1:])


def describe_boxes(
    features: RelationalFeatures, first: Int32[Array, " B"], grid_shape: tuple[int, int]
) -> Float32[Array, "9 B HW"]:
    """Describe, for each cell, what painting the box from ``first`` to it in the target's color at ``first`` would do.

    In the example of :meth:`RelationalNetwork.encode`, with the first corner at the upper left red cell, the box to
    the lower right cell of the grid repairs 4 cells and breaks 2, of an area of 6; the box to the center repairs 2 and
    breaks none.
    """
    height, width = grid_shape
    row = first // width
    column = first % width
    same = features.target == pick(features.target, first)[:, None]
    # ``same`` has the target's color at the first corner. To paint with it repairs the wrong ones of these, and breaks
    # right cells of other colors. Wrong cells of other colors stay wrong, so they do not count.
    repaired = same & features.wrong
    broken = ~same & ~features.wrong & (features.target > c.PADDING)
    counts = jnp.stack([repaired, broken], axis=1).astype(jnp.float32)
    sums = box_sums(counts.reshape(-1, 2, height, width), row, column)
    rows = jnp.arange(height, dtype=jnp.int32)
    columns = jnp.arange(width, dtype=jnp.int32)
    # The distances from the first corner give the area: two down and one to the right is 3 * 2 = 6.
    down = jnp.abs(rows[None] - row[:, None])
    right = jnp.abs(columns[None] - column[:, None])
    area = ((down + 1)[:, :, None] * (right + 1)[:, None, :]).astype(jnp.float32)
    gained = sums[:, 0]
    lost = sums[:, 1]
    flat = lambda grid: grid.reshape(grid.shape[0], -1)
    numbers = [
        gained / area,
        lost / area,
        jnp.log1p(gained) / _LARGE,
        jnp.log1p(lost) / _LARGE,
        (lost > 0).astype(jnp.float32),
        (gained > lost).astype(jnp.float32),
        (area == 1).astype(jnp.float32),
    ]
    cells = [same.astype(jnp.float32), features.wrong.astype(jnp.float32)]
    return jnp.stack([*map(flat, numbers), *cells])


def box_sums(
    values: Float32[Array, "B F H W"], row: Int32[Array, " B"], column: Int32[Array, " B"]
) -> Float32[Array, "B F H W"]:
    """Sum values, for each cell, over the box between it and the cell at ``row`` and ``column``.

    The box is a range of rows times a range of columns, so the sums are a product of three matrices: which rows belong
    to the box of row i, the values, which columns belong to the box of column j.
    """
    height, width = values.shape[2:]
    rows = _between(row, height)
    columns = _between(column, width)
    return jnp.einsum("bih,bfhw,bjw->bfij", rows, values, columns)


def _between(index: Int32[Array, " B"], count: int) -> Float32[Array, "B N N"]:
    """Return 1 where the third index is between ``index`` and the second one, both included.

    With ``index=1`` and 3 rows: [[1, 1, 0], [0, 1, 0], [0, 1, 1]].
    """
    others = jnp.arange(count, dtype=jnp.int32)[None]
    low = jnp.minimum(others, index[:, None])
    high = jnp.maximum(others, index[:, None])
    return ((low[..., None] <= others[None]) & (others[None] <= high[..., None])).astype(jnp.float32)
