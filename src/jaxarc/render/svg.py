"""Grids as SVG: drawings that join like boxes and are written as one string.

A :class:`Drawing` is a piece of SVG with a size. :func:`draw_grid` makes one, :func:`hstack`, :func:`vstack` and
:func:`captioned` join several, and ``to_svg`` writes the file.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.host_arrays import to_numpy
from jaxarc.render.palette import ARC_COLORS, Palette, color_of, ink_on

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Int8

CELL_SIZE: Final = 20  # pixels
MARGIN: Final = 3  # pixels around a grid, room for its outlines
_INK: Final = "#333333"
RIGHT_COLOR: Final = "#e4e6e3"  # of right cells in a difference
_LINE_COLOR: Final = "#808080"
_FONT: Final = "font-family='Helvetica, Arial, sans-serif'"


class Drawing(NamedTuple):
    """A piece of SVG whose top-left corner is the origin."""

    width: int  # pixels
    height: int  # pixels
    body: str  # SVG elements

    def to_svg(self, title: str = "", background: str | None = "#ffffff") -> str:
        """Return a whole SVG file.

        Args:
            title: what a screen reader says.
            background: a CSS color, or None for a transparent one.
        """
        ground = "" if background is None else f"<rect width='100%' height='100%' rx='4' fill='{background}'/>\n"
        return (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{self.width}' height='{self.height}' "
            f"viewBox='0 0 {self.width} {self.height}' role='img'>\n"
            f"<title>{escape(title, quote=False)}</title>\n{ground}{self.body}\n</svg>\n"
        )


def draw_grid(
    grid: "Int8[Array, 'H W'] | np.ndarray",
    selection: "Bool[Array, 'H W'] | np.ndarray | None" = None,
    cell_size: int = CELL_SIZE,
    show_numbers: bool = False,
    palette: Palette = ARC_COLORS,
) -> Drawing:
    """Draw a grid with its padding, a line around the active area and a dashed line around the selection.

    Args:
        grid: ``int[H, W]``, colors 0..9, -1 as padding.
        selection: cells to outline, in the active area or not.
        cell_size: pixels of a cell's side.
        show_numbers: write each color's number into its cells.
        palette: the ten colors.
    """
    cells, marked = checked_grid(grid, selection)
    side = cell_size
    parts = [_cells(cells == color, side, color_of(color, palette)) for color in range(PADDING, NUM_COLORS)]
    parts.append(_lines(cells.shape[0], cells.shape[1], side))
    if show_numbers:
        parts.append(_numbers(cells, side, palette))
    parts.append(_stroke(_border(cells != PADDING, side), _INK, 2))
    if marked is not None:
        # White below and black dashes on it: the line can be seen on any color.
        border = _border(marked, side)
        parts += [
            _stroke(border, "#ffffff", 4),
            _stroke(border, "#000000", 2, f"stroke-dasharray='{side / 5:g}'", "butt"),
        ]
    return _framed(cells.shape, side, parts)


def draw_difference(
    grid: "Int8[Array, 'H W'] | np.ndarray",
    target: "Int8[Array, 'H W'] | np.ndarray",
    cell_size: int = CELL_SIZE,
    palette: Palette = ARC_COLORS,
) -> Drawing:
    """Draw where a grid differs from its target: a wrong cell has its color upper left and the target's lower right.

    Right cells are faint.
    """
    cells, goal = checked_grids(grid, target)
    side = cell_size
    wrong = cells != goal
    parts = [_cells((cells != PADDING) & ~wrong, side, RIGHT_COLOR)]
    for color in range(PADDING, NUM_COLORS):
        fill = color_of(color, palette)
        # The first path goes right along the top and back to the lower left: the upper left triangle. The second goes
        # down the right side and back: the lower right one.
        parts.append(_halves(wrong & (cells == color), side, fill, f"h{side}l{-side} {side}z", (0, 0)))
        parts.append(_halves(wrong & (goal == color), side, fill, f"v{side}h{-side}z", (0, 1)))
    parts.append(_lines(cells.shape[0], cells.shape[1], side))
    parts.append(_stroke(_border(wrong, side), _INK, 2))
    return _framed(cells.shape, side, parts)


def draw_text(text: str, size: int = 12) -> Drawing:
    """Draw one line of text; its width is an estimate, fonts differ."""
    width = round(len(text) * size * 0.56) + 2
    style = f"{_FONT} font-size='{size}' fill='{_INK}'"
    return Drawing(width, round(size * 1.4), f"<text y='{size}' {style}>{escape(text, quote=False)}</text>")


def draw_arrow(length: int = 26) -> Drawing:
    """Draw an arrow to the right."""
    line = f"<path d='M2 6H{length - 8}' stroke='{_INK}' stroke-width='2'/>"
    head = f"<path d='M{length - 9} 1L{length - 1} 6L{length - 9} 11z' fill='{_INK}'/>"
    return Drawing(length, 12, line + head)


def hstack(drawings: Sequence[Drawing], gap: int = 8) -> Drawing:
    """Put drawings in a row, each in the middle of the row's height."""
    height = max(drawing.height for drawing in drawings)
    parts = []
    x = 0
    for drawing in drawings:
        parts.append(_shifted(drawing, x, (height - drawing.height) / 2))
        x += drawing.width + gap
    return Drawing(x - gap, height, "\n".join(parts))


