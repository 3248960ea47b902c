"""A plain network that sees the colors themselves: a trunk of layers on each cell, or on its 3x3 neighborhood.

A convolution is written as a matrix product over shifted copies: on a CPU the gradient of ``lax.conv`` is many times
slower inside a compiled loop.
"""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int8, Int32, Key

from jaxarc import constants as c
from jaxarc.agents.edits import EditKind, Network, PolicyInput, first_kind_logits
from jaxarc.config import NetworkConfig
from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.nn.layers import MLP, Dense

NUM_EDGES: Final = 6


def cell_features(inputs: PolicyInput, equality_map: bool) -> Float32[Array, "B H W F"]:
    """Describe each cell: its color and that of the target, where the grids end, and perhaps whether it is right."""
    grids = inputs.working, inputs.target
    colors = [jax.nn.one_hot(grid, NUM_COLORS, dtype=jnp.float32) for grid in grids]
    parts = [*colors, *(_edges(grid) for grid in grids)]
    if equality_map:
        parts.append((inputs.working == inputs.target).astype(jnp.float32)[..., None])
    return jnp.concatenate(parts, axis=-1)


def _edges(grid: Int8[Array, "B H W"]) -> Float32[Array, "B H W 3"]:
    """Mark the grid, its last row and its last column: a single cell does not know the size of the grid."""
    # The last row is where the cell below is outside: rows 0 and 1 of a grid of 2 rows have it at row 1.
    inside = grid > PADDING
    beneath = jnp.pad(inside[:, 1:], ((0, 0), (0, 1), (0, 0)))
    beside = jnp.pad(inside[:, :, 1:], ((0, 0), (0, 0), (0, 1)))
    return jnp.stack([inside, inside & ~beneath, inside & ~beside], axis=-1).astype(jnp.float32)


_WIDE: Final = 32  # hidden units of the heads that see the whole grid
_COLOR: Final = 64  # hidden units of the color head
_SMALL: Final = 0.01  # scale of last layers: a fresh policy is nearly uniform
_WINDOW: Final = 3  # rows and columns of a convolution


class CellFeatures(NamedTuple):
    cells: Float[Array, "B HW C"]
    whole: Float[Array, "B 2C+1"]  # mean and largest value of each channel, and the time


