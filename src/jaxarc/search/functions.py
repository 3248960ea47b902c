"""Functions from image to image: choose colors, crop, mirror, move, scale, count. Each takes and returns a batch."""

from dataclasses import replace
from typing import Final

import numpy as np

from jaxarc.search.images import (
    NUM_COLORS,
    Images,
    bounding_boxes,
    color_counts,
    common_color,
    gathered,
    windows,
)


def keep_color(images: Images, color: int) -> Images:
    """Keep the cells of one color."""
    return images.with_cells(np.where(images.cells == color, images.cells, 0))


def drop_color(images: Images, color: int) -> Images:
    """Clear the cells of one color."""
    return images.with_cells(np.where(images.cells == color, 0, images.cells))


def paint(images: Images, color: int) -> Images:
    """Give all cells that are not 0 one color."""
    return images.with_cells((images.cells != 0) * np.uint8(color))


def keep_commonest(images: Images) -> Images:
    """Keep the cells of the commonest color."""
    return images.with_cells(np.where(images.cells == common_color(images)[:, None, None], images.cells, 0))


def keep_rarest(images: Images) -> Images:
    """Keep the cells of the rarest color that is there."""
    counts = color_counts(images).astype(np.int64)
    counts[:, 0] = 0
    rarest = np.where(counts == 0, 10**6, counts).argmin(1)
    return images.with_cells(np.where(images.cells == rarest[:, None, None], images.cells, 0))


def drop_commonest(images: Images) -> Images:
    """Clear the cells of the commonest color."""
    return images.with_cells(np.where(images.cells == common_color(images)[:, None, None], 0, images.cells))


def crop(images: Images) -> Images:
    """Cut out the box of all cells that are not 0."""
    return windows(images, *bounding_boxes(images.cells != 0))


def crop_to_color(images: Images, color: int) -> Images:
    """Cut out the box of the cells of one color, with all that is in it."""
    return windows(images, *bounding_boxes(images.cells == color))


def peel(images: Images) -> Images:
    """Cut off the outer ring of cells."""
    one = np.ones_like(images.height)
    return windows(images, one, one, images.height - 2, images.width - 2)


def surround(images: Images) -> Images:
    """Add a ring of the commonest color around the image."""
    one = np.ones_like(images.height)
    grown = windows(images, -one, -one, images.height + 2, images.width + 2)
    grown_inside = grown.inside
    ring = grown_inside.copy()
    ring[:, 1:, 1:] &= ~images.inside[:, :-1, :-1]
    return grown.with_cells(np.where(ring, common_color(images)[:, None, None], grown.cells))


def box(images: Images) -> Images:
    """Fill the whole image with its commonest color."""
    return images.with_cells(images.inside * common_color(images)[:, None, None])


def invert(images: Images) -> Images:
    """Give cells of color 0 the commonest color, and clear all others."""
    return images.with_cells(((images.cells == 0) & images.inside) * common_color(images)[:, None, None])


def fill_ground(images: Images) -> Images:
    """Give cells of color 0 the commonest color, and leave all others."""
    ground = (images.cells == 0) & images.inside
    return images.with_cells(np.where(ground, common_color(images)[:, None, None], images.cells))


def to_origin(images: Images) -> Images:
    """Set the position to 0, 0."""
    return replace(images, row=np.zeros_like(images.row), column=np.zeros_like(images.column))


