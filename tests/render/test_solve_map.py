import numpy as np
import pytest
from matplotlib.image import imread

from jaxarc.render.figures import SolveMap, draw_solve_map


def table(num_tasks, **changes):
    fields = {
        "task_ids": [f"task{i:04}" for i in range(num_tasks)],
        "columns": ["solved", "steps"],
        "shades": [[1.0, None] for _ in range(num_tasks)],
        "texts": [["1/1", ""] for _ in range(num_tasks)],
        "plain": ["steps"],
    }
    return SolveMap(**{**fields, **changes})


def drawn(tmp_path, solve_map):
    path = tmp_path / "map.png"
    draw_solve_map(solve_map, path, "a title")
    assert [file.name for file in tmp_path.iterdir()] == ["map.png"]
    return imread(path)[..., :3]


def count(picture, color):
    return int((np.abs(picture - np.array(color)).max(axis=-1) < 0.02).sum())


@pytest.mark.parametrize("num_tasks", [1, 7, 51])
def test_every_task_has_its_cells(tmp_path, num_tasks):
    picture = drawn(tmp_path, table(num_tasks))
    dark = count(picture, (0x00, 0x30 / 255, 0x5C / 255))
    assert dark > 300 * num_tasks  # pixels of a cell that is not covered by its text
    assert picture.shape[1] < 2000


def test_a_plain_column_is_gray_and_a_cell_without_a_value_white(tmp_path):
    full = [[None, 1.0]] * 3
    picture = drawn(tmp_path, table(3, shades=full, texts=[["", ""]] * 3))
    assert count(picture, (0x66 / 255,) * 3) > 3 * 300
    assert count(picture, (0x00, 0x30 / 255, 0x5C / 255)) == 0


def test_many_tasks_make_the_blocks_longer_and_not_more(tmp_path, monkeypatch):
    monkeypatch.setattr("jaxarc.render.figures._MOST_BLOCKS", 2)
    wide = drawn(tmp_path, table(100)).shape
    long = drawn(tmp_path, table(130)).shape
    assert long[1] == wide[1]
    assert long[0] > wide[0]
