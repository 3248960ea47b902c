"""Drawings of grids: what is in the SVG, and how drawings are put together."""

import re
import xml.etree.ElementTree as ElementTree

import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.render.palette import ARC_COLORS
from jaxarc.render.svg import Drawing, captioned, draw_grid, draw_text, hstack, vstack

SVG = "{http://www.w3.org/2000/svg}"
GRID = np.array([[0, 1, 1, -1], [2, 2, 0, -1], [-1, -1, -1, -1]], np.int8)


def parse(drawing: Drawing) -> ElementTree.Element:
    return ElementTree.fromstring(drawing.to_svg("a title"))


def painted_cells(root: ElementTree.Element, color: str, side: int) -> int:
    """Area of all rectangles of one fill color, in cells."""
    area = 0
    for path in root.iter(f"{SVG}path"):
        if path.get("fill") == color:
            for width, height in re.findall(r"h(\d+)v(\d+)h-\d+z", path.get("d", "")):
                area += int(width) * int(height)
    return area // side**2


def dashed_length(root: ElementTree.Element, side: int) -> int:
    """Length of the dashed outline, in cell sides."""
    (path,) = [path for path in root.iter(f"{SVG}path") if path.get("stroke-dasharray")]
    return sum(int(length) for length in re.findall(r"[hv](\d+)", path.get("d", ""))) // side


@pytest.mark.parametrize("side", [6, 20])
def test_every_cell_is_painted_in_its_color(side):
    root = parse(draw_grid(GRID, cell_size=side))
    counts = {color: painted_cells(root, ARC_COLORS[color], side) for color in range(10)}
    assert counts == {**dict.fromkeys(range(10), 0), 0: 2, 1: 2, 2: 2}
    assert painted_cells(root, "#f3f3f3", side) == (GRID == -1).sum()


@pytest.mark.parametrize(
    ("cells", "length"), [([(0, 0)], 4), ([(0, 0), (0, 1)], 6), ([(0, 0), (2, 3)], 8), ([(1, 1), (2, 2)], 8)]
)
def test_selection_is_outlined_along_its_border(cells, length):
    selection = np.zeros(GRID.shape, bool)
    selection[tuple(zip(*cells, strict=True))] = True
    assert dashed_length(parse(draw_grid(GRID, selection, cell_size=12)), 12) == length


def test_a_hole_in_the_selection_is_outlined_too():
    selection = np.ones((3, 3), bool)
    selection[1, 1] = False
    assert dashed_length(parse(draw_grid(np.zeros((3, 3), np.int8), selection)), 20) == 12 + 4


def test_active_area_is_outlined():
    (outline,) = [path for path in parse(draw_grid(GRID)).iter(f"{SVG}path") if path.get("stroke-width") == "2"]
    assert sum(int(length) for length in re.findall(r"[hv](\d+)", outline.get("d", ""))) == 20 * 2 * (2 + 3)


def test_numbers_name_the_active_cells():
    texts = [text.text for text in parse(draw_grid(GRID, show_numbers=True)).iter(f"{SVG}text")]
    assert texts == ["0", "1", "1", "2", "2", "0"]


def test_jax_arrays_are_drawn_like_numpy_ones():
    selection = GRID == 1
    assert draw_grid(jnp.asarray(GRID), jnp.asarray(selection)) == draw_grid(GRID, selection)


def test_a_selection_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"\(2, 2\).*\(3, 4\)"):
        draw_grid(GRID, np.ones((2, 2), bool))


def test_rows_add_widths_and_columns_add_heights():
    one, two = Drawing(10, 30, ""), Drawing(20, 5, "")
    row, column = hstack([one, two], gap=3), vstack([one, two], gap=3)
    assert (row.width, row.height) == (33, 30)
    assert (column.width, column.height) == (20, 38)
    assert "translate(13 12.5)" in row.body
    assert "translate(5 0)" in column.body


def test_a_caption_wider_than_its_drawing_widens_it():
    caption = "a long line of text under a small grid"
    drawing = captioned(draw_grid(GRID, cell_size=4), caption)
    assert drawing.width == draw_text(caption, 11).width
    (text,) = parse(drawing).iter(f"{SVG}text")
    assert text.get("text-anchor") == "middle"
    assert float(text.get("x", "")) == drawing.width / 2


def test_text_is_escaped():
    root = parse(captioned(draw_text("a < b & c"), "'d'"))
    assert [text.text for text in root.iter(f"{SVG}text")] == ["a < b & c", "'d'"]
    (title,) = root.iter(f"{SVG}title")
    assert title.text == "a title"