def vstack(drawings: Sequence[Drawing], gap: int = 4, centered: bool = True) -> Drawing:
    """Put drawings in a column, each in the middle of the column's width or at its left edge."""
    width = max(drawing.width for drawing in drawings)
    parts = []
    y = 0
    for drawing in drawings:
        parts.append(_shifted(drawing, (width - drawing.width) / 2 if centered else 0, y))
        y += drawing.height + gap
    return Drawing(width, y - gap, "\n".join(parts))


def padded(drawing: Drawing, margin: int) -> Drawing:
    """Put an empty margin around a drawing."""
    return Drawing(drawing.width + 2 * margin, drawing.height + 2 * margin, _shifted(drawing, margin, margin))


def captioned(drawing: Drawing, caption: str, size: int = 11) -> Drawing:
    """Put a line of text under the middle of a drawing."""
    line = draw_text(caption, size)
    width = max(drawing.width, line.width)
    # The width of a text is an estimate, so the text is anchored at its middle and may be longer on either side.
    text = line.body.replace("<text ", f"<text x='{width / 2:g}' text-anchor='middle' ", 1)
    return vstack([drawing, Drawing(width, line.height, text)], gap=1)


def checked_grid(
    grid: "Int8[Array, 'H W'] | np.ndarray", selection: "Bool[Array, 'H W'] | np.ndarray | None"
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a grid and a selection as NumPy arrays; raises as :func:`draw_grid` says."""
    cells = to_numpy(grid)
    if cells.ndim != 2:
        raise ValueError(f"a grid has two axes (rows, columns), got shape {cells.shape}; draw one grid at a time")
    if not np.issubdtype(cells.dtype, np.integer):
        raise TypeError(f"a grid holds whole numbers, got dtype {cells.dtype}; cast it to int8")
    if cells.size and (cells.min() < PADDING or cells.max() >= NUM_COLORS):
        raise ValueError(f"a grid holds {PADDING}..{NUM_COLORS - 1}, got {cells.min()}..{cells.max()}; recolor it")
    marked = None if selection is None else to_numpy(selection, bool)
    if marked is not None and marked.shape != cells.shape:
        raise ValueError(f"the selection has shape {marked.shape}, the grid {cells.shape}; they must be the same")
    return cells, marked


def checked_grids(
    grid: "Int8[Array, 'H W'] | np.ndarray", target: "Int8[Array, 'H W'] | np.ndarray"
) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid and its target as NumPy arrays; raises as :func:`draw_difference` says."""
    cells, _ = checked_grid(grid, None)
    goal, _ = checked_grid(target, None)
    if cells.shape != goal.shape:
        raise ValueError(f"the grid has shape {cells.shape}, its target {goal.shape}; pad both to one canvas")
    return cells, goal


def _framed(shape: tuple[int, ...], side: int, parts: Sequence[str]) -> Drawing:
    height, width = (count * side + 2 * MARGIN for count in shape)
    return Drawing(width, height, f"<g transform='translate({MARGIN} {MARGIN})'>{''.join(parts)}</g>")


def _halves(mask: np.ndarray, side: int, fill: str, path: str, start: tuple[int, int]) -> str:
    """Fill a triangle in each cell of a mask. ``path`` begins at a corner: (0, 0) upper left, (0, 1) upper right."""
    corners = (np.argwhere(mask) + start) * side
    halves = "".join(f"M{column} {row}{path}" for row, column in corners.tolist())
    return f"<path fill='{fill}' d='{halves}'/>" if halves else ""


def _cells(mask: np.ndarray, side: int, fill: str) -> str:
    """Fill the cells of a mask, one rectangle for each run of cells in a row: a file of 900 rectangles would be slow.

    The row ``. # # . #`` with a cell of 20 pixels gives two runs, cells 1 to 3 and cell 4 to 5::

        padded with False    0 0 1 1 0 1 0
        difference             0 1 0 -1 1 -1
        where it is not 0      1, 3, 4, 5       pairs of start and stop: (1, 3), (4, 5)
        path                   M20 0h40v20h-40z M80 0h20v20h-20z
    """
    runs = []
    for row, line in enumerate(mask):
        padded = np.concatenate([[False], line, [False]]).astype(np.int8)
        edges = np.flatnonzero(np.diff(padded))
        for start, stop in edges.reshape(-1, 2).tolist():
            runs.append(f"M{start * side} {row * side}h{(stop - start) * side}v{side}h{(start - stop) * side}z")
    return f"<path fill='{fill}' d='{''.join(runs)}'/>" if runs else ""


def _lines(rows: int, columns: int, side: int) -> str:
    across = "".join(f"M0 {row * side}h{columns * side}" for row in range(rows + 1))
    down = "".join(f"M{column * side} 0v{rows * side}" for column in range(columns + 1))
    return _stroke(across + down, _LINE_COLOR, 1, "stroke-opacity='0.45'")


def _numbers(cells: np.ndarray, side: int, palette: Palette) -> str:
    texts = [
        f"<text x='{(column + 0.5) * side:g}' y='{(row + 0.69) * side:g}' "
        f"fill='{ink_on(color, palette)}'>{color}</text>"
        for row, line in enumerate(cells.tolist())
        for column, color in enumerate(line)
        if color != PADDING
    ]
    size = f"font-size='{side * 0.55:g}'"
    return f"<g {_FONT} {size} text-anchor='middle' fill-opacity='0.7'>{''.join(texts)}</g>"


def _border(mask: np.ndarray, side: int) -> str:
    """Return a path along the edges between cells of a mask and other cells; the outside of the array counts as other.

    An edge is where a cell differs from its neighbor. One cell at row 0, column 1 of a row of three::

        . # .     above row 0 and below it: from column 1 to 2;    left of column 1 and left of column 2
    """
    above, left = edges_of(mask)
    across = [f"M{c * side} {r * side}h{side}" for r, c in above]
    down = [f"M{c * side} {r * side}v{side}" for r, c in left]
    return "".join(across + down)


def edges_of(mask: np.ndarray) -> tuple[list[list[int]], list[list[int]]]:
    """Return where edges are above a cell, and where left of one, as rows and columns; see :func:`_border`."""
    # Neighbors that differ have an edge between them. With one row and column of padding the outline of the mask is
    # found where it touches the border, too.
    around = np.pad(mask, 1)
    above = np.argwhere(around[1:, 1:-1] != around[:-1, 1:-1])
    left = np.argwhere(around[1:-1, 1:] != around[1:-1, :-1])
    return above.tolist(), left.tolist()


def _stroke(path: str, color: str, width: int, more: str = "", cap: str = "square") -> str:
    if not path:
        return ""
    return f"<path fill='none' stroke='{color}' stroke-width='{width}' stroke-linecap='{cap}' {more} d='{path}'/>"


def _shifted(drawing: Drawing, x: float, y: float) -> str:
    return f"<g transform='translate({x:g} {y:g})'>{drawing.body}</g>"