def to_center(images: Images) -> Images:
    """Set the position so that images of a list have a common center."""
    return replace(images, row=-(images.height // 2), column=-(images.width // 2))


def move(images: Images, down: int, right: int) -> Images:
    """Shift the position."""
    return replace(images, row=images.row + np.int32(down), column=images.column + np.int32(right))


RIGID: Final = ("turn_90", "turn_180", "turn_270", "flip_rows", "flip_columns", "transpose", "anti_transpose")


def rigid(images: Images, kind: str) -> Images:
    """Turn counterclockwise or mirror, at the same position."""
    span = np.arange(images.frame)[None]
    if kind in ("turn_90", "turn_270", "transpose", "anti_transpose"):
        images = replace(images, cells=images.cells.transpose(0, 2, 1).copy(), height=images.width, width=images.height)
    rows = columns = np.broadcast_to(span, (len(images), images.frame))
    if kind in ("turn_90", "turn_180", "flip_rows", "anti_transpose"):
        rows = images.height[:, None] - 1 - span
    if kind in ("turn_270", "turn_180", "flip_columns", "anti_transpose"):
        columns = images.width[:, None] - 1 - span
    return gathered(images, rows, columns, images.height, images.width)


def shift(images: Images, down: int, right: int) -> Images:
    """Shift the cells within the image; what leaves it is lost, and color 0 comes in."""
    span = np.arange(images.frame)
    rows, columns = (np.broadcast_to(span - step, (len(images), images.frame)) for step in (down, right))
    moved = gathered(images, rows, columns, images.height, images.width)
    return moved.with_cells(moved.cells * images.inside)


def trail(images: Images, down: int, right: int) -> Images:
    """Repeat what the image holds in one direction, at steps of its own height and width, until the edge."""
    _, _, height, width = bounding_boxes(images.cells != 0)
    result = images.cells
    span = np.arange(images.frame)
    for count in range(1, images.frame):
        rows, columns = span - count * down * height[:, None], span - count * right * width[:, None]
        copy = gathered(images, rows, columns, images.height, images.width).cells
        if not copy.any():
            break
        result = np.where(result == 0, copy, result)
    return images.with_cells(result * images.inside)


def pad_to(images: Images, height: int, width: int) -> Images:
    """Enlarge the image to a size with color 0, below and at the right."""
    tall, wide = np.maximum(images.height, height), np.maximum(images.width, width)
    grown = images.height * images.width < height * width
    zero = np.zeros_like(tall)
    return windows(images, zero, zero, tall, wide).only(grown & (tall == height) & (wide == width))


def pad(images: Images, down: int, right: int) -> Images:
    """Enlarge the image to a multiple of its size with color 0, below and at the right."""
    zero = np.zeros_like(images.height)
    return windows(images, zero, zero, images.height * down, images.width * right)


HALVES: Final = ("top", "bottom", "left", "right")


def half(images: Images, side: str) -> Images:
    """Cut out a half; with an odd size the middle line belongs to neither."""
    zero = np.zeros_like(images.height)
    height = images.height // 2 if side in ("top", "bottom") else images.height
    width = images.width // 2 if side in ("left", "right") else images.width
    top = images.height - height if side == "bottom" else zero
    left = images.width - width if side == "right" else zero
    return windows(images, top, left, height, width)


def upscale(images: Images, down: int, right: int) -> Images:
    """Repeat each cell, so that it becomes a block."""
    span = np.broadcast_to(np.arange(images.frame), (len(images), images.frame))
    return gathered(images, span // down, span // right, images.height * down, images.width * right)


def upscale_by_colors(images: Images) -> Images:
    """Repeat each cell, so that it becomes a block with as many rows and columns as the image has colors but 0."""
    number = (color_counts(images)[:, 1:] > 0).sum(1)
    place = np.arange(images.frame) // np.maximum(number, 1)[:, None]
    return gathered(images, place, place, images.height * number, images.width * number).only(number > 1)


def tile(images: Images, down: int, right: int) -> Images:
    """Repeat the image."""
    span = np.arange(images.frame)
    height, width = np.maximum(images.height, 1)[:, None], np.maximum(images.width, 1)[:, None]
    return gathered(images, span % height, span % width, images.height * down, images.width * right)


def _mirrored(span: np.ndarray, size: np.ndarray) -> np.ndarray:
    place = span % np.maximum(2 * size, 1)[:, None]
    return np.where(place < size[:, None], place, 2 * size[:, None] - 1 - place)


def mirror_tile(images: Images, down: int, right: int) -> Images:
    """Repeat the image, each copy the mirror image of the one before."""
    span = np.arange(images.frame)
    rows, columns = _mirrored(span, images.height), _mirrored(span, images.width)
    return gathered(images, rows, columns, images.height * down, images.width * right)


def downscale(images: Images) -> Images:
    """Undo an upscale: each block of equal cells becomes one, with the largest blocks that all fit.

    ``1 1 2 2 2 2`` changes at 2 and ends at 6; blocks of their greatest common divisor, 2, give ``1 2 2``.
    """
    span = np.arange(1, images.frame)
    sizes = []
    for axis, size in ((1, images.height), (2, images.width)):
        changes = (np.diff(images.cells, axis=axis) != 0).any(3 - axis) & (span < size[:, None])
        steps = np.concatenate([np.where(changes, span, 0), size[:, None]], 1)
        sizes.append(np.maximum(np.gcd.reduce(steps, axis=1), 1))
    span = np.arange(images.frame)
    rows, columns = span * sizes[0][:, None], span * sizes[1][:, None]
    return gathered(images, rows, columns, images.height // sizes[0], images.width // sizes[1])


def _kept_lines(images: Images, keep_rows: np.ndarray, keep_columns: np.ndarray) -> Images:
    """Keep some rows and columns; a stable sort moves them to the front."""
    rows = np.argsort(~keep_rows, axis=1, kind="stable")
    columns = np.argsort(~keep_columns, axis=1, kind="stable")
    return gathered(images, rows, columns, keep_rows.sum(1), keep_columns.sum(1))


def drop_empty_lines(images: Images) -> Images:
    """Cut out rows and columns without a color."""
    return _kept_lines(images, (images.cells != 0).any(2), (images.cells != 0).any(1))


def drop_repeated_lines(images: Images) -> Images:
    """Cut out each row and column that equals the one before it."""
    span = np.arange(images.frame)
    rows, columns = span < images.height[:, None], span < images.width[:, None]
    rows[:, 1:] &= (np.diff(images.cells, axis=1) != 0).any(2)
    columns[:, 1:] &= (np.diff(images.cells, axis=2) != 0).any(1)
    return _kept_lines(images, rows, columns)


def kronecker(images: Images) -> Images:
    """Put a copy of the image at each cell of itself that is not 0."""
    span = np.arange(images.frame)
    height, width = np.maximum(images.height, 1)[:, None], np.maximum(images.width, 1)[:, None]
    outer = gathered(images, span // height, span // width, images.height**2, images.width**2)
    inner = gathered(images, span % height, span % width, images.height**2, images.width**2)
    return outer.with_cells(np.where(outer.cells != 0, inner.cells, 0))


def colors_by_count(images: Images) -> Images:
    """Return a column of the colors but 0, the commonest first."""
    counts = color_counts(images)
    counts[:, 0] = 0
    order = np.argsort(-counts, axis=1, kind="stable")
    number = (counts > 0).sum(1).astype(np.int32)
    cells = np.zeros_like(images.cells)
    side = min(NUM_COLORS, images.frame)
    cells[:, :side, 0] = np.where(np.arange(side) < number[:, None], order[:, :side], 0)
    width = (number > 0).astype(np.int32)
    return replace(images, cells=cells, height=number, width=width).only((number > 0) & (number <= images.frame))


def bars(images: Images) -> Images:
    """Return a row of as many cells of the commonest color as the image has cells that are not 0."""
    return bar(images, (images.cells != 0).sum((1, 2)))


def bar(images: Images, number: np.ndarray) -> Images:
    """Return a row of some cells of the commonest color; one of none, or that is too long, is no image."""
    number = number.astype(np.int32)
    cells = np.zeros_like(images.cells)
    cells[:, 0] = (np.arange(images.frame) < number[:, None]) * common_color(images)[:, None]
    one = (number > 0).astype(np.int32)
    return replace(images, cells=cells, height=one, width=number).only((number > 0) & (number <= images.frame))


def exchange_colors(images: Images) -> Images:
    """Exchange the two colors of an image that has two."""
    counts = color_counts(images)
    counts[:, 0] = 0
    order = np.argsort(-counts, axis=1, kind="stable")
    first, second = order[:, 0, None, None], order[:, 1, None, None]
    swapped = np.where(images.cells == first, second, np.where(images.cells == second, first, images.cells))
    swapped = np.where(images.cells == 0, 0, swapped)
    return images.with_cells(swapped).only((counts > 0).sum(1) == 2)
