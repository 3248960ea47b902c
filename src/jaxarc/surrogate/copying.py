"""A network that predicts an edit by copying: for each cell of the next grid, where its color comes from.

After an edit nearly every cell has a color that stands somewhere already: in the same cell, beside it, at the mirrored
or turned place of the action's box, in the clipboard or in the input; or it has the color of the action, or black. The
network is given these places, and what is there, but not which of them an operation uses: it learns that, cell by cell.
A mirrored row 1 2 3 is "take the mirrored place" three times, whatever the colors are, so what is learned from some
grids holds for all.

No fixed place can tell how far a flood spreads. So the network also has a mark that spreads from cell to neighbor, in
steps; where it starts and which neighbors pass it on is learned.
"""

from typing import Final, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int32

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.nn.layers import MLP, Dense, lecun_scale
from jaxarc.surrogate.candidates import NUM_ACTION_FEATURES, CandidateSet, ends
from jaxarc.surrogate.encoders import NUM_VALUES
from jaxarc.types import PRNGKey

CLIPBOARD: Final = 3  # channel of the clipboard in the data, behind working grid, target and input
_PLACES: Final = 10  # of the working grid, see ``_places``; the next clipboard may copy the last, the next grid others
_GRID_SOURCES: Final = _PLACES - 1 + 5  # with those of the clipboard and the input, action's color, black and outside
_CLIPBOARD_SOURCES: Final = 3  # the clipboard as it is, the last of the places, nothing
_FLAGS: Final = 2 * _PLACES + 5
_PASS_SCALE: Final = 8.0  # two weights decide about all floods, so they move faster than the others
_EPSILON: Final = 1e-4  # probability of a color that no source has


class Copied(NamedTuple):
    """A grid each of whose cells is copied from one of several sources."""

    colors: Int32[Array, "N d sources"]  # of the sources, -1 .. 9
    shares: Float32[Array, "N d sources"]  # probability of each source; those of a cell sum to 1

    @classmethod
    def certainly(cls, grid: Int32[Array, "N d"]) -> Self:
        """Return a grid that is copied from ``grid`` as it is."""
        return cls(grid[..., None], jnp.ones((*grid.shape, 1), jnp.float32))

    def probability_of(self, grid: Int32[Array, "N d"]) -> Float32[Array, "N d"]:
        """Return the probability that a cell has the color that it has in ``grid``."""
        return jnp.where(self.colors == grid[..., None], self.shares, jnp.float32(0)).sum(axis=-1)

    def logits(self) -> Float32[Array, "N d 11"]:
        """Return the logarithm of the probability of each color, -1 first; -9.2 of a color that no source has."""
        # The sources 3 0 3 with the shares 0.5 0.3 0.2: color 3 has the probability 0.7, color 0 has 0.3.
        one_hot = jax.nn.one_hot(self.colors - PADDING, NUM_VALUES, dtype=jnp.float32)
        return jnp.log((one_hot * self.shares[..., None]).sum(axis=-2) + jnp.float32(_EPSILON))

    def similarity(self, target: Int32[Array, "N d"]) -> Float32[Array, ""]:
        """Return the environment's similarity of the likeliest grid and a target: right cells by the rectangle's cells.

        A cell has a color where its probability is above one half. The row 3 3 0, whose last cell is 3 with the share
        0.6, and the target 3 3 3 give 3 / 3. So edits that lead to equal grids are equally similar, which the expected
        number of right cells, here 2.6, would hide. There is no gradient.
        """
        half = jnp.float32(0.5)
        in_target = target > PADDING
        right = in_target & (self.probability_of(target) > half)
        covered = in_target | (self.probability_of(jnp.full_like(target, PADDING)) <= half)
        num_covered = covered.any(axis=1).sum(dtype=jnp.int32) * covered.any(axis=0).sum(dtype=jnp.int32)
        return right.sum(dtype=jnp.int32).astype(jnp.float32) / num_covered.astype(jnp.float32)


class CopiedCanvas(NamedTuple):
    """The grid and the clipboard after an edit."""

    grid: Copied
    clipboard: Copied


