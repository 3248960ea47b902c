"""Complete an image by its own symmetry or tiling, both found from the cells that are known."""

from typing import Final

import numpy as np
from jaxtyping import Float, UInt8

from jaxarc.search.images import Images, bounding_boxes, windows

Flips = tuple[bool, bool, bool]  # mirror rows, mirror columns, transpose
SYMMETRIES: Final[dict[str, tuple[Flips, ...]]] = {
    "left_right": ((False, True, False),),
    "top_bottom": ((True, False, False),),
    "half_turn": ((True, True, False),),
    "both": ((False, True, False), (True, False, False), (True, True, False)),
    "all": (
        *((False, True, False), (True, False, False), (True, True, False)),
        *((False, False, True), (True, True, True), (False, True, True), (True, False, True)),
    ),
}
"""Name -> the mirror images of a cell that may fill it."""

_SMALLEST_HIDDEN: Final = 4  # cells
_FAULT: Final = 100.0  # agreeing cells that one contradiction outweighs
_CHUNK: Final = 256  # images of one Fourier transform
_LARGEST_SHEARED: Final = 64  # cells of a tile that is tried sheared


def complete_symmetry(images: Images, kind: str) -> Images:
    """Fill cells of color 0 from their mirror images, around the center at which most cells agree.

    An image whose colors fill less than a fifth of their box has no answer: little would speak for a center.
    """
    _, _, height, width = bounding_boxes(images.cells != 0)
    colored = (images.cells != 0).sum((1, 2))
    is_dense = (5 * colored >= height * width) & (height > 0)
    results = images.cells.copy()
    dense = np.flatnonzero(is_dense & (colored < images.height * images.width))
    for start in range(0, len(dense), _CHUNK):
        chosen = dense[start : start + _CHUNK]
        results[chosen] = _completed(images.take(chosen), kind)
    return images.with_cells(results).only(is_dense)


def behind(images: Images, color: int) -> Images:
    """Cut out the full box of one color, with what the mirror images of its cells are.

    In ``1 2 3 9 9 1`` of color 9 it is ``3 2``; the image must be symmetric both ways.
    """
    mask = (images.cells == color) & images.inside
    top, left, height, width = bounding_boxes(mask)
    is_box = (mask.sum((1, 2)) == height * width) & (height * width >= _SMALLEST_HIDDEN)
    chosen = np.flatnonzero(is_box)
    shown = images.with_cells(np.where(mask, 0, images.cells))
    completed = complete_symmetry(shown.take(chosen), "both")
    cells = np.zeros_like(images.cells)
    cells[chosen] = completed.cells
    is_box[chosen] = completed.height > 0
    return windows(images.with_cells(cells), top, left, height, width).only(is_box)


def complete_around(images: Images, kind: str) -> Images:
    """Fill cells of color 0 from their mirror images, around the color with most cells that is symmetric by itself."""
    best = np.zeros((3, len(images)), np.int64)  # sums of rows and of columns, number of cells
    for color in np.unique(images.cells[images.cells != 0]):
        mask = images.cells == color
        top, left, height, width = bounding_boxes(mask)
        sums = 2 * top + height - 1, 2 * left + width - 1
        has_diagonal = (sums[0] - sums[1]) % 2 == 0
        count = mask.sum((1, 2)) * (has_diagonal | (kind != "all"))
        for flips in SYMMETRIES[kind]:
            count = count * (_mirrored(mask.astype(np.uint8), *sums, flips) == mask).all((1, 2))
        best = np.where(count > best[2], np.stack([*sums, count]), best)
    return images.with_cells(_filled(images, kind, best[0], best[1], best[2])).only(best[2] > 0)


def _completed(images: Images, kind: str) -> UInt8[np.ndarray, "N F F"]:
    """Fill images around their best centers."""
    return _filled(images, kind, *_centers(images, kind))


def _filled(
    images: Images, kind: str, row_sums: np.ndarray, column_sums: np.ndarray, values: np.ndarray
) -> UInt8[np.ndarray, "N F F"]:
    """Fill images around centers of a value above 0, where no known cell contradicts its mirror images.

    A center is the sum ``s`` of a row and of its mirror image, ``row + mirrored = s``, and the same for columns.
    """
    cells = images.cells
    copies = [_mirrored(cells, row_sums, column_sums, flips) for flips in SYMMETRIES[kind]]
    known = cells != 0
    faults = np.logical_or.reduce([(known & (copy != 0) & (copy != cells)).any((1, 2)) for copy in copies])
    filled = np.maximum.reduce(copies)
    can_fill = ~known & images.inside & ((values > 0) & ~faults)[:, None, None]
    return np.where(can_fill, filled, cells)


