"""Grids as images of Pillow: the functions of :mod:`jaxarc.render.svg`, which make and join images instead of SVG."""

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from jaxarc.constants import PADDING
from jaxarc.render.palette import ARC_COLORS, PADDING_COLOR, Palette, color_of, ink_on
from jaxarc.render.svg import CELL_SIZE, MARGIN, RIGHT_COLOR, checked_grid, checked_grids, edges_of

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Int8

GROUND: Final = "#ffffff"
_INK: Final = "#333333"
_LINE: Final = "#80808073"  # half transparent, as in SVG


def draw_grid(
    grid: "Int8[Array, 'H W'] | np.ndarray",
    selection: "Bool[Array, 'H W'] | np.ndarray | None" = None,
    cell_size: int = CELL_SIZE,
    show_numbers: bool = False,
    palette: Palette = ARC_COLORS,
) -> Image.Image:
    """Draw a grid; arguments and errors are those of :func:`jaxarc.render.svg.draw_grid`."""
    cells, marked = checked_grid(grid, selection)
    # In this order, each over the last: cells, lines between them, numbers, the
    # outline of the active area, the selection.
    image, pen = _canvas_of(cells.shape, cell_size)
    for (row, column), color in np.ndenumerate(cells):
        pen.rectangle(_box(row, column, cell_size), color_of(int(color), palette))
    _lines(pen, cells.shape, cell_size)
    if show_numbers:
        for (row, column), color in np.ndenumerate(cells):
            if color != PADDING:
                middle = [MARGIN + (index + 0.5) * cell_size for index in (column, row)]
                ink = ink_on(int(color), palette)
                pen.text(tuple(middle), str(color), ink, _font(round(cell_size * 0.55)), anchor="mm")
    _outline(pen, cells != PADDING, cell_size, _INK, 2)
    if marked is not None:
        _outline(pen, marked, cell_size, "#ffffff", 4)
        _outline(pen, marked, cell_size, "#000000", 2, dash=max(2, round(cell_size / 5)))
    return image


def draw_difference(
    grid: "Int8[Array, 'H W'] | np.ndarray",
    target: "Int8[Array, 'H W'] | np.ndarray",
    cell_size: int = CELL_SIZE,
    palette: Palette = ARC_COLORS,
) -> Image.Image:
    """Draw where a grid differs from its target; see :func:`jaxarc.render.svg.draw_difference`."""
    cells, goal = checked_grids(grid, target)
    image, pen = _canvas_of(cells.shape, cell_size)
    for (row, column), color in np.ndenumerate(cells):
        left, top, right, bottom = _box(row, column, cell_size)
        wanted = int(goal[row, column])
        if color == wanted:
            pen.rectangle((left, top, right, bottom), PADDING_COLOR if color == PADDING else RIGHT_COLOR)
        else:
            # The square in the grid's color, and over its lower right half a triangle in the target's.
            pen.rectangle((left, top, right, bottom), color_of(int(color), palette))
            pen.polygon([(right, top), (right, bottom), (left, bottom)], color_of(wanted, palette))
    _lines(pen, cells.shape, cell_size)
    _outline(pen, cells != goal, cell_size, _INK, 2)
    return image


def draw_text(text: str, size: int = 12) -> Image.Image:
    """Draw one line of text."""
    font = _font(size)
    image = Image.new("RGB", (round(font.getlength(text)) + 2, round(size * 1.4)), GROUND)
    ImageDraw.Draw(image).text((0, size), text, _INK, font, anchor="ls")
    return image


def draw_arrow(length: int = 26) -> Image.Image:
    """Draw an arrow to the right."""
    image = Image.new("RGB", (length, 12), GROUND)
    pen = ImageDraw.Draw(image)
    pen.line([(2, 6), (length - 8, 6)], _INK, 2)
    pen.polygon([(length - 9, 1), (length - 1, 6), (length - 9, 11)], _INK)
    return image


