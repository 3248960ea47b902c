"""Objects, frames and marks: what NumPy makes of each input is the output."""

import numpy as np
import pytest

CANVAS = (7, 12)


def moved(grid, rows, columns):
    output = np.zeros_like(grid)
    for row, column in zip(*np.nonzero(grid), strict=True):
        output[row + rows, column + columns] = grid[row, column]  # an IndexError or a wrap would show below
        assert row + rows >= 0
        assert column + columns >= 0
    return output


@pytest.mark.parametrize("shape", [CANVAS, (5, 5)])
def test_object_moves_by_the_vector_of_the_task(draw_tasks, shape):
    tasks = draw_tasks("move-object", shape)
    assert len({tuple(task.drawn) for task in tasks}) > 15
    for task in tasks:
        assert task.drawn.any()
        assert np.abs(task.drawn).max() <= 2
        for grid, output in task.pairs:
            assert len(np.unique(grid[grid > 0])) == 1
            np.testing.assert_array_equal(output, moved(grid, *task.drawn))


@pytest.mark.parametrize("shape", [CANVAS, (5, 5)])
def test_object_moves_in_the_direction_of_the_task_until_the_wall(draw_tasks, shape):
    tasks = draw_tasks("move-to-wall", shape)
    assert {tuple(task.drawn.tolist()) for task in tasks} == {(-1, 0), (1, 0), (0, -1), (0, 1)}
    for task in tasks:
        for grid, output in task.pairs:
            step, way = task.drawn, grid
            while not _touches(way, step):
                way = moved(way, *step)
            np.testing.assert_array_equal(output, way)


def _touches(grid, step):
    wall = {(-1, 0): grid[0], (1, 0): grid[-1], (0, -1): grid[:, 0], (0, 1): grid[:, -1]}[tuple(step.tolist())]
    return wall.any()


@pytest.mark.parametrize("shape", [CANVAS, (2, 2)])
def test_cells_fall_in_the_direction_of_the_task_and_keep_their_order(draw_tasks, shape):
    tasks = draw_tasks("gravity", shape)
    assert {int(task.drawn) for task in tasks} == {0, 1, 2, 3}
    for task in tasks:
        for grid, output in task.pairs:
            lines, fallen = (grid, output) if task.drawn >= 2 else (grid.T, output.T)
            for line, down in zip(lines, fallen, strict=True):
                stack, gaps = line[line > 0], np.zeros((line == 0).sum(), np.int8)
                np.testing.assert_array_equal(down, np.concatenate([gaps, stack] if task.drawn % 2 else [stack, gaps]))


@pytest.mark.parametrize("shape", [CANVAS, (3, 3), (30, 30)])
def test_what_the_edge_cannot_reach_is_filled(draw_tasks, shape):
    num_open = 0
    for task in draw_tasks("fill-enclosed", shape):
        for grid, output in task.pairs:
            assert not (grid == task.drawn).any()
            reached = _reached_from_edge(grid)
            np.testing.assert_array_equal(output, np.where((grid == 0) & ~reached, task.drawn, grid))
            num_open += _has_open_frame(grid, output, task.drawn)
    assert shape == (3, 3) or num_open > 20


def _reached_from_edge(grid):
    free = np.pad(grid == 0, 1, constant_values=True)
    reached = np.zeros_like(free)
    reached[0, 0] = True
    while True:
        grown = reached.copy()
        grown[1:] |= reached[:-1]
        grown[:-1] |= reached[1:]
        grown[:, 1:] |= reached[:, :-1]
        grown[:, :-1] |= reached[:, 1:]
        grown &= free
        if (grown == reached).all():
            return reached[1:-1, 1:-1]
        reached = grown


def _has_open_frame(grid, output, color):
    """Does a black cell that was not filled lie between walls in all four directions?"""
    walls = grid > 0
    between = np.ones_like(walls)
    for axis in (0, 1):
        for turn in (lambda x: x, lambda x, axis=axis: np.flip(x, axis)):
            between &= turn(np.maximum.accumulate(turn(walls), axis=axis))
    return (between & ~walls & (output != color)).any()


@pytest.mark.parametrize("shape", [CANVAS, (3, 3)])
def test_pattern_of_the_task_is_stamped_at_every_mark(draw_tasks, shape):
    tasks = draw_tasks("copy-pattern", shape)
    assert len({task.drawn.tobytes() for task in tasks}) > 40
    for task in tasks:
        pattern = task.drawn.reshape(3, 3)
        assert pattern[1, 1]
        for grid, output in task.pairs:
            assert len(np.unique(grid[grid > 0])) == 1
            expected = np.zeros_like(np.pad(grid, 1))
            for row, column in zip(*np.nonzero(grid), strict=True):
                expected[row : row + 3, column : column + 3][pattern] = grid[row, column]
            np.testing.assert_array_equal(output, expected[1:-1, 1:-1])


@pytest.mark.parametrize("shape", [CANVAS, (3, 3)])
def test_output_is_what_the_frame_of_the_color_of_the_task_marks(draw_tasks, shape):
    tasks = draw_tasks("crop", shape)
    assert {int(task.drawn) for task in tasks} == set(range(10))
    for task in tasks:
        for grid, output in task.pairs:
            rows, columns = np.nonzero(grid == task.drawn)
            top, bottom, left, right = rows.min(), rows.max() + 1, columns.min(), columns.max() + 1
            np.testing.assert_array_equal(output, grid[top:bottom, left:right])
            assert output.size < grid.size
            assert (output[[0, -1]] == task.drawn).all()
            assert (output[:, [0, -1]] == task.drawn).all()


@pytest.mark.parametrize("shape", [CANVAS, (3, 3), (30, 30)])
def test_output_is_a_row_as_long_as_the_count_of_the_color_of_the_task(draw_tasks, shape):
    counts = set()
    for task in draw_tasks("count", shape):
        for grid, output in task.pairs:
            count = (grid == task.drawn).sum()
            np.testing.assert_array_equal(output, np.full((1, count), task.drawn))
            counts.add(int(count))
    assert counts == set(range(1, min(9, shape[1]) + 1))
