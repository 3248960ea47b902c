"""Complete an image by its own symmetry or tiling, both found from the cells that are known."""

from typing import Final

import numpy as np
from jaxtyping import Int64, UInt8

from jaxarc.search.images import Images, bounding_boxes

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

_FAULT: Final = 100.0  # agreeing cells that one contradiction outweighs
_LARGEST_SHEARED: Final = 64  # cells of a tile that is tried sheared


def complete_symmetry(images: Images, kind: str) -> Images:
    """Fill cells of color 0 from their mirror images, around the center at which most cells agree.

    An image whose colors fill less than a fifth of their box has no answer: little would speak for a center.
    """
    _, _, height, width = bounding_boxes(images.cells != 0)
    is_dense = (5 * (images.cells != 0).sum((1, 2)) >= height * width) & (height > 0)
    results = np.zeros_like(images.cells)
    for index in np.flatnonzero(is_dense).tolist():
        grid = images.grid(index)
        results[index, : grid.shape[0], : grid.shape[1]] = _completed(grid, kind)
    return images.with_cells(results).only(is_dense)


def _completed(grid: UInt8[np.ndarray, "h w"], kind: str) -> UInt8[np.ndarray, "h w"]:
    """Fill one grid.

    A center is the sum ``s`` of a row and of its mirror image, ``row + mirrored = s``, and the same for columns. The
    cells that agree around all centers are an autoconvolution of each color: with ``1 2 1`` color 1 gives ``1 0 2 0 1``
    and color 2 ``0 0 1 0 0``, so three cells agree at ``s = 2``, the middle. Cells that contradict one another are the
    autoconvolution of what is known, less those. One Fourier transform gives all centers.
    """
    height, width = grid.shape
    known = grid != 0
    colors = np.unique(grid[known])
    masks = np.stack([known, *(grid == color for color in colors)]).astype(np.float64)
    names = SYMMETRIES["both" if kind == "all" else kind]
    value = np.zeros((2 * height - 1, 2 * width - 1))
    for flip_rows, flip_columns, _ in names:
        found = _autoconvolved(masks, flip_rows, flip_columns)
        agree = found[1:].sum(0)
        value = value + agree - _FAULT * (found[0] - agree)
    places = np.indices(value.shape)
    rows, columns = places[0], places[1]
    value = value - 1e-3 * (abs(rows - height + 1) + abs(columns - width + 1))  # of equals the one nearest the middle
    value[(rows < height // 2) | (rows >= 2 * height - height // 2 - 1)] = -np.inf
    value[(columns < width // 2) | (columns >= 2 * width - width // 2 - 1)] = -np.inf
    if kind == "all":
        value[rows != columns] = -np.inf
    center = np.unravel_index(value.argmax(), value.shape)
    if value[center] <= 0:
        return grid
    copies = [_mirrored(grid, int(center[0]), int(center[1]), flips) for flips in SYMMETRIES[kind]]
    if any((known & (copy != 0) & (copy != grid)).any() for copy in copies):
        return grid
    return np.maximum.reduce([grid, *(np.where(known, 0, copy) for copy in copies)])


def _autoconvolved(masks: np.ndarray, flip_rows: bool, flip_columns: bool) -> Int64[np.ndarray, "M s t"]:
    """Return for each center how many pairs of cells of a mask are mirror images."""
    shape = 2 * masks.shape[1] - 1, 2 * masks.shape[2] - 1
    axes = [axis for axis, flips in ((1, flip_rows), (2, flip_columns)) if flips]
    size = [shape[axis - 1] for axis in axes]
    spectrum = np.fft.rfftn(masks, size, axes)
    counts = np.rint(np.fft.irfftn(spectrum**2, size, axes)).astype(np.int64)
    for axis in {1, 2} - set(axes):  # cells that stay in their row or column count wherever the center lies
        counts = counts.sum(axis, keepdims=True)
    return np.broadcast_to(counts, (len(masks), *shape))


def _mirrored(grid: np.ndarray, row_sum: int, column_sum: int, flips: Flips) -> np.ndarray:
    height, width = grid.shape
    places = np.indices(grid.shape)
    rows, columns = places[0], places[1]
    rows = row_sum - rows if flips[0] else rows
    columns = column_sum - columns if flips[1] else columns
    if flips[2]:
        rows, columns = columns, rows
    known = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return np.where(known, grid[np.where(known, rows, 0), np.where(known, columns, 0)], 0)


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
