"""Functions from image to image that move: cells, objects as a whole, and copies of an object."""

from collections.abc import Iterator
from typing import Final, cast

import numpy as np
from jaxtyping import Int64, UInt8
from scipy import ndimage

from jaxarc.search.images import Images
from jaxarc.search.marks import EIGHT, RAYS, STEPS, drop_single_cells, keep_single_cells, labelled, ray, shifted

GRAVITY: Final = ("up", "down", "left", "right")


def attract(images: Images) -> Images:
    """Move each single cell in a straight line to a larger part of its color; clear single cells that see none."""
    parts, singles = drop_single_cells(images).cells, keep_single_cells(images).cells
    result = parts
    for name in RAYS["cross"]:
        down, right = STEPS[name]
        path = ray(singles, images.inside, (down, right))
        ahead = shifted(parts, -down, -right)
        result = np.where((parts == 0) & (ahead != 0) & (path == ahead), path, result)
    return images.with_cells(result)


def gravity(images: Images, way: str) -> Images:
    """Let the cells of each row or column fall to one side; a stable sort keeps their order."""
    axis = 1 if way in ("up", "down") else 2
    # Cells with the smaller key come first. To the left: `0 3 0 4` has the keys `1 0 1 0`, and becomes `3 4 0 0`.
    key = np.where(images.inside, (images.cells == 0) if way in ("up", "left") else (images.cells != 0), 2)
    order = np.argsort(key, axis=axis, kind="stable")
    return images.with_cells(np.take_along_axis(images.cells, order, axis))


def fall(images: Images, way: str) -> Images:
    """Move each object, as a whole, to one side until the edge or another object stops it.

    All objects that nothing stops move by one cell at a time. What stands before an object that is stopped is stopped.
    """
    step = STEPS[way]
    cells = images.cells
    inside = images.inside
    labels, count = labelled(cells != 0, EIGHT)
    has_edge_ahead = ~shifted(inside, -step[0], -step[1])
    for _ in range(images.frame):
        is_stopped = np.zeros(count + 1, np.bool_)
        is_stopped[labels[has_edge_ahead]] = True
        is_stopped[0] = False
        ahead = shifted(labels, -step[0], -step[1])
        touches = (labels > 0) & (ahead > 0) & (ahead != labels)
        # A pair of objects as one number, so that `unique` finds each pair once; then what is behind stops too.
        back, front = np.divmod(np.unique(labels[touches] * (count + 1) + ahead[touches]), count + 1)
        while (new := back[is_stopped[front] & ~is_stopped[back]]).size:
            is_stopped[new] = True
        moves = (labels > 0) & ~is_stopped[labels]
        if not moves.any():
            break
        cells = np.where(moves, 0, cells) + shifted(np.where(moves, cells, 0), *step)
        labels = np.where(moves, 0, labels) + shifted(np.where(moves, labels, 0), *step)
    return images.with_cells(cells)


def gather(images: Images) -> Images:
    """Move each object in a straight line until it touches the largest one; what is not level with it stays."""
    result = images.cells.copy()
    for index, labels, sizes in _objects(images):
        height, width = images.grid(index).shape
        part = images.grid(index), labels[:height, :width], int(sizes.argmax()) + 1
        result[index, :height, :width] = _gathered(*part)
    return images.with_cells(result)


def _objects(images: Images) -> Iterator[tuple[int, Int64[np.ndarray, "F F"], Int64[np.ndarray, " T"]]]:
    """Yield each image of several objects: its index, the object of each cell from 1 on, and the objects' sizes."""
    for index, cells in enumerate(images.cells):
        labels, count = cast("tuple[np.ndarray, int]", ndimage.label(cells != 0, EIGHT[1]))
        if count > 1:
            yield index, labels, np.bincount(labels.ravel())[1:]


def _gathered(cells: UInt8[np.ndarray, "h w"], labels: np.ndarray, largest: int) -> UInt8[np.ndarray, "h w"]:
    """Move the objects of one image to the one with the number ``largest``: by the smallest gap of a row or column."""
    result = np.where(labels == largest, cells, 0)
    for label in range(1, int(labels.max()) + 1):
        for axis in (0, 1) if label != largest else ():
            # Along axis 0: the gap in each column that holds cells of both. `2 0 0 5` moves 2 by two cells: `0 0 2 5`.
            body, target = (np.moveaxis(labels == name, axis, 0) for name in (label, largest))
            gaps = [
                (before, after)
                for line in np.flatnonzero(body.any(0) & target.any(0))
                for before, after in [_gap(np.flatnonzero(body[:, line]), np.flatnonzero(target[:, line]))]
            ]
            if gaps and len({after for _, after in gaps}) == 1:  # all on one side of the largest object
                shift = min(before for before, _ in gaps) * gaps[0][1]
                places = np.argwhere(labels == label)
                moved = places + (np.array([shift, 0]) if axis == 0 else np.array([0, shift]))
                if ((moved >= 0) & (moved < cells.shape)).all():
                    result[tuple(moved.T)] = cells[tuple(places.T)]
                    break
        else:
            if label != largest:
                result = np.where(labels == label, cells, result)
    return result


def _gap(body: np.ndarray, target: np.ndarray) -> tuple[int, int]:
    """Return how many cells lie between two sets of places on a line, and on which side the second one is."""
    if body.max() < target.min():
        return int(target.min() - body.max() - 1), 1
    return (int(body.min() - target.max() - 1), -1) if body.min() > target.max() else (0, 0)


def stamp(images: Images) -> Images:
    """Copy the largest object to each single cell of a color that it has once, so that these cells agree."""
    result = images.cells.copy()
    for index, labels, sizes in _objects(images):
        result[index] = _stamped(images.grid(index), labels, sizes, images.frame)
    return images.with_cells(result)


def _stamped(
    grid: UInt8[np.ndarray, "h w"], labels: np.ndarray, sizes: Int64[np.ndarray, " T"], frame: int
) -> UInt8[np.ndarray, "F F"]:
    result = np.zeros((frame, frame), np.uint8)
    result[: grid.shape[0], : grid.shape[1]] = grid
    places = np.argwhere(labels == int(sizes.argmax()) + 1)
    colors = result[tuple(places.T)]
    # `1 3 0 0 3` has the object `1 3` and a single 3, so the copy begins one cell before it: `1 3 0 1 3`.
    for label in np.flatnonzero(sizes == 1) + 1:
        (cell,) = np.argwhere(labels == label)
        anchor = places[colors == result[tuple(cell)]]
        if len(anchor) == 1:
            moved = places + cell - anchor[0]
            inside = ((moved >= 0) & (moved < grid.shape)).all(1)
            result[tuple(moved[inside].T)] = colors[inside]
    return result
