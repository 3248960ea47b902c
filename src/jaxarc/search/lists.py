"""Functions that split an image into a list of images, and functions that make one image or a list of a list."""

from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Bool, Int64

from jaxarc.search.functions import color_counts, common_color
from jaxarc.search.images import Images, bounding_boxes, hash_cells, windows
from jaxarc.search.marks import EIGHT, FOUR, counted, labelled, labelled_colors

LENGTH: Final = 16  # images of a list at most
_SMALLEST_FRAME: Final = 8  # cells


def _parts(source: Images, owner: np.ndarray, cells: np.ndarray, is_cropped: bool = True) -> Images:
    """Return images made of cells of their owners, cropped to what is not 0."""
    parts = source.take(owner).with_cells(cells)
    return windows(parts, *bounding_boxes(parts.cells != 0)) if is_cropped else parts


def _colors(images: Images) -> tuple[Images, np.ndarray]:
    counts = color_counts(images)
    counts[:, 0] = 0
    owner, color = np.nonzero(counts)
    order = np.lexsort((color, -counts[owner, color], owner))
    owner, color = owner[order], color[order]
    cells = images.cells[owner]
    return _parts(images, owner, np.where(cells == color[:, None, None], cells, 0), False), owner


def _cropped_colors(images: Images) -> tuple[Images, np.ndarray]:
    parts, owner = _colors(images)
    return windows(parts, *bounding_boxes(parts.cells != 0)), owner


def _components(images: Images, structure: np.ndarray, per_color: bool, least: int = 1) -> tuple[Images, np.ndarray]:
    """Return the objects of at least so many cells."""
    labels, _ = labelled_colors(images, structure) if per_color else labelled(images.cells != 0, structure)
    if least > 1:
        labels[np.bincount(labels.ravel())[labels] < least] = 0
    return _labelled(images, labels)


def _labelled(images: Images, labels: np.ndarray) -> tuple[Images, np.ndarray]:
    """Return one image of each label, in reading order; of an image with too many labels none."""
    names, first = np.unique(labels, return_index=True)
    kept = names > 0
    names, first = names[kept], first[kept]
    owner = first // images.frame**2
    order = np.argsort(first, kind="stable")
    names, owner = names[order], owner[order]
    few = np.bincount(owner, minlength=len(images))[owner] <= LENGTH
    names, owner = names[few], owner[few]
    cells = images.cells[owner]
    return _parts(images, owner, np.where(labels[owner] == names[:, None, None], cells, 0)), owner


def _windows(images: Images, structure: np.ndarray, is_framed: bool) -> tuple[Images, np.ndarray]:
    """Cut out the box of each object of one color with all that is in it; a frame has no other color at its edge."""
    parts, owner = _components(images, structure, per_color=True, least=_SMALLEST_FRAME if is_framed else 1)
    whole = images.take(owner)
    found = windows(whole, parts.row - whole.row, parts.column - whole.column, parts.height, parts.width)
    differs = (found.cells != parts.cells) & found.inside
    kept = (found.height > 2) & (found.width > 2)
    if is_framed:
        index = np.arange(len(found))
        bottom, right = np.maximum(found.height, 1) - 1, np.maximum(found.width, 1) - 1
        edges = (differs[:, 0], differs[:, :, 0], differs[index, bottom], differs[index, :, right])
        kept &= ~np.logical_or.reduce(edges).any(1)
    else:
        kept &= differs.any((1, 2))
    return found.take(kept), owner[kept]


def _ground_components(images: Images) -> tuple[Images, np.ndarray]:
    """Regions of color 0 become images of color 1."""
    labels, _ = labelled((images.cells == 0) & images.inside, FOUR)
    return _labelled(images.with_cells((labels > 0) * np.uint8(1)), labels)


def _lines(images: Images, axis: int) -> tuple[Images, np.ndarray]:
    size = images.height if axis == 1 else images.width
    counts = np.where(size <= LENGTH, size, 0)
    owner = np.repeat(np.arange(len(images)), counts)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    source = images.take(owner)
    zero, one = np.zeros_like(place), np.ones_like(place)
    if axis == 1:
        return windows(source, place, zero, one, source.width), owner
    return windows(source, zero, place, source.height, one), owner


