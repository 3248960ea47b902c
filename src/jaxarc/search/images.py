"""Many small images in one frame, each with a size and a position: what the functions in NumPy take and return."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int32, Int64, UInt8, UInt64

NUM_COLORS: Final = 10
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(32)
_WORD: Final = 8  # bytes


@dataclass(frozen=True)
class Images:
    """N images in a frame of F x F cells; color 0 is the ground, and a cell outside of an image is 0 too.

    An image without rows is no image: a function returns it where it has no answer.
    """

    cells: UInt8[np.ndarray, "N F F"]  # colors 0..9, at the top left of the frame
    row: Int32[np.ndarray, " N"]  # of the top left cell in the grid that the image was cut from; may be negative
    column: Int32[np.ndarray, " N"]
    height: Int32[np.ndarray, " N"]  # 0 .. F
    width: Int32[np.ndarray, " N"]

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def frame(self) -> int:
        """F, the side of the frame."""
        return self.cells.shape[1]

    @cached_property
    def inside(self) -> Bool[np.ndarray, "N F F"]:
        """Which cells belong to their image."""
        span = np.arange(self.frame)
        return (span[:, None] < self.height[:, None, None]) & (span < self.width[:, None, None])

    def take(self, index: Any) -> "Images":
        """Return some of the images, by index or mask."""
        return Images(self.cells[index], self.row[index], self.column[index], self.height[index], self.width[index])

    def with_cells(self, cells: np.ndarray) -> "Images":
        """Return images of the same place and size with other colors."""
        return replace(self, cells=cells.astype(np.uint8, copy=False))

    def only(self, keep: Bool[np.ndarray, " N"]) -> "Images":
        """Return the images with those that are not kept turned into no image."""
        if keep.all():
            return self
        return replace(self, height=np.where(keep, self.height, 0), width=np.where(keep, self.width, 0))

    def grid(self, index: int) -> np.ndarray:
        """Return one image as a grid of its own size."""
        return self.cells[index, : self.height[index], : self.width[index]]


def images_of(grids: list[np.ndarray], frame: int) -> Images:
    """Put grids into a frame, each at position 0, 0; a grid that does not fit is no image."""
    count = len(grids)
    cells = np.zeros((count, frame, frame), np.uint8)
    height, width = np.zeros(count, np.int32), np.zeros(count, np.int32)
    for index, grid in enumerate(grids):
        if max(grid.shape) <= frame:
            cells[index, : grid.shape[0], : grid.shape[1]] = grid
            height[index], width[index] = grid.shape
    return Images(cells, np.zeros(count, np.int32), np.zeros(count, np.int32), height, width)


def gathered(
    images: Images,
    rows: Int64[np.ndarray, "N F"],
    columns: Int64[np.ndarray, "N F"],
    height: np.ndarray,
    width: np.ndarray,
) -> Images:
    """Return images of a new size whose cell ``r, c`` is the cell ``rows[r], columns[c]`` of the old one.

    A source outside of the frame gives color 0. An image that grows out of the frame is no image.

    With ``width`` 3 and ``columns = 2 1 0`` the row ``4 5 6`` becomes ``6 5 4``.
    """
    side = images.frame
    span = np.arange(side)
    rows_known = (rows >= 0) & (rows < side) & (span < height[:, None])
    columns_known = (columns >= 0) & (columns < side) & (span < width[:, None])
    flat = np.where(rows_known, rows, 0)[:, :, None] * side + np.where(columns_known, columns, 0)[:, None, :]
    shape = len(images), side * side
    cells = np.take_along_axis(images.cells.reshape(shape), flat.reshape(shape), axis=1)
    cells = cells.reshape(images.cells.shape) * (rows_known[:, :, None] & columns_known[:, None, :])
    result = replace(images, cells=cells, height=height.astype(np.int32), width=width.astype(np.int32))
    fits = (height > 0) & (width > 0) & (height <= side) & (width <= side)
    return result.only(fits)


def windows(images: Images, top: np.ndarray, left: np.ndarray, height: np.ndarray, width: np.ndarray) -> Images:
    """Cut a window out of each image; its position moves along. Rows and columns may lie outside of the image."""
    span = np.arange(images.frame)
    cut = gathered(images, top[:, None] + span, left[:, None] + span, height, width)
    return replace(cut, row=(images.row + top).astype(np.int32), column=(images.column + left).astype(np.int32))


def bounding_boxes(mask: Bool[np.ndarray, "N F F"]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return top, left, height and width of the cells of each mask; an empty mask has height and width 0."""
    side = mask.shape[1]
    rows, columns = np.any(mask, axis=2), np.any(mask, axis=1)
    some = np.any(rows, axis=1)
    top, left = rows.argmax(1), columns.argmax(1)
    height = np.where(some, side - rows[:, ::-1].argmax(1) - top, 0)
    width = np.where(some, side - columns[:, ::-1].argmax(1) - left, 0)
    return top, left, height, width


def color_counts(images: Images) -> np.ndarray:
    """Return how many cells of each color an image has, ``int[N, 10]``; of 0 only those inside of it."""
    counts = np.stack([(images.cells == color).sum((1, 2)) for color in range(NUM_COLORS)], 1)
    counts[:, 0] -= images.frame**2 - images.height * images.width
    return counts


def common_color(images: Images) -> np.ndarray:
    """Return the most common color but 0 of each image, 0 where there is none; of equals the lowest."""
    counts = color_counts(images)
    counts[:, 0] = 0
    return counts.argmax(1)


def hash_bytes(rows: UInt8[np.ndarray, "N B"]) -> UInt64[np.ndarray, " N"]:
    """Return a hash of 64 bits of each row of bytes.

    Words of 8 bytes are mixed, so that their high bits reach the low ones, and added with random odd weights. Without
    the mixing, two rows that differ only in the last byte of a word would collide once in 256.
    """
    count, length = rows.shape
    padded = np.zeros((count, -(-length // _WORD) * _WORD), np.uint8)
    padded[:, :length] = rows
    words = padded.view(np.uint64) * _MIX
    words ^= words >> _SHIFT
    weights = np.random.default_rng(0).integers(0, 2**63, words.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (words * weights).sum(1, dtype=np.uint64) * _MIX
    return mixed ^ (mixed >> _SHIFT)
