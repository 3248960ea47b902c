"""Functions from image to image that draw: rays, connections, fills, outlines, gravity, completed symmetry."""

from typing import Final

import numpy as np
from jaxtyping import Bool, UInt8
from scipy import ndimage

from jaxarc.search.functions import common_color
from jaxarc.search.images import Images

STEPS: Final = {
    "up": (-1, 0),
    "down": (1, 0),
    "left": (0, -1),
    "right": (0, 1),
    "up_left": (-1, -1),
    "up_right": (-1, 1),
    "down_left": (1, -1),
    "down_right": (1, 1),
}
RAYS: Final = {  # name of a set of directions
    **{name: (name,) for name in STEPS},
    "rows": ("left", "right"),
    "columns": ("up", "down"),
    "cross": ("left", "right", "up", "down"),
    "falling": ("up_left", "down_right"),
    "rising": ("up_right", "down_left"),
    "diagonals": ("up_left", "down_right", "up_right", "down_left"),
    "star": tuple(STEPS),
}
_FOUR: Final = np.zeros((3, 3, 3), np.bool_)
_FOUR[1] = [[0, 1, 0], [1, 1, 1], [0, 1, 0]]
_EIGHT: Final = np.zeros((3, 3, 3), np.bool_)
_EIGHT[1] = True


def shifted(cells: np.ndarray, down: int, right: int) -> np.ndarray:
    """Shift all frames, and fill with 0."""
    result = np.zeros_like(cells)
    side = cells.shape[1]
    top, bottom, left, right_end = max(down, 0), side + min(down, 0), max(right, 0), side + min(right, 0)
    if top < bottom and left < right_end:
        result[:, top:bottom, left:right_end] = cells[:, top - down : bottom - down, left - right : right_end - right]
    return result


def _ray(cells: UInt8[np.ndarray, "N F F"], inside: Bool[np.ndarray, "N F F"], step: tuple[int, int]) -> np.ndarray:
    """Extend each color in one direction until a cell that is not 0: doubles the reach of a ray each time.

    ``3 0 0 0 0`` becomes ``3 3 0 0 0``, then ``3 3 3 3 0``, then ``3 3 3 3 3``. A cell takes the color of the source
    only over cells that are 0, so the first color it meets stays.
    """
    reach = 1
    result = cells
    while reach < cells.shape[1]:
        result = np.where(result == 0, shifted(result, step[0] * reach, step[1] * reach), result)
        reach *= 2
    return np.where(inside, result, 0)


def smear(images: Images, rays: str) -> Images:
    """Extend each color in some directions over cells of color 0; where two rays meet, the first direction stays."""
    inside = images.inside
    result = images.cells
    for name in RAYS[rays]:
        found = _ray(images.cells, inside, STEPS[name])
        result = np.where(result == 0, found, result)
    return images.with_cells(result)


CONNECTIONS: Final = ("rows", "columns", "cross", "falling", "rising", "diagonals")


def connect(images: Images, lines: str) -> Images:
    """Draw a line between two cells of one color with only cells of color 0 between them."""
    inside = images.inside
    pairs = {"rows": ["rows"], "columns": ["columns"], "cross": ["rows", "columns"]}.get(lines)
    pairs = pairs or {"falling": ["falling"], "rising": ["rising"]}.get(lines) or ["falling", "rising"]
    result = images.cells
    for pair in pairs:
        first, second = (_ray(images.cells, inside, STEPS[name]) for name in RAYS[pair])
        result = np.where((result == 0) & (first == second), first, result)
    return images.with_cells(result)


def _enclosed(images: Images) -> Bool[np.ndarray, "N F F"]:
    """Cells of color 0 that reach the edge of the image neither straight nor around."""
    inside = images.inside
    ground = (images.cells == 0) & inside
    labels, count = ndimage.label(ground, _FOUR)
    edge = inside.copy()
    edge[:, 1:-1, 1:-1] &= ~(inside[:, :-2, 1:-1] & inside[:, 2:, 1:-1] & inside[:, 1:-1, :-2] & inside[:, 1:-1, 2:])
    open_labels = np.zeros(count + 1, np.bool_)
    open_labels[labels[edge]] = True
    return ground & ~open_labels[labels]


