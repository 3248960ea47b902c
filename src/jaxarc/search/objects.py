"""Features of objects, as numbers of each of their cells: size, rank, shape, holes, colors, what they see."""

import math
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int64

from jaxarc.search.images import NUM_COLORS, Images, common_color
from jaxarc.search.marks import (
    EIGHT,
    FOUR,
    STEPS,
    cells_enclosed,
    full_lines,
    labelled,
    labelled_colors,
    seen_color,
    shifted,
)

Values = np.ndarray  # numbers of each cell, [N, F, F]

_MANY: Final = 10**6


_OWNER: Final = 0x9E3779B97F4A7C1  # so that the sums of two images differ


def object_labels(images: Images, kind: str) -> tuple[Int64[np.ndarray, "N F F"], int]:
    """Number the objects of all images: of any color, of one color, of one color with color 0 too, parts, or rooms.

    Parts are what full lines leave; rooms are what the commonest color but 0 leaves.
    """
    if kind == "any":
        return labelled(images.cells != 0, EIGHT)
    if kind == "parts":
        lines = full_lines(images)
        return labelled(images.inside & ~lines & lines.any((1, 2), keepdims=True), FOUR)
    if kind == "rooms":
        walls = common_color(images)[:, None, None]
        return labelled(images.inside & (images.cells != walls), FOUR)
    neighbors = FOUR if kind in ("regions", "one_color_4") else EIGHT
    return labelled_colors(images, neighbors, first=0 if kind == "regions" else 1)


class _Objects(NamedTuple):
    labels: Int64[np.ndarray, "N F F"]  # 0: no object
    total: int
    place: Int64[np.ndarray, " C"]  # of the cells of objects, in all frames
    names: Int64[np.ndarray, " C"]  # their objects, from 0
    owner: Int64[np.ndarray, " T"]  # the image of each object
    size: Int64[np.ndarray, " T"]
    rows: Int64[np.ndarray, " C"]
    columns: Int64[np.ndarray, " C"]
    box: Int64[np.ndarray, "4 T"]  # first row, first column, last row, last column
    weight: Int64[np.ndarray, "F F"]  # of a cell of a shape
    shape: Int64[np.ndarray, " T"]  # sum of the weights: equal for equal shapes


