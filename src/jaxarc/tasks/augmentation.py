"""Another task of the same rule: every grid turned or mirrored alike, colors permuted, demonstrations in another order.

An augmentation is applied to all grids of a task, answers included, and can be undone: a prediction for the augmented
task becomes one for the task itself, so that predictions under several augmentations can vote.
"""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Int8, UInt32

from jaxarc.config import AugmentationConfig
from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.prng import as_typed_key, fast_bits, to_randint
from jaxarc.types import JaxArcTask, PRNGKey

# Bits of a symmetry: the diagonal flip comes first, then the others.
UP_DOWN = 1
LEFT_RIGHT = 2
DIAGONAL = 4


class Augmentation(eqx.Module):
    """A change of all grids of a task; a part that is None changes nothing.

    Symmetry 5 = 4 + 1 transposes a grid and then turns it upside down, a quarter turn counterclockwise. ``colors`` is a
    permutation: with 0 2 1 3 .. 9 red and blue swap. ``order`` 2 0 1 shows the third demonstration first.
    """

    symmetry: Int8[Array, "*B"] | None  # bits: 4 rows become columns, then 1 upside down, then 2 left to right
    colors: Int8[Array, "*B 10"] | None  # color c becomes colors[c]
    order: Int8[Array, "*B P"] | None  # demonstration p of the new task is demonstration order[p] of the old


def draw_augmentation(
    key: PRNGKey, num_train: Int[Array, ""] | int, num_slots: int, config: AugmentationConfig
) -> Augmentation:
    """Draw an augmentation of a task, each one that the config allows as likely as any other.

    Args:
        key: random key, typed or raw.
        num_train: demonstrations of the task; the entries of ``order`` past them stay in place.
        num_slots: length P of ``order``, static, at least ``num_train``.
        config: the kinds of change to draw.
    """
    # One word for the symmetry, ten for the colors, one for each demonstration, in one draw. The words are drawn also
    # where the config leaves a part out, so that switching off one part does not change the others.
    words = fast_bits(as_typed_key(key), 1 + NUM_COLORS + num_slots)
    symmetry = None
    colors = None
    order = None
    if config.num_symmetries > 1:
        symmetry = to_randint(words[0], jnp.int32(config.num_symmetries)).astype(jnp.int8)
    if config.recolor != "none":
        fixed = jnp.arange(NUM_COLORS, dtype=jnp.int32) < (1 if config.recolor == "keep_black" else 0)
        # The word 0 has rank 0, so black stays black; the other nine words are ranked among themselves.
        colors = _ranks(jnp.where(fixed, jnp.uint32(0), words[1 : 1 + NUM_COLORS]))
    if config.shuffle_demos:
        unused = jnp.arange(num_slots, dtype=jnp.int32) >= num_train
        # The largest word ranks last, so slots without a demonstration stay behind the others, in their order.
        order = _ranks(jnp.where(unused, jnp.uint32(0xFFFFFFFF), words[1 + NUM_COLORS :]))
    return Augmentation(symmetry, colors, order)


def augment_grid(grid: Int8[Array, "H W"], augmentation: Augmentation) -> Int8[Array, "H W"]:
    """Turn and recolor one grid; its active area stays at the top left.

    A symmetry that makes rows of columns needs a canvas as high as wide.
    """
    if augmentation.symmetry is not None:
        grid = turn_grid(grid, augmentation.symmetry)
    if augmentation.colors is None:
        return grid
    return recolor(grid.reshape(-1), augmentation.colors).reshape(grid.shape)


def restore_grid(grid: Int8[Array, "H W"], augmentation: Augmentation) -> Int8[Array, "H W"]:
    """Undo :func:`augment_grid`, of a grid of the task or of a prediction of any size."""
    return augment_grid(grid, inverse(augmentation))


def augment_task(task: JaxArcTask, augmentation: Augmentation) -> JaxArcTask:
    """Apply an augmentation to every grid of a task, and to the order of its demonstrations."""
    inputs = task.input_grids_examples
    outputs = task.output_grids_examples
    if augmentation.order is not None:
        order = augmentation.order.astype(jnp.int32)
        inputs = inputs[order]
        outputs = outputs[order]
    augment_grids = jax.vmap(augment_grid, (0, None))
    inputs = augment_grids(inputs, augmentation)
    outputs = augment_grids(outputs, augmentation)
    test_inputs = augment_grids(task.test_input_grids, augmentation)
    test_outputs = augment_grids(task.true_test_output_grids, augmentation)
    return dataclasses.replace(
        task,
        input_grids_examples=inputs,
        output_grids_examples=outputs,
        test_input_grids=test_inputs,
        true_test_output_grids=test_outputs,
    )


def restore_task(task: JaxArcTask, augmentation: Augmentation) -> JaxArcTask:
    """Undo :func:`augment_task`."""
    return augment_task(task, inverse(augmentation))