def fill_enclosed(images: Images) -> Images:
    """Give enclosed cells of color 0 the commonest color."""
    return images.with_cells(np.where(_enclosed(images), common_color(images)[:, None, None], images.cells))


def enclosed(images: Images) -> Images:
    """Return only the enclosed cells of color 0, in the commonest color."""
    return images.with_cells(np.where(_enclosed(images), common_color(images)[:, None, None], 0))


def _around(mask: Bool[np.ndarray, "N F F"], diagonal: bool) -> Bool[np.ndarray, "N F F"]:
    names = list(STEPS) if diagonal else list(STEPS)[:4]
    return np.logical_or.reduce([shifted(mask, *STEPS[name]) for name in names])


def outline(images: Images, diagonal: bool) -> Images:
    """Return the cells of color 0 beside others, in the commonest color."""
    ground = (images.cells == 0) & images.inside
    ring = ground & _around(images.cells != 0, diagonal)
    return images.with_cells(np.where(ring, common_color(images)[:, None, None], 0))


def interior(images: Images) -> Images:
    """Clear the cells that touch color 0 or the edge."""
    solid = images.cells != 0
    return images.with_cells(np.where(_around(~solid, True) | ~images.inside | _edge(images), 0, images.cells))


def rim(images: Images) -> Images:
    """Keep only the cells that touch color 0 or the edge."""
    touches = _around(images.cells == 0, True) | _edge(images)
    return images.with_cells(np.where(touches, images.cells, 0))


def _edge(images: Images) -> Bool[np.ndarray, "N F F"]:
    edge = np.zeros(images.cells.shape, np.bool_)
    index = np.arange(len(images))
    edge[:, 0] = edge[:, :, 0] = True
    edge[index, np.maximum(images.height, 1) - 1] = True
    edge[index, :, np.maximum(images.width, 1) - 1] = True
    return edge & images.inside


def frame(images: Images) -> Images:
    """Draw the edge of the image in the commonest color, and leave the cells within."""
    return images.with_cells(np.where(_edge(images), common_color(images)[:, None, None], images.cells))


def drop_single_cells(images: Images) -> Images:
    """Clear cells of which no neighbor, straight or diagonal, has the same color."""
    same = np.logical_or.reduce(
        [(shifted(images.cells, *step) == images.cells) & (images.cells != 0) for step in STEPS.values()]
    )
    return images.with_cells(np.where(same, images.cells, 0))


def keep_single_cells(images: Images) -> Images:
    """Keep only the cells that :func:`drop_single_cells` clears."""
    return images.with_cells(np.where(drop_single_cells(images).cells == 0, images.cells, 0))


GRAVITY: Final = ("up", "down", "left", "right")


def gravity(images: Images, way: str) -> Images:
    """Let the cells of each row or column fall to one side; a stable sort keeps their order."""
    axis = 1 if way in ("up", "down") else 2
    key = np.where(images.inside, (images.cells == 0) if way in ("up", "left") else (images.cells != 0), 2)
    order = np.argsort(key, axis=axis, kind="stable")
    return images.with_cells(np.take_along_axis(images.cells, order, axis))


def spread(images: Images) -> Images:
    """Give each cell of color 0 the color of a nearest cell that has one, by straight steps."""
    inside = images.inside
    cells = images.cells
    for _ in range(2 * images.frame):
        open_cells = (cells == 0) & inside
        if not open_cells.any():
            break
        nearest = np.maximum.reduce([shifted(cells, *step) for step in list(STEPS.values())[:4]])
        grown = np.where(open_cells, nearest, cells)
        if np.array_equal(grown, cells):
            break
        cells = grown
    return images.with_cells(cells)


