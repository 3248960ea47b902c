"""The network: a trunk that looks at one cell at a time, and heads for each part of an edit.

Everything is a matrix product over all cells of a batch. On a CPU that is far faster than a convolution, whose gradient
is slow inside a compiled loop.
"""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, Key

from jaxarc.agents.features import NUM_CELL_FEATURES, CellFeatures, stack_features
from jaxarc.config import NetworkConfig
from jaxarc.types import PRNGKey

NUM_KINDS: Final = 3
PAINT, RESIZE, SUBMIT = range(NUM_KINDS)  # the kinds of edit, in the order of the kind logits

_WIDE: Final = 32  # hidden units of the heads that see the whole grid
_NARROW: Final = 16  # hidden units of the color head, which sees five numbers a color
_SMALL: Final = 0.01  # scale of last layers: a fresh policy is nearly uniform


class Dense(eqx.Module):
    """An affine map of the last axis."""

    weight: Float32[Array, "inputs outputs"]
    bias: Float32[Array, " outputs"]

    def __init__(self, key: PRNGKey, inputs: int, outputs: int, scale: float | None = None):
        deviation = (2.0 / inputs) ** 0.5 if scale is None else scale
        self.weight = jax.random.normal(key, (inputs, outputs), jnp.float32) * deviation
        self.bias = jnp.zeros((outputs,), jnp.float32)

    def __call__(self, x: Float32[Array, "*B inputs"]) -> Float32[Array, "*B outputs"]:
        return x @ self.weight + self.bias.reshape(*[1] * (x.ndim - 1), -1)


class Trunk(NamedTuple):
    """What the heads share."""

    cells: Float32[Array, "B HW C"]
    whole: Float32[Array, "B 2C+1"]  # mean and largest value of each channel, and the time


class GridNetwork(eqx.Module):
    """Logits for every part of an edit, and the value; the parts are drawn one after the other.

    Colors enter the color head only by how they relate to the two corners, so it treats all ten alike.
    """

    first_layer: Dense
    positions: Float32[Array, "HW C"]
    layers: tuple[Dense, ...]
    kind_layers: tuple[Dense, Dense]
    value_layers: tuple[Dense, Dense]
    first_corner: Dense
    resize_corner: Dense
    corner_key: Dense
    corner_query: Dense
    corner_weight: Float32[Array, " C"]
    corner_offsets: Float32[Array, " offsets"]  # one for each difference of two cells, (2H-1) x (2W-1)
    corner_relations: Float32[Array, " 5"]
    color_layers: tuple[Dense, Dense]
    grid_shape: tuple[int, int] = eqx.field(static=True)

    def __init__(self, key: Key[Array, ""], grid_shape: tuple[int, int], config: NetworkConfig):
        keys = iter(jax.random.split(key, 13 + config.num_layers))
        (height, width), size = grid_shape, config.hidden_size
        self.first_layer = Dense(next(keys), NUM_CELL_FEATURES, size, 3**-0.5)  # about three inputs are 1
        self.positions = 0.1 * jax.random.normal(next(keys), (height * width, size), jnp.float32)
        self.layers = tuple(Dense(next(keys), size, size) for _ in range(config.num_layers - 1))
        kind = Dense(next(keys), _WIDE, NUM_KINDS, _SMALL)
        biases = jnp.array([0.0, config.resize_bias, config.submit_bias], jnp.float32)
        self.kind_layers = (Dense(next(keys), 2 * size + 1, _WIDE), eqx.tree_at(lambda x: x.bias, kind, biases))
        self.value_layers = (Dense(next(keys), 2 * size + 1, _WIDE), Dense(next(keys), _WIDE, 1, 0.1))
        self.first_corner = Dense(next(keys), size, 1, _SMALL)
        self.resize_corner = Dense(next(keys), size, 1, _SMALL)
        self.corner_key = Dense(next(keys), size, size, size**-0.5)
        self.corner_query = Dense(next(keys), size, size, size**-0.5)
        self.corner_weight = _SMALL * jax.random.normal(next(keys), (size,), jnp.float32)
        same_cell = _offset_indices(grid_shape)[0, 0]
        offsets = jnp.zeros(((2 * height - 1) * (2 * width - 1),), jnp.float32)
        self.corner_offsets = offsets.at[same_cell].set(config.same_cell_bias)
        self.corner_relations = jnp.zeros((5,), jnp.float32)
        self.color_layers = (Dense(next(keys), 5, _NARROW, 0.7), Dense(next(keys), _NARROW, 1, _SMALL))
        self.grid_shape = grid_shape

    def trunk(self, seen: CellFeatures) -> Trunk:
        cells = jax.nn.relu(self.first_layer(stack_features(seen)) + self.positions[None])
        for layer in self.layers:
            cells = cells + jax.nn.relu(layer(cells))
        return Trunk(cells, jnp.concatenate([cells.mean(axis=1), cells.max(axis=1), seen.time[:, None]], axis=-1))

    def value(self, trunk: Trunk) -> Float32[Array, " B"]:
        return _two_layers(self.value_layers, trunk.whole)[..., 0]

    def kind_logits(self, trunk: Trunk) -> Float32[Array, "B 3"]:
        return _two_layers(self.kind_layers, trunk.whole)

    def first_corner_logits(self, trunk: Trunk) -> Float32[Array, "B HW"]:
        return self.first_corner(trunk.cells)[..., 0]

    def resize_logits(self, trunk: Trunk) -> Float32[Array, "B HW"]:
        """Score each cell as the last one, at the bottom right, of the resized grid."""
        return self.resize_corner(trunk.cells)[..., 0]

    def second_corner_logits(
        self, trunk: Trunk, seen: CellFeatures, first: Float32[Array, "B HW"]
    ) -> Float32[Array, "B HW"]:
        """Score each cell as the corner opposite to ``first``, which is one-hot.

        Beside what the cell is like, the score knows how many cells of the box would be repaired and how many broken if
        it were painted with the color that the target has at ``first``. A greedy policy without these two numbers
        paints overlapping boxes in turn, for ever.
        """
        query = self.corner_query(_pick(first, trunk.cells))
        logits = jax.nn.relu(self.corner_key(trunk.cells) + query[:, None]) @ self.corner_weight
        logits = logits + first @ self.corner_offsets[_offset_indices(self.grid_shape)]
        wanted = _pick(first, seen.target)[:, None]
        same = (seen.target * wanted).sum(-1)
        repaired, broken = same * (1 - seen.equal), (1 - same) * seen.equal * seen.in_target
        in_box = _box_sums(first, jnp.stack([repaired, broken], axis=1), self.grid_shape)
        relations = [same, seen.equal, (seen.working * wanted).sum(-1), in_box[:, 0], in_box[:, 1]]
        return logits + jnp.stack(relations, axis=-1) @ self.corner_relations

    def color_logits(
        self, seen: CellFeatures, first: Float32[Array, "B HW"], second: Float32[Array, "B HW"]
    ) -> Float32[Array, "B 10"]:
        """Score each color by where it stands: at the two corners, which are one-hot, and in the whole target."""
        corners = [_pick(corner, grid) for grid in (seen.target, seen.working) for corner in (first, second)]
        relations = jnp.stack([*corners, seen.target.mean(axis=1)], axis=-1)
        return _two_layers(self.color_layers, relations)[..., 0]


