"""Drawing in the terminal, and the commands of ``jaxarc tasks``."""

import io
import json

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from jaxarc.cli.tasks import app
from jaxarc.constants import NUM_COLORS
from jaxarc.render import ARC_COLORS, COLOR_NAMES, render_grid, render_task
from jaxarc.tasks import create_task

WIDE = {"COLUMNS": "200", "TERM": "dumb"}


def drawn(renderable, width=200, **options):
    console = Console(file=io.StringIO(), width=width, **options)
    console.print(renderable)
    return console.file.getvalue()


def run(*arguments):
    return CliRunner().invoke(app, arguments, env=WIDE)


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


@pytest.mark.parametrize(("grid", "message"), [([1, 2], r"two axes .* got shape \(2,\)"), ([[10]], r"got 10\.\.10")])
def test_what_is_not_a_grid_is_not_drawn(grid, message):
    with pytest.raises(ValueError, match=message):
        render_grid(np.array(grid))


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


def test_list_names_every_dataset_with_its_counts():
    result = run("list")
    assert result.exit_code == 0
    lines = [line.replace("│", " ").split() for line in result.output.splitlines()]
    assert ["arc-agi-1/training", "400", "1302", "416", "30x30"] in lines
    assert ["arc-agi-2/evaluation", "120", "359", "167", "30x30"] in lines


def test_show_finds_a_task_in_any_dataset():
    result = run("show", "007bbfb7")
    assert result.exit_code == 0
    assert "007bbfb7 in arc-agi-1/training" in result.output
    assert "3x3 → 9x9" in result.output


def test_show_and_stats_take_a_folder(tmp_path):
    pair = {"input": [[1, 2]], "output": [[2, 1]]}
    (tmp_path / "mine.json").write_text(json.dumps({"train": [pair, pair], "test": [pair]}))
    shown = run("show", "mine", "--dataset", str(tmp_path))
    assert shown.exit_code == 0
    assert "1 2  → 2 1" in shown.output
    counted = run("stats", str(tmp_path))
    assert counted.exit_code == 0
    assert "2 (2..2 a task)" in counted.output
    assert "1..5" in counted.output


def test_stats_counts_tasks_pairs_sizes_and_padding():
    result = run("stats", "arc-agi-1/training")
    assert result.exit_code == 0
    for part in ("400", "1302 (2..10 a task)", "416 (1..3 a task)", "3.09 MB", "26..30"):
        assert part in result.output
    rows = [line.split("│") for line in result.output.splitlines() if ".." in line and "task)" not in line]
    assert sum(int(row[2]) for row in rows) == 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "007bbfb"], "did you mean '007bbfb7'"),
        (["show", "007bbfb", "--dataset", "arc-agi-1/training"], "did you mean '007bbfb7'"),
        (["show", "x", "--dataset", "arc-agi-1/trainin"], "did you mean 'arc-agi-1/training'"),
        (["stats", "arc-agi-3"], "no dataset, file or folder 'arc-agi-3'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert result.stdout == ""


def test_a_broken_file_is_one_line_too(tmp_path):
    (tmp_path / "bad[red].json").write_text("{")
    result = run("stats", str(tmp_path))
    assert result.exit_code == 1
    assert "bad[red].json: not JSON at line 1" in result.stderr