def _equal_parts(images: Images, count: int, axis: int) -> tuple[Images, np.ndarray]:
    """Cut into equal parts, with a line between them or without."""
    size = images.height if axis == 1 else images.width
    gap = np.where(size % count == 0, 0, 1)
    fits = ((size - gap * (count - 1)) % count == 0) & (size >= count + gap * (count - 1))
    owner = np.repeat(np.flatnonzero(fits), count)
    place = np.tile(np.arange(count), fits.sum())
    source = images.take(owner)
    part = ((size - gap * (count - 1)) // count)[owner]
    start = place * (part + gap[owner])
    zero = np.zeros_like(start)
    if axis == 1:
        return windows(source, start, zero, part, source.width), owner
    return windows(source, zero, start, source.height, part), owner


def _grid_parts(images: Images) -> tuple[Images, np.ndarray]:
    """Cut along rows and columns of one color from edge to edge, of the color that makes most of such lines."""
    parts = []
    for index in range(len(images)):
        grid = images.grid(index)
        best: list[tuple[int, int, int, int]] = []
        for color in np.unique(grid) if grid.size else []:
            rows, columns = (grid == color).all(1), (grid == color).all(0)
            if rows.all() or not (rows.any() or columns.any()):
                continue
            cut = [(t, lft, b - t, r - lft) for t, b in _runs(~rows) for lft, r in _runs(~columns)]
            if 1 < len(cut) <= LENGTH and (not best or color != 0):
                best = cut
        parts.extend((index, *box) for box in best)
    owner, top, left, height, width = np.array(parts, np.int64).reshape(-1, 5).T
    return windows(images.take(owner), top, left, height, width), owner


def _runs(mask: Bool[np.ndarray, " n"]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


SPLITS: Final[dict[str, Callable[[Images], tuple[Images, np.ndarray]]]] = {
    "colors": _colors,
    "cropped_colors": _cropped_colors,
    "objects": lambda images: _components(images, EIGHT, per_color=False),
    "objects_4": lambda images: _components(images, FOUR, per_color=False),
    "one_color_objects": lambda images: _components(images, EIGHT, per_color=True),
    "one_color_objects_4": lambda images: _components(images, FOUR, per_color=True),
    "frames": lambda images: _windows(images, FOUR, is_framed=True),
    "windows": lambda images: _windows(images, EIGHT, is_framed=False),
    "ground": _ground_components,
    "rows": lambda images: _lines(images, 1),
    "columns": lambda images: _lines(images, 2),
    "cells_of_grid": _grid_parts,
    **{
        f"{count}_{name}": lambda images, count=count, axis=axis: _equal_parts(images, count, axis)
        for count in (2, 3, 4)
        for name, axis in (("above", 1), ("beside", 2))
    },
}
"""Name -> function that returns the parts of all images, ordered by image, and the image that each comes from."""


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
    "picture": lambda images: hash_cells(images.cells).astype(np.int64) ^ _size_keys(images),
    "shape": lambda images: hash_cells((images.cells != 0).astype(np.uint8)).astype(np.int64) ^ _size_keys(images),
    "size": _size_keys,
    "color": common_color,
}
"""Name -> a number that is equal for images of one picture, shape (any color), size or color."""


Numbers = Int64[np.ndarray, "S L"]


def pick(values: np.ndarray, numbers: Numbers, is_most: bool) -> Int64[np.ndarray, " S"]:
    """Return the image of each list with the highest or lowest value; -1 where two share it."""
    known = numbers >= 0
    ranked = np.where(known, values if is_most else -values, np.iinfo(np.int64).min)
    best = ranked.argmax(1)
    index = np.arange(len(numbers))
    chosen = numbers[index, best]
    ties = ((ranked == ranked[index, best][:, None]) & known & (numbers != chosen[:, None])).any(1)
    return np.where(ties, -1, chosen)


def ordered(values: np.ndarray, numbers: Numbers, is_most: bool) -> Numbers:
    """Sort each list by value; equal values keep their order."""
    key = np.where(numbers >= 0, -values if is_most else values, np.iinfo(np.int64).max)
    return np.take_along_axis(numbers, np.argsort(key, axis=1, kind="stable"), 1)


def kept(values: np.ndarray, numbers: Numbers, which: str) -> Numbers:
    """Keep the images with the highest value, with the lowest, or those without; the others move up."""
    known = numbers >= 0
    most = np.where(known, values, np.iinfo(np.int64).min).max(1, keepdims=True)
    least = np.where(known, values, np.iinfo(np.int64).max).min(1, keepdims=True)
    chosen = {
        "most": values == most,
        "least": values == least,
        "not_most": values != most,
        "not_least": values != least,
    }[which]
    return _moved_up(np.where(chosen & known, numbers, -1))


def _moved_up(numbers: Numbers) -> Numbers:
    return np.take_along_axis(numbers, np.argsort(numbers < 0, axis=1, kind="stable"), 1)


def odd_one(keys: np.ndarray, numbers: Numbers, is_common: bool) -> Int64[np.ndarray, " S"]:
    """Return the image whose key no other image of its list has, or the first one with the commonest key."""
    known = numbers >= 0
    same = ((keys[:, :, None] == keys[:, None, :]) & known[:, None, :]).sum(2)
    if is_common:
        rank = np.where(known, same, 0)
        return np.where(rank.max(1) > 1, numbers[np.arange(len(numbers)), rank.argmax(1)], -1)
    alone = known & (same == 1)
    return np.where(alone.sum(1) == 1, numbers[np.arange(len(numbers)), alone.argmax(1)], -1)


def stacked(images: Images, owner: np.ndarray, count: int, is_first_on_top: bool) -> Images:
    """Put the images of each list upon one another at their positions; the result has their common box.

    Args:
        images: of all lists, ordered by list.
        owner: the list of each image.
        count: of lists.
        is_first_on_top: else the last is.
    """
    side = images.frame
    top, left = np.full(count, 10**6), np.full(count, 10**6)
    bottom, right = np.full(count, -(10**6)), np.full(count, -(10**6))
    np.minimum.at(top, owner, images.row)
    np.minimum.at(left, owner, images.column)
    np.maximum.at(bottom, owner, images.row + images.height)
    np.maximum.at(right, owner, images.column + images.width)
    height, width = np.maximum(bottom - top, 0), np.maximum(right - left, 0)
    fits = (height <= side) & (width <= side) & (height > 0)
    cells = np.zeros((count, side, side), np.uint8)
    place = np.arange(len(owner)) - np.searchsorted(owner, owner)  # of an image in its list
    layers = range(place.max(initial=-1) + 1)
    for layer in layers if is_first_on_top else reversed(layers):
        chosen = np.flatnonzero((place == layer) & fits[owner])
        lists = owner[chosen]
        zero = np.zeros(len(chosen), np.int64)
        source = images.take(chosen)
        moved = windows(
            source, top[lists] - source.row, left[lists] - source.column, zero + height[lists], zero + width[lists]
        )
        cells[lists] = np.where(cells[lists] == 0, moved.cells, cells[lists])
    small = (np.where(fits, size, 0).astype(np.int32) for size in (top, left, height, width))
    return Images(cells, *small)


def joined(images: Images, owner: np.ndarray, count: int, axis: int) -> Images:
    """Put the images of each list in a line, below one another (axis 1) or beside one another (axis 2)."""
    size = (images.height if axis == 1 else images.width).astype(np.int64)
    before = np.cumsum(size) - size
    begin = np.searchsorted(owner, np.arange(count))
    start = before - before[np.minimum(begin, len(before) - 1)][owner] if len(before) else before
    placed = Images(
        images.cells,
        (start if axis == 1 else np.zeros_like(start)).astype(np.int32),
        (start if axis == 2 else np.zeros_like(start)).astype(np.int32),
        images.height,
        images.width,
    )
    return stacked(placed, owner, count, is_first_on_top=True)


LOGIC: Final = ("and", "xor", "nor", "first_only")


def combined(first: Images, second: Images, kind: str) -> Images:
    """Compare two images of one size cell by cell; the result has the commonest color of the first, or 1."""
    a, b = first.cells != 0, second.cells != 0
    result = {"and": a & b, "xor": a ^ b, "nor": ~a & ~b & first.inside, "first_only": a & ~b}[kind]
    same = (first.height == second.height) & (first.width == second.width)
    color = 1 if kind == "nor" else np.where(a, first.cells, second.cells)
    zero = np.zeros_like(first.row)
    return Images((result * color).astype(np.uint8), zero, zero, first.height, first.width).only(same)
