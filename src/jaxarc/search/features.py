"""Functions that say something of each cell: its neighbors, what it sees, its place, its object. Tables use them.

The result is an image of the same size whose cells hold bytes and no colors, such as the size of the object of a cell.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from jaxarc.search.images import NUM_COLORS, Images, color_counts, common_color
from jaxarc.search.marks import STEPS, cells_enclosed, seen_color, shifted
from jaxarc.search.objects import OBJECT_COLORS, OBJECT_FEATURES, held_by, object_values

_OUTSIDE: Final = 10  # the color of a cell outside of the image
_MOST: Final = 255

Values = np.ndarray  # numbers of each cell, [N, F, F]


def _neighbor(images: Images, step: str) -> Values:
    bordered = np.where(images.inside, images.cells + 1, 0)
    found = shifted(bordered, *STEPS[step])
    return np.where(found == 0, _OUTSIDE, found - 1)


def _count(images: Images, steps: list[str], matches: Callable[[Values], Values]) -> Values:
    return np.sum([matches(_neighbor(images, step)) for step in steps], axis=0)


def _pattern(images: Images) -> Values:
    """Return the eight neighbors as bits: which of them are colored."""
    bits = [(_neighbor(images, step) % _OUTSIDE != 0) << place for place, step in enumerate(STEPS)]
    return np.sum(bits, axis=0)


def _rows(images: Images) -> Values:
    return np.broadcast_to(np.arange(images.frame)[:, None], images.cells.shape)


def _columns(images: Images) -> Values:
    return np.broadcast_to(np.arange(images.frame), images.cells.shape)


def _edge_distance(images: Images) -> Values:
    rows, columns = _rows(images), _columns(images)
    height, width = images.height[:, None, None], images.width[:, None, None]
    return np.clip(np.minimum.reduce([rows, columns, height - 1 - rows, width - 1 - columns]), 0, None)


def _at_edge(images: Images, side: str) -> Values:
    index = np.arange(len(images))
    if side == "left":
        return np.broadcast_to(images.cells[:, :, :1], images.cells.shape)
    if side == "top":
        return np.broadcast_to(images.cells[:, :1], images.cells.shape)
    if side == "right":
        return np.broadcast_to(images.cells[index, :, images.width - 1][:, :, None], images.cells.shape)
    return np.broadcast_to(images.cells[index, images.height - 1][:, None], images.cells.shape)


def _colored_in_line(images: Images, axis: int) -> Values:
    return np.broadcast_to((images.cells != 0).sum(axis, keepdims=True), images.cells.shape)


def _line_is_full(images: Images, axis: int) -> Values:
    size = images.height if axis == 1 else images.width
    return _colored_in_line(images, axis) == size[:, None, None]


def _between(images: Images, first: str, second: str) -> Values:
    """Return the color that a cell sees on both sides, if it is the same one."""
    seen = seen_color(images, first)
    return np.where(seen == seen_color(images, second), seen, 0)


def _first_colored(images: Images, axis: int) -> Values:
    """Return the place, from 1, of the first colored cell of each row (axis 2) or column (axis 1)."""
    colored = images.cells != 0
    place = np.where(colored.any(axis), colored.argmax(axis) + 1, 0)
    return np.broadcast_to(np.expand_dims(place, axis), images.cells.shape)


def _color_of_line(images: Images, axis: int) -> Values:
    """Return the commonest color but 0 of each row (axis 2) or column (axis 1)."""
    counts = np.stack([(images.cells == color).sum(axis) for color in range(1, NUM_COLORS)], 0)
    color = np.where(counts.any(0), counts.argmax(0) + 1, 0)
    return np.broadcast_to(np.expand_dims(color, axis), images.cells.shape)


def _color_rank(images: Images) -> Values:
    counts = color_counts(images)
    counts[:, 0] = -1
    rank = np.argsort(np.argsort(-counts, axis=1, kind="stable"), axis=1)
    return np.take_along_axis(rank, images.cells.reshape(len(images), -1).astype(np.int64), 1).reshape(
        images.cells.shape
    )


def _space(images: Images) -> Values:
    """Return the area of the largest rectangle of color 0, two cells high and wide at least, that holds a cell."""
    free = images.inside & (images.cells == 0)
    found = np.zeros(free.shape, np.int64)
    places = np.arange(-1, images.frame + 1)
    rows = free
    for height in range(2, images.frame + 1):  # rows[:, r] are the columns that are free in so many rows from r on
        rows = rows[:, :-1] & free[:, height - 1 :]
        if not rows.any():
            break
        walls = np.pad(~rows, ((0, 0), (0, 0), (1, 1)), constant_values=True)
        before = np.maximum.accumulate(np.where(walls, places, -1), 2)
        after = np.minimum.accumulate(np.where(walls, places, images.frame)[:, :, ::-1], 2)[:, :, ::-1]
        width = (after - before - 1)[:, :, 1:-1]
        area = np.where(rows & (width > 1), width * height, 0)
        for row in range(height):
            part = found[:, row : row + area.shape[1]]
            np.maximum(part, area, out=part)
    return found


def _largest_space(images: Images) -> Values:
    area = _space(images)
    return (area == area.max((1, 2), keepdims=True)) & (area > 0)


def _nearest(images: Images, neighbors: int) -> tuple[Values, Values]:
    """Return the distance of the nearest colored cell, and its color if it is the only one."""
    color = images.cells.astype(np.int64)
    distance = np.where(color != 0, 0, _MOST)
    both = np.zeros(color.shape, bool)
    for reach in range(1, 2 * images.frame):
        near = [(shifted(color, *step), shifted(both, *step)) for step in list(STEPS.values())[:neighbors]]
        most = np.max([one for one, _ in near], axis=0)
        least = np.min([np.where(one == 0, _OUTSIDE, one) for one, _ in near], axis=0)
        new = (color == 0) & (most > 0) & images.inside
        if not new.any():
            break
        both |= new & ((most != least) | np.any([two for _, two in near], axis=0))
        color = np.where(new, most, color)
        distance = np.where(new, reach, distance)
    return distance, np.where(both, 0, color)


def _global(values: np.ndarray, images: Images) -> Values:
    return np.broadcast_to(values[:, None, None], images.cells.shape)


FEATURES: Final[dict[str, Callable[[Images], Values]]] = {
    "own": lambda images: images.cells,
    "is_colored": lambda images: images.cells != 0,
    **{f"beside_{step}": lambda images, step=step: _neighbor(images, step) for step in STEPS},
    **{f"sees_{step}": lambda images, step=step: seen_color(images, step) for step in STEPS},
    "pattern": _pattern,
    "colored_4": lambda images: _count(images, list(STEPS)[:4], lambda found: found % _OUTSIDE != 0),
    "colored_8": lambda images: _count(images, list(STEPS), lambda found: found % _OUTSIDE != 0),
    "equal_4": lambda images: _count(images, list(STEPS)[:4], lambda found: found == images.cells),
    "equal_8": lambda images: _count(images, list(STEPS), lambda found: found == images.cells),
    "near_4": lambda images: np.max([_neighbor(images, step) % _OUTSIDE for step in list(STEPS)[:4]], axis=0),
    "near_8": lambda images: np.max([_neighbor(images, step) % _OUTSIDE for step in STEPS], axis=0),
    "between_in_row": lambda images: _between(images, "left", "right"),
    "between_in_column": lambda images: _between(images, "up", "down"),
    "space": _space,
    "largest_space": _largest_space,
    "distance_4": lambda images: _nearest(images, 4)[0],
    "distance_8": lambda images: _nearest(images, 8)[0],
    "distance_4_parity": lambda images: _nearest(images, 4)[0] % 2,
    "distance_8_parity": lambda images: _nearest(images, 8)[0] % 2,
    "nearest_4": lambda images: _nearest(images, 4)[1],
    "nearest_8": lambda images: _nearest(images, 8)[1],
    "holder": held_by,
    "seen_colored": lambda images: np.sum([seen_color(images, step) != 0 for step in STEPS], axis=0),
    "first_in_row": lambda images: _first_colored(images, 2),
    "first_in_column": lambda images: _first_colored(images, 1),
    "color_of_row": lambda images: _color_of_line(images, 2),
    "color_of_column": lambda images: _color_of_line(images, 1),
    "enclosed": cells_enclosed,
    "row_mod_2": lambda images: _rows(images) % 2,
    "row_mod_3": lambda images: _rows(images) % 3,
    "column_mod_2": lambda images: _columns(images) % 2,
    "column_mod_3": lambda images: _columns(images) % 3,
    "from_right_mod_2": lambda images: (images.width[:, None, None] - 1 - _columns(images)) % 2,
    "from_bottom_mod_2": lambda images: (images.height[:, None, None] - 1 - _rows(images)) % 2,
    "falling_mod_2": lambda images: (_rows(images) + _columns(images)) % 2,
    "falling_mod_3": lambda images: (_rows(images) + _columns(images)) % 3,
    "rising_mod_3": lambda images: (_rows(images) - _columns(images)) % 3,
    "edge_distance": _edge_distance,
    "edge_parity": lambda images: _edge_distance(images) % 2,
    "left_edge": lambda images: _at_edge(images, "left"),
    "top_edge": lambda images: _at_edge(images, "top"),
    "right_edge": lambda images: _at_edge(images, "right"),
    "bottom_edge": lambda images: _at_edge(images, "bottom"),
    "colored_in_column": lambda images: _colored_in_line(images, 1),
    "colored_in_row": lambda images: _colored_in_line(images, 2),
    "full_column": lambda images: _line_is_full(images, 1),
    "full_row": lambda images: _line_is_full(images, 2),
    "color_rank": _color_rank,
    "commonest": lambda images: _global(common_color(images), images),
    "num_colors": lambda images: _global((color_counts(images)[:, 1:] > 0).sum(1), images),
    **{
        f"{kind}_{feature}": lambda images, kind=kind, feature=feature: object_values(images, kind, feature)
        for kind, features in OBJECT_FEATURES.items()
        for feature in features
    },
}
"""Name -> what it says of each cell, in the order of ``native/search/features.h``."""
COLORED: Final = {
    *("own", "near_4", "near_8", "nearest_4", "nearest_8", "between_in_row", "between_in_column", "color_of_row"),
    *("color_of_column", "commonest", "holder"),
    *(f"{side}_edge" for side in ("left", "top", "right", "bottom")),
    *(f"{name}_{step}" for name in ("beside", "sees") for step in STEPS),
    *(f"{kind}_{name}" for kind, features in OBJECT_FEATURES.items() for name in features if name in OBJECT_COLORS),
}
"""Names of those that say a color."""


NUMBERS: Final[dict[str, Callable[[Images], np.ndarray]]] = {
    "commonest": common_color,
    "colors": lambda images: (color_counts(images)[:, 1:] > 0).sum(1),
    "cells": lambda images: (images.cells != 0).sum((1, 2)),
}
"""Name -> a number that an image has."""


def number(images: Images, name: str) -> Images:
    """Fill a whole frame with a number of the image, as bytes."""
    return _framed(images, np.minimum(NUMBERS[name](images), _MOST)[:, None, None])


def place(images: Images, width: int) -> Images:
    """Number the cells of a whole frame row by row, as bytes, where a row has some width."""
    span = np.arange(images.frame)
    return _framed(images, np.minimum(span[:, None] * width + span, _MOST))


def _framed(images: Images, values: np.ndarray) -> Images:
    none = np.zeros_like(images.row)
    cells = np.broadcast_to(values, images.cells.shape).astype(np.uint8)
    return Images(cells, none, none, none + images.frame, none + images.frame)


def cell_feature(images: Images, name: str) -> Images:
    """Return a feature of each cell, as an image of bytes."""
    values = np.where(images.inside, np.minimum(FEATURES[name](images), _MOST), 0)
    return images.with_cells(values)
