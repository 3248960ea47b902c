"""Functions from image to image that draw and move cells: rays, connections, fills, outlines, gravity."""

from dataclasses import replace
from typing import Final, cast

import numpy as np
from jaxtyping import Bool, Int64, UInt8
from scipy import ndimage

from jaxarc.search.images import NUM_COLORS, Images, common_color

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
FOUR: Final = np.zeros((3, 3, 3), np.bool_)
FOUR[1] = [[0, 1, 0], [1, 1, 1], [0, 1, 0]]
EIGHT: Final = np.zeros((3, 3, 3), np.bool_)
EIGHT[1] = True


def labelled(mask: Bool[np.ndarray, "N F F"], neighbors: np.ndarray) -> tuple[Int64[np.ndarray, "N F F"], int]:
    """Number the connected regions of all masks from 1, in reading order, and count them."""
    labels, count = cast("tuple[np.ndarray, int]", ndimage.label(mask, neighbors))
    return labels.astype(np.int64), count


def labelled_colors(images: Images, neighbors: np.ndarray, first: int = 1) -> tuple[Int64[np.ndarray, "N F F"], int]:
    """Number the connected regions of one color each, the colors from the first one on in turn, and count them."""
    labels, total = np.zeros(images.cells.shape, np.int64), 0
    inside = images.inside
    for color in range(first, NUM_COLORS):
        mask = (images.cells == color) & inside
        if mask.any():
            found, count = labelled(mask, neighbors)
            labels += np.where(found > 0, found + total, 0)
            total += count
    return labels, total