def _centers(images: Images, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sum of rows and of columns at the best center of each image, and its value."""
    index = np.arange(len(images))
    if kind == "half_turn":
        value = _half_turns(images.cells)
        value += _near_middle(images.height, value.shape[1])[:, :, None]
        value += _near_middle(images.width, value.shape[2])[:, None, :]
        best = value.reshape(len(images), -1).argmax(1)
        row_sums, column_sums = np.divmod(best, value.shape[2])
        return row_sums, column_sums, value[index, row_sums, column_sums]
    columns = _mirrors(images.cells) if kind != "top_bottom" else np.zeros((len(images), 2 * images.frame - 1))
    rows = _mirrors(images.cells.transpose(0, 2, 1)) if kind != "left_right" else np.zeros_like(columns)
    columns = columns + _near_middle(images.width, columns.shape[1])
    rows = rows + _near_middle(images.height, rows.shape[1])
    if kind == "all":
        best = (rows + columns).argmax(1)
        return best, best, (rows + columns)[index, best]
    row_sums, column_sums = rows.argmax(1), columns.argmax(1)
    return row_sums, column_sums, rows[index, row_sums] + columns[index, column_sums]


def _near_middle(size: np.ndarray, count: int) -> Float[np.ndarray, "N s"]:
    """Prefer, of equal centers, the one nearest the middle of an image, and allow none in its outer quarters."""
    sums = np.arange(count)
    half = size[:, None] // 2
    is_allowed = (sums >= half) & (sums < 2 * size[:, None] - half - 1)
    return np.where(is_allowed, -1e-3 * abs(sums - size[:, None] + 1), -np.inf)


def _mirrors(cells: UInt8[np.ndarray, "N R F"]) -> Float[np.ndarray, "N s"]:
    """Return for each sum of a column and its mirror image how many cells agree, less the faults.

    In the row ``1 2 1 3`` three cells agree at the sum 2: the 1s, and the 2 with itself. At 3 all four contradict.
    """
    side = cells.shape[2]
    values = np.zeros((len(cells), 2 * side - 1))
    for total in range(2 * side - 1):
        part = cells[:, :, max(0, total - side + 1) : min(side - 1, total) + 1]
        mirrored = part[:, :, ::-1]
        agree = ((part == mirrored) & (part != 0)).sum((1, 2))
        both = ((part != 0) & (mirrored != 0)).sum((1, 2))
        values[:, total] = agree - _FAULT * (both - agree)
    return values


def _half_turns(cells: UInt8[np.ndarray, "N F F"]) -> Float[np.ndarray, "N s t"]:
    """Return for each center of a half turn how many cells agree, less the faults.

    The cells of a color that agree around all centers are an autoconvolution, which a Fourier transform gives: with
    ``1 2 1`` color 1 gives ``1 0 2 0 1`` and color 2 ``0 0 1 0 0``, so three cells agree at the sum 2, the middle.
    """
    count = 2 * cells.shape[1] - 1
    size = count + 1

    def spectrum(mask: np.ndarray) -> np.ndarray:
        return np.square(np.fft.rfft2(mask.astype(np.float32), (size, size)))

    def counted(power: np.ndarray) -> np.ndarray:
        return np.rint(np.fft.irfft2(power, (size, size))[:, :count, :count]).astype(np.float64)

    both = counted(spectrum(cells != 0))
    agree = counted(np.sum([spectrum(cells == color) for color in np.unique(cells[cells != 0])], axis=0))
    return agree - _FAULT * (both - agree)


def _mirrored(
    cells: UInt8[np.ndarray, "N F F"], row_sums: np.ndarray, column_sums: np.ndarray, flips: Flips
) -> UInt8[np.ndarray, "N F F"]:
    side = cells.shape[1]
    span = np.arange(side)
    offset = ((row_sums - column_sums) // 2)[:, None]
    rows = row_sums[:, None] - span if flips[0] else np.broadcast_to(span, (len(cells), side))
    columns = column_sums[:, None] - span if flips[1] else np.broadcast_to(span, (len(cells), side))
    if flips[2]:  # the diagonal goes through the center, whose row and column may differ
        rows, columns = rows - offset, columns + offset
    known = ((rows >= 0) & (rows < side))[:, :, None] & ((columns >= 0) & (columns < side))[:, None, :]
    index = np.arange(len(cells))[:, None, None]
    rows, columns = np.clip(rows, 0, side - 1)[:, :, None], np.clip(columns, 0, side - 1)[:, None, :]
    return np.where(known, cells[index, columns, rows] if flips[2] else cells[index, rows, columns], 0)


def continue_pattern(images: Images) -> Images:
    """Fill cells of color 0 by the smallest tiling, straight or sheared, that no colored cell contradicts."""
    results = images.cells.copy()
    for index in range(len(images)):
        if images.height[index] > 0:
            grid = images.grid(index)
            results[index, : grid.shape[0], : grid.shape[1]] = _tiled(grid)
    return images.with_cells(results)


def _tiled(grid: UInt8[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
    """Fill one grid; a tile has at most half as many cells as are known, so that something speaks for it.

    With a shear of 1 each tile stands one column further right than the one above: diagonal stripes have a tile of one
    row.
    """
    height, width = grid.shape
    known = grid != 0
    if known.all() or not known.any():
        return grid
    places = np.indices(grid.shape)
    rows, columns = places[0], places[1]
    colors = grid[known].astype(np.int64)
    sizes = sorted((down * right, down, right) for down in range(1, height + 1) for right in range(1, width + 1))
    for size, down, right in sizes:
        if size > len(colors) // 2:
            break
        for shear in range(right if size <= _LARGEST_SHEARED else 1):
            place = (rows % down) * right + (columns - shear * (rows // down)) % right
            cells = np.zeros(size, np.int64)
            cells[place[known]] = colors
            if (cells[place[known]] == colors).all():
                return np.where(known, grid, cells[place]).astype(np.uint8)
    return grid


def continue_lines(images: Images, way: str) -> Images:
    """Continue the lines up to the last colored one, in one direction, by the smallest period with which they repeat.

    ``2 5 2 0 0 0`` becomes ``2 5 2 5 2 5`` to the right. Lines that repeat nothing keep their distance, if it is even:
    ``2 0 8 0 0 0 0`` becomes ``2 0 8 0 2 0 8``. Else they follow without a gap.
    """
    results = images.cells.copy()
    for index in range(len(images)):
        grid = results[index, : images.height[index], : images.width[index]]
        lines = grid.T if way in ("left", "right") else grid
        lines = lines[::-1] if way in ("up", "left") else lines
        colored = np.flatnonzero((lines != 0).any(1))
        if not len(colored):
            continue
        known = lines[colored[0] : colored[-1] + 1]
        steps = np.diff(colored)
        periods = [step for step in range(1, len(known)) if np.array_equal(known[step:], known[:-step])]
        is_even = len(steps) > 0 and (steps == steps[0]).all()
        period = periods[0] if periods else int(steps[0]) * len(colored) if is_even else len(known)
        unit = np.zeros((period, lines.shape[1]), np.uint8)
        unit[: len(known)] = known[:period]
        lines[colored[0] :] = unit[np.arange(len(lines) - colored[0]) % period]  # a view of the results
    return images.with_cells(results)


def unit(images: Images) -> Images:
    """Cut out the smallest tile, at the top left, that gives the whole image when it is repeated.

    In ``1 2 1 2 1`` it is ``1 2``. An image that repeats nothing has no answer.
    """
    sizes = []
    for axis, size in ((1, images.height), (2, images.width)):
        period = size.astype(np.int64)
        for step in range(images.frame - 1, 0, -1):
            here = np.take(images.cells, range(step, images.frame), axis)
            before = np.take(images.cells, range(images.frame - step), axis)
            known = np.take(images.inside, range(step, images.frame), axis)
            repeats = ((here == before) | ~known).all((1, 2)) & (2 * step <= size)
            period = np.where(repeats, step, period)
        sizes.append(period)
    is_smaller = (sizes[0] < images.height) | (sizes[1] < images.width)
    zero = np.zeros_like(sizes[0])
    return windows(images, zero, zero, *sizes).only(is_smaller)