SYMMETRIES: Final = {  # name -> which mirror images of a cell may fill it
    "left_right": ((False, True, False),),
    "top_bottom": ((True, False, False),),
    "half_turn": ((True, True, False),),
    "both": ((False, True, False), (True, False, False), (True, True, False)),
    "all": (
        (False, False, True),
        (False, True, False),
        (True, False, False),
        (True, True, False),
        (True, True, True),
        (False, True, True),
        (True, False, True),
    ),
}


def complete_symmetry(images: Images, kind: str) -> Images:
    """Fill cells of color 0 from their mirror images, around the center at which most cells agree.

    The center is the mean of a row with its mirror image, and is looked for within the box of all colors: centers
    ``s`` with ``row + mirrored row = s``. Of equally good centers the one nearest to the middle stays.
    """
    results = np.zeros_like(images.cells)
    for index in range(len(images)):
        height, width = images.height[index], images.width[index]
        if height > 0:
            results[index, :height, :width] = _complete(images.cells[index, :height, :width], kind)
    return images.with_cells(results)


def _complete(grid: np.ndarray, kind: str) -> np.ndarray:
    height, width = grid.shape
    needs_square = kind == "all"
    best, best_value = grid, 0.0
    for row_sum in range(height // 2, height + height // 2) if kind not in ("left_right",) else [height - 1]:
        for column_sum in range(width // 2, width + width // 2) if kind not in ("top_bottom",) else [width - 1]:
            if needs_square and row_sum != column_sum:
                continue
            copies = [_mirror_about(grid, row_sum, column_sum, *flips) for flips in SYMMETRIES[kind]]
            agree = sum(((copy == grid) & (grid != 0)).sum() for copy in copies)
            differ = sum(((copy != grid) & (grid != 0) & (copy != 0)).sum() for copy in copies)
            value = agree - 100.0 * differ - 1e-3 * (abs(row_sum - height + 1) + abs(column_sum - width + 1))
            if value > best_value:
                best_value = value
                best = np.maximum.reduce([grid, *(np.where(grid == 0, copy, 0) for copy in copies)])
    return best


def _mirror_about(
    grid: np.ndarray, row_sum: int, column_sum: int, flip_rows: bool, flip_columns: bool, transposed: bool
) -> np.ndarray:
    height, width = grid.shape
    rows, columns = np.indices(grid.shape)
    if flip_rows:
        rows = row_sum - rows
    if flip_columns:
        columns = column_sum - columns
    if transposed:
        rows, columns = columns, rows
    known = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return np.where(known, grid[np.where(known, rows, 0), np.where(known, columns, 0)], 0)


def continue_pattern(images: Images) -> Images:
    """Fill cells of color 0 by the smallest tiling, straight or sheared, that no colored cell contradicts."""
    results = images.cells.copy()
    for index in range(len(images)):
        height, width = images.height[index], images.width[index]
        if height > 0:
            results[index, :height, :width] = _tiled(images.cells[index, :height, :width])
    return images.with_cells(results)


def _tiled(grid: np.ndarray) -> np.ndarray:
    height, width = grid.shape
    known = grid != 0
    if known.all() or not known.any():
        return grid
    periods = [(down, right) for down in range(1, height + 1) for right in range(1, width + 1)]
    periods.sort(key=lambda period: period[0] * period[1])
    rows, columns = np.indices(grid.shape)
    where = grid[known].astype(np.int64)
    for down, right in periods:
        if down * right > max(1, known.sum()) // 2:
            break
        for shear in range(right if down * right <= 64 else 1):
            number = (rows % down) * right + (columns - shear * (rows // down)) % right
            tile_cells = np.zeros(down * right, np.int64)
            tile_cells[number[known]] = where
            if (tile_cells[number[known]] == where).all():
                return np.where(known, grid, tile_cells[number])
    return grid