@lru_cache(maxsize=2)  # all features of one kind of objects are asked for in turn
def _objects(cells: bytes, sizes: bytes, count: int, kind: str) -> _Objects:
    """Measure the objects of some images, given as bytes so that they can be remembered."""
    frame = math.isqrt(len(cells) // count)
    height, width = np.frombuffer(sizes, np.int32).reshape(2, count)
    zero = np.zeros(count, np.int32)
    images = Images(np.frombuffer(cells, np.uint8).reshape(count, frame, frame), zero, zero, height, width)
    labels, total = object_labels(images, kind)
    flat = labels.ravel()
    place = np.flatnonzero(flat)
    names = flat[place] - 1
    owner = np.zeros(total, np.int64)
    owner[names] = place // frame**2
    size = np.bincount(names, minlength=total)
    rows, columns = place % frame**2 // frame, place % frame
    box = np.array([[10**6], [10**6], [-1], [-1]]).repeat(total, 1)
    np.minimum.at(box[0], names, rows)
    np.minimum.at(box[1], names, columns)
    np.maximum.at(box[2], names, rows)
    np.maximum.at(box[3], names, columns)
    weight = np.random.default_rng(1).integers(1, 2**40, (frame, frame))
    shape = _sums(names, weight[rows - box[0][names], columns - box[1][names]], total)
    return _Objects(labels, total, place, names, owner, size, rows, columns, box, weight, shape)


def _measured(images: Images, kind: str) -> _Objects:
    sizes = np.stack([images.height, images.width]).astype(np.int32)
    return _objects(images.cells.tobytes(), sizes.tobytes(), len(images), kind)


def held_by(images: Images) -> Values:
    """Give each cell the color of the smallest box of another object that it is in; 0 if there is none."""
    objects = _measured(images, "one_color")
    box, colors = objects.box, np.zeros(objects.total, np.int64)
    colors[objects.names] = images.cells.ravel()[objects.place]
    result = np.zeros(objects.labels.shape, np.int64)
    for one in np.argsort(-(box[2] - box[0] + 1) * (box[3] - box[1] + 1), kind="stable"):
        part = objects.owner[one], slice(box[0][one], box[2][one] + 1), slice(box[1][one], box[3][one] + 1)
        result[part] = np.where(objects.labels[part] == one + 1, result[part], colors[one])
    return result


def object_values(images: Images, kind: str, feature: str) -> Values:
    """Give each cell a feature of its object; cells of none get 0."""
    labels, total, place, names, owner, size, rows, columns, box, weight, shape = _measured(images, kind)
    height, width = box[2] - box[0] + 1, box[3] - box[1] + 1
    if feature in _COLOR_FEATURES:
        counts = np.bincount(names * NUM_COLORS + images.cells.ravel()[place], minlength=total * NUM_COLORS)
        counts = counts.reshape(total, NUM_COLORS)
        colored = counts[:, 1:].sum(1)
        values = {
            "marker": np.where(counts == 0, _MANY, counts).argmin(1),
            "commonest": counts.argmax(1),
            "commonest_but_0": np.where(colored > 0, counts[:, 1:].argmax(1) + 1, 0),
            "colors": (counts > 0).sum(1),
            "colored": colored,
            "colored_rank": 1 + _dense_rank(owner, -colored),
        }
        return _painted(labels, place, values[feature][names])
    if feature == "template":
        return _painted(labels, place, _template(images, place, names, owner, box))
    if feature in ("rank", "rank_up", "is_most", "is_least"):
        sign = -1 if feature in ("rank", "is_most") else 1
        value = _dense_rank(owner, sign * size)
        value = 1 + np.minimum(value, 1) if feature.startswith("is") else 1 + value
    elif feature == "same_shape":
        _, group, counts = np.unique(shape + owner * _OWNER, return_inverse=True, return_counts=True)
        value = counts[group]
    elif feature == "is_symmetric":
        flips = ((rows - box[0][names], box[3][names] - columns), (box[2][names] - rows, columns - box[1][names]))
        value = 1 + np.logical_or.reduce([_sums(names, weight[flip], total) == shape for flip in flips])
    elif feature == "beside":
        value = _beside(images, labels, total)
    elif feature.startswith("sees_"):
        value = _seen_by_objects(images, labels, total, feature.removeprefix("sees_"))
    elif feature == "count":
        value = np.bincount(owner, minlength=len(images))[owner]
    elif feature == "at_edge":
        bottom, right = images.height[owner] - 1, images.width[owner] - 1
        value = 1 + ((box[0] == 0) | (box[1] == 0) | (box[2] == bottom) | (box[3] == right))
    elif feature == "is_square":
        value = 1 + (height == width)
    elif feature == "is_full":
        value = 1 + (size == height * width)
    elif feature == "is_wide":
        value = 1 + np.sign(width - height) + 1
    elif feature == "parity":
        value = 1 + size % 2
    elif feature == "holes":
        value = 1 + _holes_inside(images, labels, total)
    elif feature == "row":
        value = 1 + _dense_rank(owner, box[0])
    elif feature == "column":
        value = 1 + _dense_rank(owner, box[1])
    elif feature == "same_size":
        _, group, counts = np.unique(size * len(images) + owner, return_inverse=True, return_counts=True)
        value = counts[group]
    elif feature == "area_rank":
        value = 1 + _dense_rank(owner, -height * width)
    elif feature in ("in_row", "in_column", "from_bottom", "from_right"):
        cells = {
            "in_row": rows - box[0][names],
            "in_column": columns - box[1][names],
            "from_bottom": box[2][names] - rows,
            "from_right": box[3][names] - columns,
        }[feature]
        return _painted(labels, place, 1 + cells)
    elif feature == "ring":
        cells = np.minimum.reduce(
            [rows - box[0][names], columns - box[1][names], box[2][names] - rows, box[3][names] - columns]
        )
        return _painted(labels, place, 1 + cells)
    else:
        value = {"size": size, "height": height, "width": width}[feature]
    return _painted(labels, place, value[names])


def _sums(names: np.ndarray, values: np.ndarray, total: int) -> Int64[np.ndarray, " T"]:
    sums = np.zeros(total, np.int64)
    np.add.at(sums, names, values)
    return sums


def _beside(images: Images, labels: np.ndarray, total: int) -> Int64[np.ndarray, " T"]:
    """Return the highest color that stands straight beside a cell of each object and belongs to another one."""
    colors = np.zeros(total + 1, np.int64)
    for step in list(STEPS.values())[:4]:
        other = shifted(images.cells, *step)
        touches = (labels > 0) & (other != 0) & (shifted(labels, *step) != labels)
        np.maximum.at(colors, labels[touches], other[touches])
    return colors[1:]


def _seen_by_objects(images: Images, labels: np.ndarray, total: int, step: str) -> Int64[np.ndarray, " T"]:
    """Return the highest color that the cells at one side of each object see when they look against a step."""
    seen = seen_color(images, step)
    looks = (labels > 0) & (shifted(labels, *STEPS[step]) != labels)
    colors = np.zeros(total + 1, np.int64)
    np.maximum.at(colors, labels[looks], seen[looks])
    return colors[1:]


def _template(images: Images, place: np.ndarray, names: np.ndarray, owner: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Return, for each cell of an object, the color at its place in the most colorful object of the image."""
    side = images.frame
    codes = np.unique(names * NUM_COLORS + images.cells.ravel()[place])
    colors = np.bincount(codes // NUM_COLORS, minlength=len(owner))
    order = np.lexsort((-colors, owner))
    first = order[np.searchsorted(owner[order], owner[names])]  # the object to copy, for each cell
    rows = place % side**2 // side - box[0][names]
    columns = place % side - box[1][names]
    is_within = (rows <= (box[2] - box[0])[first]) & (columns <= (box[3] - box[1])[first])
    rows, columns = (np.where(is_within, at + box[axis][first], 0) for axis, at in enumerate((rows, columns)))
    return np.where(is_within, images.cells[owner[names], rows, columns], 0)


def _painted(labels: np.ndarray, place: np.ndarray, values: np.ndarray) -> Values:
    result = np.zeros(labels.size, np.int64)
    result[place] = values
    return result.reshape(labels.shape)


def _dense_rank(owner: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rank values within their image; equal values share a rank: 5 9 9 2 gives 1 2 2 0."""
    order = np.lexsort((values, owner))
    new = np.diff(values[order], prepend=values[order][:1]) != 0
    starts = np.diff(owner[order], prepend=-1) != 0
    steps = np.cumsum(new | starts)
    base = np.maximum.accumulate(np.where(starts, steps, 0))
    rank = np.empty(len(owner), np.int64)
    rank[order] = steps - base
    return rank


def _holes_inside(images: Images, labels: np.ndarray, total: int) -> np.ndarray:
    """Count the enclosed regions of color 0 whose first cell lies right below an object."""
    holes, count = labelled(cells_enclosed(images), FOUR)
    names, first = np.unique(holes, return_index=True)
    first = first[names > 0]
    above = labels.ravel()[first - images.frame]
    return np.bincount(above[above > 0] - 1, minlength=total) if count else np.zeros(total, np.int64)


_SHAPES: Final = (
    *("size", "height", "width", "rank", "rank_up", "is_most", "is_least", "same_shape", "count", "at_edge", "holes"),
    *("is_square", "is_full", "is_wide", "parity", "row", "column", "in_row", "in_column", "ring", "template"),
    *("from_bottom", "from_right", "same_size", "area_rank"),
)
_COLOR_FEATURES: Final = ("marker", "commonest", "commonest_but_0", "colors", "colored", "colored_rank")
_ALL: Final = (*_SHAPES, *_COLOR_FEATURES, "is_symmetric", "beside")
_SIGHTS: Final = tuple(f"sees_{step}" for step in list(STEPS)[:4])
OBJECT_FEATURES: Final = {
    **dict.fromkeys(("any", "one_color"), (*_ALL, *_SIGHTS)),
    **dict.fromkeys(("one_color_4", "regions", "parts", "rooms"), _ALL),
}
"""Kind of objects -> their features."""
OBJECT_COLORS: Final = ("marker", "commonest", "commonest_but_0", "template", "beside", *_SIGHTS)
"""Features that are colors."""