def _two_layers(layers: tuple[Dense, Dense], x: Float32[Array, "*B inputs"]) -> Float32[Array, "*B outputs"]:
    return layers[1](jax.nn.relu(layers[0](x)))


def _pick(cell: Float32[Array, "B HW"], values: Float32[Array, "B HW C"]) -> Float32[Array, "B C"]:
    """The values at one cell, given one-hot: a product and a sum, whose gradient needs no scatter."""
    return (cell[..., None] * values).sum(axis=1)


def _box_sums(
    corner: Float32[Array, "B HW"], values: Float32[Array, "B F HW"], grid_shape: tuple[int, int]
) -> Float32[Array, "B F HW"]:
    """Sum values, for each cell, over the box between it and a corner that is given one-hot."""
    height, width = grid_shape
    corners = corner.reshape(-1, height, width)
    rows = jnp.tensordot(corners.sum(axis=2), _between(height), 1)
    columns = jnp.tensordot(corners.sum(axis=1), _between(width), 1)
    grids = values.reshape(*values.shape[:2], height, width)
    return jnp.einsum("bih,bjw,bfhw->bfij", rows, columns, grids).reshape(values.shape)


def _between(side: int) -> Float32[np.ndarray, "N N N"]:
    """1 where the third place lies between the first two, both included."""
    first, second, place = np.indices((side, side, side))
    return ((np.minimum(first, second) <= place) & (place <= np.maximum(first, second))).astype(np.float32)


def _offset_indices(grid_shape: tuple[int, int]) -> Int32[np.ndarray, "HW HW"]:
    """For cells ``(i, j)``, the place in ``corner_offsets`` of how far ``j`` lies from ``i``."""
    height, width = grid_shape
    rows, columns = np.divmod(np.arange(height * width, dtype=np.int32), np.int32(width))
    down = rows[None, :] - rows[:, None] + height - 1
    right = columns[None, :] - columns[:, None] + width - 1
    return down * (2 * width - 1) + right