class CopyingNetwork(eqx.Module):
    """Says where each cell of the next grid and of the next clipboard comes from; ``jax.vmap`` does a batch.

    A perceptron, the same for all cells, reads the operation and the flags of :class:`_Cells`: of each place, whether
    it is in the action's box and in the grid. It sees colors only through the mark, which compares neighbors.
    """

    starts: Dense  # from the operation to the logit of a mark in its box
    passes: Float[Array, " 2"]  # logit / 8 with which a neighbor passes a mark on: one of another color, of the same
    flags: Dense
    action: Dense
    sources: MLP

    def __init__(self, key: PRNGKey, size: int):
        """Draw the weights; ``size`` is the number of hidden units."""
        key_starts, key_flags, key_action, key_sources = jax.random.split(key, 4)
        self.starts = Dense(key_starts, NUM_ACTION_FEATURES, 1, 1.0)
        # From equal chances a mark first learns to reach all cells, and does not find back.
        self.passes = jnp.array([-0.25, 0.25], jnp.float32)
        self.flags = Dense(key_flags, _FLAGS + 1, size, lecun_scale(_FLAGS, 2.0))
        self.action = Dense(key_action, NUM_ACTION_FEATURES, size, 1.0)
        self.sources = MLP(key_sources, (size, size, _GRID_SOURCES + _CLIPBOARD_SOURCES))

    def __call__(self, data: Float[Array, "N d 4"], action: CandidateSet) -> CopiedCanvas:
        """Predict an edit.

        Args:
            data: working grid, target, input and clipboard, colors -1 .. 9; the target is not read.
            action: one box with its one-hot operation.
        """
        cells = _look(jnp.round(data).astype(jnp.int32), action)
        dtype = self.passes.dtype
        flags = cells.flags.astype(dtype)
        operation = action.features.astype(dtype)[None, None]
        starts = flags[..., 0] * jax.nn.sigmoid(self.starts(operation))[..., 0]  # flag 0: the cell is in the box
        passes = jax.nn.sigmoid(_PASS_SCALE * self.passes)
        mark = spread(starts, jnp.where(cells.equal, passes[1], passes[0]))
        hidden = self.flags(jnp.concatenate([flags, mark[..., None]], axis=-1)) + self.action(operation)
        logits = self.sources(jax.nn.relu(hidden)).astype(jnp.float32)
        return CopiedCanvas(
            Copied(cells.grid_sources, jax.nn.softmax(logits[..., :_GRID_SOURCES], axis=-1)),
            Copied(cells.clipboard_sources, jax.nn.softmax(logits[..., _GRID_SOURCES:], axis=-1)),
        )


def spread(starts: Float[Array, "N d"], passes: Float[Array, "4 N d"]) -> Float[Array, "N d"]:
    """Spread a mark over the grid: a cell has its own start, or what the best of its neighbors passes on.

    The row 5 5 2 with the start 1 0 0, where equal neighbors pass on 0.9 and others 0.1: after one step 1 0.9 0, after
    two 1 0.9 0.09. Paths of up to 2 (N + d) steps count.

    Args:
        starts: of each cell, 0 .. 1.
        passes: share of the mark that the neighbors below, above, to the right and to the left pass on, 0 .. 1.
    """

    def step(mark: Float[Array, "N d"], _: None) -> tuple[Float[Array, "N d"], None]:
        return jnp.maximum(starts, (passes * jnp.stack(_neighbors(mark, 0.0))).max(axis=0)), None

    return jax.lax.scan(step, starts, None, 2 * sum(starts.shape))[0]


class _Box(NamedTuple):
    """One box, inclusive."""

    top: Int32[Array, ""]
    left: Int32[Array, ""]
    bottom: Int32[Array, ""]
    right: Int32[Array, ""]


class _Cells(NamedTuple):
    """What the network is given of each cell."""

    flags: Bool[Array, "N d flags"]
    equal: Bool[Array, "4 N d"]  # whether the neighbors below, above, to the right and to the left have its color
    grid_sources: Int32[Array, "N d sources"]  # colors
    clipboard_sources: Int32[Array, "N d 3"]