def inverse(augmentation: Augmentation) -> Augmentation:
    """Return the augmentation that undoes this one."""
    symmetry = augmentation.symmetry
    colors = augmentation.colors
    order = augmentation.order
    if symmetry is not None:
        # Flips undo themselves. Transpose, then up-down is undone by up-down, then transpose, which is the same as
        # transpose, then left-right: behind a transposition the two flips swap. The inverse of 5 = 4 + 1 is 6 = 4 + 2.
        swapped = (symmetry & DIAGONAL) | ((symmetry & UP_DOWN) << 1) | ((symmetry & LEFT_RIGHT) >> 1)
        symmetry = jnp.where((symmetry & DIAGONAL) > 0, swapped, symmetry)
    colors = None if colors is None else _inverse(colors)
    order = None if order is None else _inverse(order)
    return Augmentation(symmetry, colors, order)


def turn_grid(grid: Int8[Array, "H W"], symmetry: Int[Array, ""]) -> Int8[Array, "H W"]:
    """Mirror or turn the active area of a grid; see :class:`Augmentation` for the bits.

    Each new cell looks up its color. Upside down, cell (0, 0) of a grid with 3 rows reads row ``3 - 1 - 0 = 2``; after
    a transposition it reads the cell with row and column swapped. Cells outside the new active area become padding.
    """
    height, width = grid.shape
    symmetry = jnp.asarray(symmetry, jnp.int32)
    # The active area begins at the top left, so its first column and its first row tell its size. A
    # transposition swaps the two: 2x3 becomes 3x2.
    is_diagonal = (symmetry & DIAGONAL) > 0
    rows = (grid[:, 0] > PADDING).sum(dtype=jnp.int32)
    columns = (grid[0] > PADDING).sum(dtype=jnp.int32)
    new_rows = jnp.where(is_diagonal, columns, rows)
    new_columns = jnp.where(is_diagonal, rows, columns)
    row = jnp.arange(height, dtype=jnp.int32)[:, None]
    column = jnp.arange(width, dtype=jnp.int32)[None]
    inside = (row < new_rows) & (column < new_columns)
    # From the new cell back to the old one, so the steps come in reverse order: undo the flips, then the transposition.
    row = jnp.where((symmetry & UP_DOWN) > 0, new_rows - 1 - row, row)
    column = jnp.where((symmetry & LEFT_RIGHT) > 0, new_columns - 1 - column, column)
    index = jnp.where(is_diagonal, column * width + row, row * width + column)
    moved = jnp.take(grid.reshape(-1), index, mode="clip")
    return jnp.where(inside, moved, jnp.int8(PADDING))


def recolor(grid: Int8[Array, "*B N"], colors: Int8[Array, "*B 10"]) -> Int8[Array, "*B N"]:
    """Replace color ``c`` by ``colors[c]`` in every cell; padding stays padding."""
    # A tree over the bits of the color: half the work of ten comparisons, and many times as fast as a lookup per cell.
    # Bit 1 chooses within the pairs (0, 1), (2, 3), ... (8, 9), which leaves five candidates; bit 2 leaves three, bit 4
    # two, bit 8 one. Color 6 is 0b0110: 6 of (6, 7), then (6, 7) of (4, 5) and (6, 7), then (4..7), then (0..7).
    new = [colors[..., color : color + 1] for color in range(NUM_COLORS)]
    for bit in (1, 2, 4, 8):
        is_set = (grid & jnp.int8(bit)) != 0
        new = [new[i] if i + 1 == len(new) else jnp.where(is_set, new[i + 1], new[i]) for i in range(0, len(new), 2)]
    return jnp.where(grid > PADDING, new[0], grid)


@functools.partial(jax.jit, static_argnames=("grid_shape", "num_symmetries"))
def turn_all(
    grids: Int8[Array, "N HW"], grid_shape: tuple[int, int], num_symmetries: int
) -> Int8[Array, "{num_symmetries}*N HW"]:
    """Stack copies of flat grids under the first ``num_symmetries`` symmetries, one after the other."""
    # [N, H, W] -> [symmetries, N, H, W] -> [symmetries * N, HW]: all grids under symmetry 0, then all under symmetry 1,
    # so a pair's row under symmetry s is s * N further on.
    square = grids.reshape(-1, *grid_shape)
    turned = jax.vmap(jax.vmap(turn_grid, (0, None)), (None, 0))(square, jnp.arange(num_symmetries, dtype=jnp.int32))
    return turned.reshape(-1, grids.shape[1])


def _ranks(words: UInt32[Array, " N"]) -> Int8[Array, " N"]:
    """Rank each word among all, which makes a random permutation of up to 32 random words.

    The words 70, 10, 40 have the ranks 2, 0, 1. Equal words would share a rank, so the five low bits of each word are
    replaced by its index.
    """
    low = jnp.uint32(31)
    words = (words & ~low) | jnp.arange(words.shape[0], dtype=jnp.uint32)
    ranks = jnp.zeros(words.shape, jnp.int8)
    for word in words:  # written out it is one kernel; a sum over an axis would be several
        ranks = ranks + (word < words).astype(jnp.int8)
    return ranks


def _inverse(permutation: Int8[Array, " N"]) -> Int8[Array, " N"]:
    """Invert a permutation: 2 0 1 has value 0 at index 1, value 1 at index 2, value 2 at index 0, so 1 2 0."""
    index = jnp.arange(permutation.shape[-1], dtype=jnp.int8)
    return jnp.where(permutation[None] == index[:, None], index[None], jnp.int8(0)).sum(axis=1, dtype=jnp.int8)