def counted(labels: Int64[np.ndarray, "N F F"]) -> Int64[np.ndarray, " N"]:
    """Count the regions of each image: all are numbered together, and the first cell of one says where it is."""
    names, first = np.unique(labels, return_index=True)
    return np.bincount((first // labels.shape[1] ** 2)[names > 0], minlength=len(labels))


def shifted(cells: np.ndarray, down: int, right: int) -> np.ndarray:
    """Shift all frames, and fill with 0."""
    result = np.zeros_like(cells)
    side = cells.shape[1]
    top, bottom, left, right_end = max(down, 0), side + min(down, 0), max(right, 0), side + min(right, 0)
    if top < bottom and left < right_end:
        result[:, top:bottom, left:right_end] = cells[:, top - down : bottom - down, left - right : right_end - right]
    return result


def ray(cells: UInt8[np.ndarray, "N F F"], inside: Bool[np.ndarray, "N F F"], step: tuple[int, int]) -> np.ndarray:
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


def seen_color(images: Images, step: str) -> np.ndarray:
    """Return the first color but 0 that a cell sees when it looks against a step."""
    return shifted(ray(images.cells, images.inside, STEPS[step]), *STEPS[step])


def smear(images: Images, rays: str) -> Images:
    """Extend each color in some directions over cells of color 0; where two rays meet, the first direction stays."""
    inside = images.inside
    result = images.cells
    for name in RAYS[rays]:
        found = ray(images.cells, inside, STEPS[name])
        result = np.where(result == 0, found, result)
    return images.with_cells(result)


DOTTED: Final = ("up", "down", "left", "right", "rows", "columns", "cross", "diagonals")


def smear_dotted(images: Images, rays: str) -> Images:
    """Extend each color over every second cell of color 0 in some directions."""
    inside = images.inside
    result = images.cells
    for name in RAYS[rays]:
        down, right = STEPS[name]
        found = images.cells
        for reach in range(2, images.frame, 2):
            found = np.where(found == 0, shifted(images.cells, down * reach, right * reach), found)
        result = np.where((result == 0) & inside, found, result)
    return images.with_cells(result)


_NO_COLOR: Final = 255
_MAJORITY: Final = 5  # of nine cells
CONNECTIONS: Final = ("rows", "columns", "cross", "falling", "rising", "diagonals")


def connect(images: Images, lines: str) -> Images:
    """Draw a line between two cells of one color with only cells of color 0 between them."""
    inside = images.inside
    # A cell lies on such a line if it sees the same color in a direction and in the opposite one.
    pairs = {"rows": ["rows"], "columns": ["columns"], "cross": ["rows", "columns"]}.get(lines)
    pairs = pairs or {"falling": ["falling"], "rising": ["rising"]}.get(lines) or ["falling", "rising"]
    result = images.cells
    for pair in pairs:
        first, second = (ray(images.cells, inside, STEPS[name]) for name in RAYS[pair])
        result = np.where((result == 0) & (first == second), first, result)
    return images.with_cells(result)


def corner(images: Images) -> Images:
    """Join two cells of two colors along the row of the lower color and the column of the higher color."""
    flat = images.cells.reshape(len(images), -1)
    high = flat.argmax(1)
    low = np.where(flat == 0, _NO_COLOR, flat).argmin(1)
    (low_row, low_column), (high_row, high_column) = (np.divmod(place, images.frame) for place in (low, high))
    span = np.arange(images.frame)
    rows, columns = (
        (span >= np.minimum(first, second)[:, None]) & (span <= np.maximum(first, second)[:, None])
        for first, second in ((low_row, high_row), (low_column, high_column))
    )
    across = (span == low_row[:, None])[:, :, None] & columns[:, None]
    down = rows[:, :, None] & (span == high_column[:, None])[:, None]
    index = np.arange(len(images))
    are_two = ((flat != 0).sum(1) == 2) & (flat[index, low] != flat[index, high])
    return images.with_cells((across | down) * flat[index, low][:, None, None]).only(are_two)


def zigzag(images: Images) -> Images:
    """Move one cell a row up or down and a column sideways, at first to the right, and back where the image ends.

    In 3 columns a cell at the left goes on to the columns 1, 2, 1, 0, 1: those of ``0 1 2 1`` again and again.
    """
    row, column = np.divmod((images.cells != 0).reshape(len(images), -1).argmax(1), images.frame)
    span = np.arange(images.frame)
    period = np.maximum(2 * (images.width - 1), 1)[:, None]
    place = (column[:, None] + np.abs(span - row[:, None])) % period
    path = np.minimum(place, period - place)[:, :, None] == span
    color = images.cells.max((1, 2))[:, None, None]
    return images.with_cells((path & images.inside) * color).only((images.cells != 0).sum((1, 2)) == 1)


def cells_enclosed(images: Images) -> Bool[np.ndarray, "N F F"]:
    """Return the cells of color 0 that reach the edge of the image neither straight nor around."""
    inside = images.inside
    ground = (images.cells == 0) & inside
    labels, count = labelled(ground, FOUR)
    # A region is open if a cell of it is at the edge of its image, where a neighbor is outside.
    edge = inside.copy()
    edge[:, 1:-1, 1:-1] &= ~(inside[:, :-2, 1:-1] & inside[:, 2:, 1:-1] & inside[:, 1:-1, :-2] & inside[:, 1:-1, 2:])
    open_labels = np.zeros(count + 1, np.bool_)
    open_labels[labels[edge]] = True
    return ground & ~open_labels[labels]


def fill_enclosed(images: Images) -> Images:
    """Give enclosed cells of color 0 the commonest color."""
    return images.with_cells(np.where(cells_enclosed(images), common_color(images)[:, None, None], images.cells))


def enclosed(images: Images) -> Images:
    """Return only the enclosed cells of color 0, in the commonest color."""
    return images.with_cells(np.where(cells_enclosed(images), common_color(images)[:, None, None], 0))


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
    """Keep only the cells of which no neighbor, straight or diagonal, has the same color."""
    return images.with_cells(np.where(drop_single_cells(images).cells == 0, images.cells, 0))


def extend(images: Images, rays: str) -> Images:
    """Extend lines of two or more cells of one color, in some directions, over cells of color 0."""
    inside = images.inside
    result = images.cells
    for name in RAYS[rays]:
        # To the right, `0 3 3 0 0` goes on as `0 3 3 3 3`: the second 3 follows an equal cell, so it begins a ray.
        # A cell that follows no equal one begins none, and stops those of others.
        is_line = shifted(images.cells, *STEPS[name]) == images.cells
        blocked = np.where((images.cells != 0) & ~is_line, _NO_COLOR, images.cells)
        found = ray(blocked, inside, STEPS[name])
        result = np.where((result == 0) & (found != _NO_COLOR), found, result)
    return images.with_cells(result)


EXTENSIONS: Final = ("rows", "columns", "cross", "diagonals", "star")


def full_lines(images: Images) -> Bool[np.ndarray, "N F F"]:
    """Return the cells of rows and columns of one color but 0, from edge to edge."""
    inside = images.inside
    span = np.arange(images.frame)
    rows = ((images.cells == images.cells[:, :, :1]) | ~inside).all(2) & (images.cells[:, :, 0] != 0)
    columns = ((images.cells == images.cells[:, :1]) | ~inside).all(1) & (images.cells[:, 0] != 0)
    rows &= span < images.height[:, None]
    columns &= span < images.width[:, None]
    return (rows[:, :, None] | columns[:, None, :]) & inside


def summary_of_parts(images: Images) -> Images:
    """Return a cell for each part between full lines, of the commonest color but 0 of the part."""
    lines = full_lines(images)
    span = np.arange(images.frame)
    cells = np.zeros_like(images.cells)
    sizes = []
    places = []
    for axis, size in ((2, images.height), (1, images.width)):
        is_line = (lines | ~images.inside).all(axis)
        is_part = ~is_line & (span < size[:, None])
        # `part part line part` begins parts at 0 and 3; each place is then in part 0, 0, 0 or 1.
        begins = is_part & ~np.concatenate([np.zeros((len(images), 1), np.bool_), is_part[:, :-1]], 1)
        sizes.append(begins.sum(1).astype(np.int32))
        places.append(np.cumsum(begins, 1) - 1)
    index, row, column = np.nonzero((images.cells != 0) & ~lines)
    side = images.frame
    part = (index * side + places[0][index, row]) * side + places[1][index, column]
    codes, counts = np.unique(part * 10 + images.cells[index, row, column], return_counts=True)
    codes = codes[np.lexsort((-codes, counts))]  # the commonest color of a part is written last; of equals the lowest
    cells.reshape(-1)[codes // 10] = codes % 10
    found = replace(images, cells=cells, height=sizes[0], width=sizes[1])
    return found.only(lines.any((1, 2)) & (sizes[0] > 0) & (sizes[1] > 0))


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