def _look(data: Int32[Array, "N d 4"], action: CandidateSet) -> _Cells:
    grid, _, source, clipboard = jnp.moveaxis(data, -1, 0)
    top, drawn_bottom = ends(action.rows)
    left, drawn_right = ends(action.columns)
    # The box as it acts on the grid: limited to the active area, and all of that where nothing is left.
    active = grid > PADDING
    last_row = active[:, 0].sum(dtype=jnp.int32) - 1
    last_column = active[0].sum(dtype=jnp.int32) - 1
    is_empty = (top > jnp.minimum(drawn_bottom, last_row)) | (left > jnp.minimum(drawn_right, last_column))
    box = _Box(
        top=jnp.where(is_empty, 0, top),
        left=jnp.where(is_empty, 0, left),
        bottom=jnp.where(is_empty, last_row, jnp.minimum(drawn_bottom, last_row)),
        right=jnp.where(is_empty, last_column, jnp.minimum(drawn_right, last_column)),
    )
    row, column = jnp.indices(grid.shape, jnp.int32)
    rows, columns = _places(row, column, box)
    colors = _colors_at(grid, rows, columns)
    in_box = (rows >= box.top) & (rows <= box.bottom) & (columns >= box.left) & (columns <= box.right)
    from_clipboard = _colors_at(clipboard, row - box.top, column - box.left)
    flags = [
        *in_box,
        *(colors > PADDING),
        from_clipboard > PADDING,
        source > PADDING,
        row <= drawn_bottom,
        column <= drawn_right,
        jnp.broadcast_to(is_empty, grid.shape),
    ]
    operation = jnp.argmax(action.features).astype(jnp.int32)
    constants = [jnp.full_like(grid, color) for color in (operation % NUM_COLORS, 0, PADDING)]
    *for_grid, for_clipboard = colors
    return _Cells(
        flags=jnp.stack(flags, axis=-1),
        equal=jnp.stack(_neighbors(grid, PADDING)) == grid[None],
        grid_sources=jnp.stack([*for_grid, from_clipboard, source, *constants], axis=-1),
        clipboard_sources=jnp.stack([clipboard, for_clipboard, constants[-1]], axis=-1),
    )


def _places(
    row: Int32[Array, "N d"], column: Int32[Array, "N d"], box: _Box
) -> tuple[Int32[Array, "places N d"], Int32[Array, "places N d"]]:
    """Return rows and columns of the places that a cell looks at.

    In a box of rows 0 .. 1 and columns 0 .. 2 the cell (0, 0) is mirrored to (0, 2) and (1, 0), turned to (1, 0) and
    (0, 2).
    """
    down = row - box.top
    across = column - box.left
    places = [
        (row, column),  # itself, and its neighbors
        (row + 1, column),
        (row - 1, column),
        (row, column + 1),
        (row, column - 1),
        (row, box.right - across),  # mirrored in the box
        (box.bottom - down, column),
        (box.bottom - across, box.left + down),  # turned about the corner of the box
        (box.top + across, box.right - down),
        (row + box.top, column + box.left),  # the cell of the box that would come here if the box began at the origin
    ]
    rows, columns = zip(*places, strict=True)
    return jnp.stack(rows), jnp.stack(columns)


def _colors_at(
    grid: Int32[Array, "N d"], rows: Int32[Array, "*places N d"], columns: Int32[Array, "*places N d"]
) -> Int32[Array, "*places N d"]:
    """Return the colors at places, -1 of those beyond the canvas."""
    height, width = grid.shape
    on_canvas = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return jnp.where(on_canvas, grid.reshape(-1)[jnp.where(on_canvas, rows * width + columns, 0)], PADDING)


def _neighbors(grid: Array, beyond: float) -> list[Array]:
    """Return the grids of the neighbors below, above, to the right and to the left; ``beyond`` outside the canvas."""
    padded = jnp.pad(grid, 1, constant_values=beyond)
    return [padded[2:, 1:-1], padded[:-2, 1:-1], padded[1:-1, 2:], padded[1:-1, :-2]]
