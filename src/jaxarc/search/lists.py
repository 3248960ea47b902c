"""Functions that split an image into a list of images, and functions that make one image or a list of a list."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Int64

from jaxarc.search.images import Images, bounding_boxes, color_counts, common_color, windows
from jaxarc.search.marks import EIGHT, FOUR, counted, labelled, labelled_colors

LENGTH: Final = 16  # images of a list at most
_SMALLEST_FRAME: Final = 8  # cells


def _copies(image: Images, count: int) -> Images:
    return image.take(np.zeros(count, np.int64))


def _cropped(parts: Images) -> Images:
    return windows(parts, *bounding_boxes(parts.cells != 0))


def _colors(image: Images) -> Images:
    counts = color_counts(image)[0]
    colors = 1 + np.argsort(-counts[1:], kind="stable")
    colors = colors[counts[colors] > 0]
    is_own = image.cells == colors[:, None, None]
    return _copies(image, len(colors)).with_cells(np.where(is_own, image.cells, 0))


def _objects(image: Images, neighbors: np.ndarray, per_color: bool, least: int = 1) -> Images:
    """Return the objects of at least so many cells."""
    labels, _ = labelled_colors(image, neighbors) if per_color else labelled(image.cells != 0, neighbors)
    if least > 1:
        labels[np.bincount(labels.ravel())[labels] < least] = 0
    return _labelled(image, labels)


def _labelled(image: Images, labels: Int64[np.ndarray, "1 F F"]) -> Images:
    """Return one image of each label, in reading order; none where there are too many."""
    names, first = np.unique(labels, return_index=True)
    names = names[np.argsort(first)]
    names = names[names > 0]
    names = names[: len(names) if len(names) <= LENGTH else 0]
    cells = np.where(labels == names[:, None, None], image.cells, 0)
    return _cropped(_copies(image, len(names)).with_cells(cells))


def _windows(image: Images, neighbors: np.ndarray, is_framed: bool) -> Images:
    """Cut out the box of each object of one color with all that is in it; a frame has no other color at its edge."""
    parts = _objects(image, neighbors, per_color=True, least=_SMALLEST_FRAME if is_framed else 1)
    whole = _copies(image, len(parts))
    found = windows(whole, parts.row - whole.row, parts.column - whole.column, parts.height, parts.width)
    differs = (found.cells != parts.cells) & found.inside
    kept = (found.height > 2) & (found.width > 2)
    if is_framed:
        index = np.arange(len(found))
        edges = (differs[:, 0], differs[:, :, 0], differs[index, found.height - 1], differs[index, :, found.width - 1])
        kept &= ~np.logical_or.reduce(edges).any(1)
    else:
        kept &= differs.any((1, 2))
    return found.take(kept)


def _ground(image: Images) -> Images:
    """Regions of color 0 become images of color 1."""
    labels, _ = labelled((image.cells == 0) & image.inside, FOUR)
    return _labelled(image.with_cells((labels > 0) * np.uint8(1)), labels)


def _boxes(image: Images, boxes: list[tuple[int, int, int, int]]) -> Images:
    """Cut out boxes, given as top, left, height and width."""
    return windows(_copies(image, len(boxes)), *np.array(boxes, np.int64).reshape(-1, 4).T)


def _lines(image: Images, axis: int) -> Images:
    height, width = int(image.height[0]), int(image.width[0])
    if axis == 1:
        return _boxes(image, [(place, 0, 1, width) for place in range(height if height <= LENGTH else 0)])
    return _boxes(image, [(0, place, height, 1) for place in range(width if width <= LENGTH else 0)])


def _equal_parts(image: Images, count: int, axis: int) -> Images:
    """Cut into equal parts, with a line between them or without."""
    height, width = int(image.height[0]), int(image.width[0])
    size = height if axis == 1 else width
    gap = 0 if size % count == 0 else 1
    part, rest = divmod(size - gap * (count - 1), count)
    starts = [place * (part + gap) for place in range(count if rest == 0 and part > 0 else 0)]
    return _boxes(image, [(at, 0, part, width) if axis == 1 else (0, at, height, part) for at in starts])


def _cells_of_grid(image: Images) -> Images:
    """Cut along rows and columns of one color from edge to edge, of the highest color that gives a list."""
    grid = image.grid(0)
    found: list[tuple[int, int, int, int]] = []
    for color in np.unique(grid):
        rows, columns = (grid == color).all(1), (grid == color).all(0)
        if rows.all() or not (rows.any() or columns.any()):
            continue
        cut = [(top, left, end - top, right - left) for top, end in _runs(~rows) for left, right in _runs(~columns)]
        if 1 < len(cut) <= LENGTH:
            found = cut
    return _boxes(image, found)


def _runs(mask: Bool[np.ndarray, " n"]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


SPLITS: Final[dict[str, Callable[[Images], Images]]] = {
    "colors": _colors,
    "cropped_colors": lambda image: _cropped(_colors(image)),
    "objects": lambda image: _objects(image, EIGHT, per_color=False),
    "objects_4": lambda image: _objects(image, FOUR, per_color=False),
    "one_color_objects": lambda image: _objects(image, EIGHT, per_color=True),
    "one_color_objects_4": lambda image: _objects(image, FOUR, per_color=True),
    "frames": lambda image: _windows(image, FOUR, is_framed=True),
    "windows": lambda image: _windows(image, EIGHT, is_framed=False),
    "ground": _ground,
    "rows": lambda image: _lines(image, 1),
    "columns": lambda image: _lines(image, 2),
    "cells_of_grid": _cells_of_grid,
    **{
        f"{count}_{name}": lambda image, count=count, axis=axis: _equal_parts(image, count, axis)
        for count in (2, 3, 4)
        for name, axis in (("above", 1), ("beside", 2))
    },
}
"""Name -> function that returns the parts of one image."""


def _symmetry_faults(images: Images) -> np.ndarray:
    """How many cells differ from their mirror image, of the better of both flips."""
    faults = []
    for axis in (1, 2):
        size = images.height if axis == 1 else images.width
        place = np.clip(size[:, None] - 1 - np.arange(images.frame), 0, None)
        place = place[:, :, None] if axis == 1 else place[:, None, :]
        mirrored = np.take_along_axis(images.cells, np.broadcast_to(place, images.cells.shape), axis)
        faults.append(((mirrored != images.cells) & images.inside).sum((1, 2)))
    return np.minimum(*faults)


def _num_holes(images: Images) -> np.ndarray:
    return counted(labelled((images.cells == 0) & images.inside, FOUR)[0])


FEATURES: Final[dict[str, Callable[[Images], np.ndarray]]] = {
    "cells": lambda images: (images.cells != 0).sum((1, 2)),
    "area": lambda images: images.height * images.width,
    "ground": lambda images: images.height * images.width - (images.cells != 0).sum((1, 2)),
    "colors": lambda images: (color_counts(images)[:, 1:] > 0).sum(1),
    "row": lambda images: images.row,
    "column": lambda images: images.column,
    "height": lambda images: images.height,
    "width": lambda images: images.width,
    "symmetry": lambda images: -_symmetry_faults(images),
    "regions": _num_holes,
    "rarest": lambda images: -_rare_cells(images),
}
"""Name -> a number for each image, by which a list is ordered or one is picked."""


def _rare_cells(images: Images) -> np.ndarray:
    counts = np.sort(color_counts(images)[:, 1:], axis=1)[:, ::-1]
    return counts[:, 0] - counts[:, 1:].sum(1)


def _size_keys(images: Images) -> Int64[np.ndarray, " N"]:
    return images.height.astype(np.int64) * 32 + images.width


KEYS: Final[dict[str, Callable[[Images], np.ndarray]]] = {
    "picture": lambda images: _numbered(images.cells, images),
    "shape": lambda images: _numbered(images.cells != 0, images),
    "size": _size_keys,
    "color": common_color,
}
"""Name -> a number that is equal for images of one picture, shape (any color), size or color."""


def _numbered(cells: np.ndarray, images: Images) -> Int64[np.ndarray, " N"]:
    rows = np.column_stack([cells.reshape(len(images), -1), images.height, images.width])
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


Numbers = Int64[np.ndarray, " L"]


def _pick(values: np.ndarray, numbers: Numbers, which: str) -> Numbers:
    """Return the image with the highest or lowest value; none where two different ones share it."""
    best = np.unique(_keep(values, numbers, which))
    return best if len(best) == 1 else best[:0]


def _order(values: np.ndarray, numbers: Numbers, which: str) -> Numbers:
    """Sort by value; equal values keep their order."""
    return numbers[np.argsort(-values if which == "most" else values, kind="stable")]


def _keep(values: np.ndarray, numbers: Numbers, which: str) -> Numbers:
    """Keep the images with the highest value, with the lowest, or those without."""
    is_best = values == (values.max() if which.endswith("most") else values.min())
    return numbers[~is_best if which.startswith("not_") else is_best]


def _odd(keys: np.ndarray, numbers: Numbers, which: str) -> Numbers:
    """Return the image whose key no other image has, or the first one with the commonest key."""
    same = (keys[:, None] == keys).sum(1)
    if which == "common":
        return numbers[[same.argmax()]] if same.max() > 1 else numbers[:0]
    alone = numbers[same == 1]
    return alone if len(alone) == 1 else alone[:0]


CHOICES: Final = {"pick": _pick, "odd": _odd, "order": _order, "keep": _keep}
"""Name of a word -> images of a list, by number, that it takes by their values."""


def stacked(images: Images, is_first_on_top: bool) -> Images:
    """Put the images of a list upon one another at their positions; the result has their common box."""
    top, left = images.row.min(), images.column.min()
    height, width = (images.row + images.height).max() - top, (images.column + images.width).max() - left
    cells = np.zeros((1, images.frame, images.frame), np.uint8)
    if max(height, width) > images.frame:
        return images.take([0]).only(np.zeros(1, np.bool_))
    for index in range(len(images)) if is_first_on_top else reversed(range(len(images))):
        row, column, grid = images.row[index] - top, images.column[index] - left, images.grid(index)
        place = cells[0, row : row + grid.shape[0], column : column + grid.shape[1]]
        place[:] = np.where(place == 0, grid, place)
    return Images(cells, *(np.array([value], np.int32) for value in (top, left, height, width)))


def joined(images: Images, axis: int) -> Images:
    """Put the images of a list in a line, below one another (axis 1) or beside one another (axis 2)."""
    size = images.height if axis == 1 else images.width
    start, zero = (np.cumsum(size) - size).astype(np.int32), np.zeros_like(size)
    row, column = (start, zero) if axis == 1 else (zero, start)
    return stacked(replace(images, row=row, column=column), is_first_on_top=True)


LOGIC: Final = ("and", "xor", "nor", "first_only")


def combined(first: Images, second: Images, kind: str) -> Images:
    """Compare two images of one size cell by cell; the result has the commonest color of the first, or 1."""
    a, b = first.cells != 0, second.cells != 0
    result = {"and": a & b, "xor": a ^ b, "nor": ~a & ~b & first.inside, "first_only": a & ~b}[kind]
    same = (first.height == second.height) & (first.width == second.width)
    color = 1 if kind == "nor" else np.where(a, first.cells, second.cells)
    zero = np.zeros_like(first.row)
    return Images((result * color).astype(np.uint8), zero, zero, first.height, first.width).only(same)