class CellNetwork(Network):
    """A residual trunk over cells, and heads that know colors by their number."""

    first_layer: Dense
    positions: Float32[Array, "HW C"]
    layers: tuple[Dense, ...]
    kind_layers: MLP
    value_layers: MLP
    corner: Dense
    corner_key: Dense
    corner_query: Dense
    corner_weight: Float32[Array, " C"]
    corner_offsets: Float32[Array, " offsets"]  # one for each difference of two cells, (2H-1) x (2W-1)
    color_layers: MLP
    size_layer: Dense
    grid_shape: tuple[int, int] = eqx.field(static=True)
    paints: tuple[bool, ...] = eqx.field(static=True)  # whether the kind paints, of each kind
    equality_map: bool = eqx.field(static=True)
    window: int = eqx.field(static=True)  # rows and columns that a layer sees of a cell's neighborhood

    def __init__(
        self, key: Key[Array, ""], grid_shape: tuple[int, int], kinds: tuple[EditKind, ...], config: NetworkConfig
    ):
        keys = iter(jax.random.split(key, 10 + config.num_layers))
        height, width = grid_shape
        size = config.hidden_size
        self.grid_shape = grid_shape
        self.equality_map = config.equality_map
        self.window = _WINDOW if config.kind == "residual_cnn" else 1
        self.paints = tuple(kind.operation == c.FILL for kind in kinds)
        inputs = 2 * NUM_COLORS + NUM_EDGES + int(config.equality_map)  # see cell_features
        first_layer = Dense(next(keys), inputs, size, 3**-0.5)  # about three inputs are 1
        # Where the grids end is nearly the same everywhere: at full weight it may switch units on or off for good.
        edges = slice(2 * c.NUM_COLORS, 2 * c.NUM_COLORS + NUM_EDGES)
        self.first_layer = eqx.tree_at(
            lambda layer: layer.weight, first_layer, first_layer.weight.at[edges].multiply(0.1)
        )
        self.positions = 0.1 * jax.random.normal(next(keys), (height * width, size), jnp.float32)
        self.layers = tuple(Dense(next(keys), self.window**2 * size, size) for _ in range(config.num_layers - 1))
        kind_layers = MLP(next(keys), (2 * size + 1, _WIDE, len(kinds)))
        biases = jnp.asarray(first_kind_logits(kinds, config))
        self.kind_layers = eqx.tree_at(lambda layers: layers.last.bias, kind_layers, biases)
        self.value_layers = MLP(next(keys), (2 * size + 1, _WIDE, 1), last_scale=0.1)
        self.corner = Dense(next(keys), size, 2, _SMALL)
        self.corner_key = Dense(next(keys), size, size, size**-0.5)
        self.corner_query = Dense(next(keys), size, size, size**-0.5)
        self.corner_weight = _SMALL * jax.random.normal(next(keys), (size,), jnp.float32)
        same_cell = offset_indices(grid_shape)[0, 0]
        offsets = jnp.zeros(((2 * height - 1) * (2 * width - 1),), jnp.float32)
        self.corner_offsets = offsets.at[same_cell].set(config.same_cell_bias)
        self.color_layers = MLP(next(keys), (2 * size, _COLOR, c.NUM_COLORS), size**-0.5)
        self.size_layer = Dense(next(keys), size, 2, _SMALL)

    def encode(self, inputs: PolicyInput) -> CellFeatures:
        # [B, H, W, F] -> [B, H, W, C]; each further layer adds to the cells, so a layer that says 0 changes nothing.
        features = cell_features(inputs, self.equality_map)
        height, width = self.grid_shape
        positions = self.positions.reshape(1, height, width, -1)
        cells = jax.nn.relu(self.first_layer(features) + positions)
        for layer in self.layers:
            cells = cells + jax.nn.relu(layer(windows(cells, self.window)))
        cells = cells.reshape(cells.shape[0], height * width, -1)
        time = inputs.time.astype(cells.dtype)
        return CellFeatures(cells, jnp.concatenate([cells.mean(axis=1), cells.max(axis=1), time[:, None]], axis=-1))

    def kind_logits(self, features: CellFeatures) -> Float[Array, "B K"]:
        return self.kind_layers(features.whole)

    def value(self, features: CellFeatures) -> Float[Array, " B"]:
        return self.value_layers(features.whole)[..., 0]

    def first_logits(self, features: CellFeatures, kind: Int32[Array, " B"]) -> Float[Array, "B HW"]:
        paints = jnp.asarray(self.paints)[kind]
        logits = self.corner(features.cells)
        return jnp.where(paints[:, None], logits[..., 0], logits[..., 1])

    def second_logits(self, features: CellFeatures, first: Int32[Array, " B"]) -> Float[Array, "B HW"]:
        # Each cell's key is added to the first corner's query before the nonlinearity, so a score can depend on both.
        # An offset for the way between the two prefers boxes of certain shapes wherever they are.
        query = self.corner_query(_at(features.cells, first))
        logits = jax.nn.relu(self.corner_key(features.cells) + query[:, None]) @ self.corner_weight
        return logits + self.corner_offsets[jnp.asarray(offset_indices(self.grid_shape))[first]]

    def color_logits(
        self, features: CellFeatures, first: Int32[Array, " B"], second: Int32[Array, " B"]
    ) -> Float[Array, "B 10"]:
        return self.color_layers(jnp.concatenate([_at(features.cells, first), _at(features.cells, second)], axis=-1))

    def size_logits(self, features: CellFeatures) -> tuple[Float[Array, "B H"], Float[Array, "B W"]]:
        grid = features.cells.reshape(-1, *self.grid_shape, features.cells.shape[-1])
        # The mean over the columns describes each row, the mean over the rows each column.
        rows = self.size_layer(grid.mean(axis=2))
        columns = self.size_layer(grid.mean(axis=1))
        return rows[..., 0], columns[..., 1]


def _at(cells: Float[Array, "B HW C"], index: Int32[Array, " B"]) -> Float[Array, "B C"]:
    return jnp.take_along_axis(cells, index[:, None, None], axis=1)[:, 0]


def windows(grid: Float[Array, "B H W C"], side: int) -> Float[Array, "B H W C*side*side"]:
    """Put the neighborhood of each cell, 0 outside of the canvas, into its channels."""
    if side == 1:
        return grid
    height, width = grid.shape[1:3]
    # With side 3 nine copies of the grid, each moved by one of nine ways, are joined: [B, H, W, C] -> [B, H, W, 9C].
    # A dense layer on them is a convolution.
    reach = side // 2
    padded = jnp.pad(grid, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    parts = [padded[:, y : y + height, x : x + width] for y in range(side) for x in range(side)]
    return jnp.concatenate(parts, axis=-1)


def offset_indices(grid_shape: tuple[int, int]) -> Int32[np.ndarray, "HW HW"]:
    """Return, for cells ``(i, j)``, the index in ``corner_offsets`` of the way from ``i`` to ``j``.

    On a canvas of 2 x 2 there are 3 x 3 ways: index 4 is "the same cell", 5 one to the right, 8 one down and right.
    """
    # Differences -1 .. 1 on 2 rows become 0 .. 2 by adding H - 1, and two such digits one index in base 2W - 1.
    height, width = grid_shape
    rows, columns = np.divmod(np.arange(height * width, dtype=np.int32), np.int32(width))
    down = rows[None, :] - rows[:, None] + height - 1
    right = columns[None, :] - columns[:, None] + width - 1
    return down * (2 * width - 1) + right
