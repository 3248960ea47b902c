"""Drawing in the terminal."""

import io

import numpy as np
import pytest
from rich.console import Console

from jaxarc.constants import NUM_COLORS
from jaxarc.render import ARC_COLORS, COLOR_NAMES, render_grid, render_task
from jaxarc.tasks import create_task


def drawn(renderable, width=200, **options):
    console = Console(file=io.StringIO(), width=width, **options)
    console.print(renderable)
    return console.file.getvalue()


def test_every_color_has_its_hex_value_and_name():
    assert len(set(ARC_COLORS)) == len(set(COLOR_NAMES)) == NUM_COLORS
    assert (ARC_COLORS[0], ARC_COLORS[2], ARC_COLORS[9]) == ("#000000", "#ff4136", "#870c25")


def test_grid_is_drawn_in_cells_two_wide_without_its_padding():
    grid = np.array([[1, 2, -1], [3, 4, -1], [-1, -1, -1]], np.int8)
    assert render_grid(grid).plain == "1 2 \n3 4 "
    assert render_grid(grid, cell_width=1).plain == "12\n34"


def test_grid_is_drawn_in_the_colors_of_arc():
    output = drawn(render_grid(np.array([[2, 0]])), force_terminal=True, color_system="truecolor")
    assert "48;2;255;65;54" in output  # #ff4136 behind the cell
    assert "48;2;0;0;0" in output


def test_grid_of_padding_only_is_empty():
    assert render_grid(np.full((2, 2), -1)).plain == ""


def test_task_shows_every_pair_side_by_side():
    pair = ([[1, 2], [3, 4]], [[5, 6, 7]])
    output = drawn(render_task(create_task([pair, pair], [pair], (6, 6)), "the title"))
    assert output.startswith("the title\n")
    assert output.count("2x2 → 1x3") == 3
    assert output.count("1 2  → 5 6 7") == 3
    first_line = output.splitlines()[1]
    assert all(name in first_line for name in ("train 0", "train 1", "test 0"))


@pytest.mark.parametrize(("width", "line"), [(140, "8 " * 30 + " → " + "9 " * 30), (80, "8 " * 30), (40, "8" * 30)])
def test_large_pair_fits_the_terminal_whole(width, line):
    pair = (np.full((30, 30), 8), np.full((30, 30), 9))
    output = drawn(render_task(create_task([pair], [pair])), width)
    assert line in output
    assert max(map(len, output.splitlines())) <= width
    assert output.count("8") == output.count("9") == 2 * 900
