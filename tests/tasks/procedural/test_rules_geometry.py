"""Turning, mirroring and completing pictures, as NumPy says it."""

import numpy as np
import pytest

TURNS = {  # the flags that a task draws -> the symmetry
    1: np.transpose,
    2: np.flipud,
    3: lambda grid: np.rot90(grid, 1),
    4: np.fliplr,
    5: lambda grid: np.rot90(grid, -1),
    6: lambda grid: np.rot90(grid, 2),
    7: lambda grid: np.rot90(grid.T, 2),
}
EXPECTED = {"rotate": {3, 5, 6}, "flip-left-right": {4}, "flip-up-down": {2}, "transpose": {1}, "geometric": set(TURNS)}


@pytest.mark.parametrize(("name", "shape"), [*((name, (7, 12)) for name in EXPECTED), ("geometric", (30, 30))])
def test_picture_is_turned_by_the_symmetry_of_the_task(draw_tasks, name, shape):
    tasks = draw_tasks(name, shape)
    assert {int(task.drawn) for task in tasks} == EXPECTED[name]
    for task in tasks:
        for grid, output in task.pairs:
            np.testing.assert_array_equal(output, TURNS[int(task.drawn)](grid))


@pytest.mark.parametrize("shape", [(7, 12), (2, 2)])
def test_a_picture_looks_different_under_every_other_symmetry(draw_tasks, shape):
    for task in draw_tasks("geometric", shape):
        for grid, output in task.pairs:
            same = {flags for flags, turn in TURNS.items() if np.array_equal(turn(grid), output)}
            assert same == {int(task.drawn)}


def test_flips_use_all_of_a_canvas_that_is_not_square(draw_tasks):
    shapes = [grid.shape for task in draw_tasks("flip-left-right", (7, 12)) for grid, _ in task.pairs]
    assert max(height for height, _ in shapes) == 7
    assert max(width for _, width in shapes) == 12


MIRRORS = {1: [np.fliplr], 2: [np.flipud], 3: [np.fliplr, np.flipud], 4: [lambda grid: np.rot90(grid, 2)]}


@pytest.mark.parametrize("shape", [(7, 12), (2, 2)])
def test_completed_picture_is_symmetric_and_shows_what_the_patch_hides(draw_tasks, shape):
    tasks = draw_tasks("complete-symmetry", shape)
    assert {int(task.drawn.symmetry) for task in tasks} == set(MIRRORS)
    for task in tasks:
        for grid, output in task.pairs:
            hidden = grid == task.drawn.color
            np.testing.assert_array_equal(grid[~hidden], output[~hidden])
            assert not (output == task.drawn.color).any()
            rows, columns = np.nonzero(hidden)
            assert hidden[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1].all()
            for mirror in MIRRORS[int(task.drawn.symmetry)]:
                np.testing.assert_array_equal(mirror(output), output)
                assert not (hidden & mirror(hidden)).any()
