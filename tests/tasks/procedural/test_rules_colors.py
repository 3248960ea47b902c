"""Rules about colors alone, as NumPy says it."""

import numpy as np
import pytest


@pytest.mark.parametrize("shape", [(7, 12), (30, 30)])
def test_color_map_of_the_task_moves_every_color_and_keeps_black(draw_tasks, shape):
    tasks = draw_tasks("color-map", shape)
    for task in tasks:
        assert task.drawn[0] == 0
        assert sorted(task.drawn) == list(range(10))
        assert (task.drawn[1:] != np.arange(1, 10)).all()
        for grid, output in task.pairs:
            np.testing.assert_array_equal(output, task.drawn[grid])
    assert len({task.drawn.tobytes() for task in tasks}) == len(tasks)


def test_random_grids_have_all_colors_and_unrelated_sizes(draw_tasks):
    pairs = [pair for task in draw_tasks("random", (7, 12)) for pair in task.pairs]
    assert {grid.shape for grid, _ in pairs} != {(7, 12)}
    assert any(grid.shape != output.shape for grid, output in pairs)
    for side in (0, 1):
        counts = np.bincount(np.concatenate([pair[side].ravel() for pair in pairs]), minlength=10)
        np.testing.assert_allclose(counts / counts.sum(), 0.1, atol=0.02)
    agreeing = [np.mean(grid == output) for grid, output in pairs if grid.shape == output.shape and grid.size > 6]
    assert np.mean(agreeing) < 0.2