def hstack(drawings: Sequence[Image.Image], gap: int = 8) -> Image.Image:
    """Put images in a row, each in the middle of the row's height."""
    height = max(drawing.height for drawing in drawings)
    joined = Image.new("RGB", (sum(drawing.width for drawing in drawings) + gap * (len(drawings) - 1), height), GROUND)
    x = 0
    for drawing in drawings:
        joined.paste(drawing, (x, (height - drawing.height) // 2))
        x += drawing.width + gap
    return joined


def vstack(drawings: Sequence[Image.Image], gap: int = 4, centered: bool = True) -> Image.Image:
    """Put images in a column, each in the middle of the column's width or at its left edge."""
    width = max(drawing.width for drawing in drawings)
    joined = Image.new("RGB", (width, sum(drawing.height for drawing in drawings) + gap * (len(drawings) - 1)), GROUND)
    y = 0
    for drawing in drawings:
        joined.paste(drawing, ((width - drawing.width) // 2 if centered else 0, y))
        y += drawing.height + gap
    return joined


def padded(drawing: Image.Image, margin: int) -> Image.Image:
    """Put an empty margin around an image."""
    image = Image.new("RGB", (drawing.width + 2 * margin, drawing.height + 2 * margin), GROUND)
    image.paste(drawing, (margin, margin))
    return image


def captioned(drawing: Image.Image, caption: str, size: int = 11) -> Image.Image:
    """Put a line of text under the middle of an image."""
    return vstack([drawing, draw_text(caption, size)], gap=1)


def to_png(image: Image.Image, optimize: bool = False) -> bytes:
    """Return a PNG file, with more work a smaller one."""
    file = BytesIO()
    image.save(file, "PNG", optimize=optimize)
    return file.getvalue()


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(max(size, 1))


def _canvas_of(shape: tuple[int, ...], side: int) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    height, width = (count * side + 2 * MARGIN for count in shape)
    image = Image.new("RGB", (width, height), GROUND)
    return image, ImageDraw.Draw(image, "RGBA")


def _box(row: int, column: int, side: int) -> tuple[int, int, int, int]:
    left = MARGIN + column * side
    top = MARGIN + row * side
    # Pillow draws both ends of a box, so the last pixel is one less than the side.
    return left, top, left + side - 1, top + side - 1


def _lines(pen: ImageDraw.ImageDraw, shape: tuple[int, ...], side: int) -> None:
    bottom, right = (MARGIN + count * side for count in shape)
    for row in range(shape[0] + 1):
        pen.line([(MARGIN, MARGIN + row * side), (right, MARGIN + row * side)], _LINE)
    for column in range(shape[1] + 1):
        pen.line([(MARGIN + column * side, MARGIN), (MARGIN + column * side, bottom)], _LINE)


def _outline(
    pen: ImageDraw.ImageDraw, mask: np.ndarray, side: int, color: str, width: int, dash: int | None = None
) -> None:
    """Stroke the edges between cells of a mask and other cells, as ``_border`` of the SVG module finds them."""
    half = width // 2
    above, left = edges_of(mask)
    for row, column in above:
        x = MARGIN + column * side
        y = MARGIN + row * side
        for start, stop in _dashes(side, dash, half):
            pen.rectangle((x + start, y - half, x + stop, y - half + width - 1), color)
    for row, column in left:
        x = MARGIN + column * side
        y = MARGIN + row * side
        for start, stop in _dashes(side, dash, half):
            pen.rectangle((x - half, y + start, x - half + width - 1, y + stop), color)


def _dashes(side: int, dash: int | None, overhang: int) -> list[tuple[int, int]]:
    """Return first and last pixel of each dash of an edge: side 20, dash 4 gives (0, 3), (8, 11), (16, 19)."""
    if dash is None:
        return [(-overhang, side + overhang - 1)]
    return [(start, min(start + dash, side) - 1) for start in range(0, side, 2 * dash)]
