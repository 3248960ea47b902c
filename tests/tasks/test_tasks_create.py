"""Padding grids into a task, and the mock task."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from jaxarc.config import JaxArcConfig
from jaxarc.datasets import load_tasks
from jaxarc.envs import arc_reset
from jaxarc.tasks import RawTask, create_mock_task, create_task, register_task
from jaxarc.tasks.task import pad_task

ONE = [[1, 2], [3, 4]]


def one_pair(dtype: type = np.int8):
    grid = np.array(ONE, dtype)
    return [(grid, grid)]


grids = npst.arrays(np.int8, npst.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 9))
pair_lists = st.lists(st.tuples(grids, grids), min_size=1, max_size=4)


@settings(max_examples=50)
@given(train=pair_lists, test=pair_lists, extra=st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_cropping_a_padded_task_gives_the_grids_back(train, test, extra):
    sides = [side.shape for pair in train + test for side in pair]
    shape = tuple(max(column) + more for column, more in zip(zip(*sides, strict=True), extra, strict=True))
    task = create_task(train, test, shape)
    assert task.grid_shape == shape
    assert (int(task.num_train_pairs), int(task.num_test_pairs)) == (len(train), len(test))
    splits = [
        (train, task.input_grids_examples, task.input_masks_examples, 0),
        (train, task.output_grids_examples, task.output_masks_examples, 1),
        (test, task.test_input_grids, task.test_input_masks, 0),
        (test, task.true_test_output_grids, task.true_test_output_masks, 1),
    ]
    for pairs, padded, masks, side in splits:
        assert padded.dtype == jnp.int8
        assert padded.shape == (len(pairs), *shape)
        for pair, canvas, mask in zip(pairs, np.asarray(padded), np.asarray(masks), strict=True):
            height, width = pair[side].shape
            np.testing.assert_array_equal(canvas[:height, :width], pair[side])
            assert mask[:height, :width].all()
            assert mask.sum() == height * width
            assert (canvas[~mask] == -1).all()


def test_device_arrays_and_nested_lists_are_grids_too():
    task = create_task([(jnp.array(ONE, jnp.int32), ONE)], [(tuple(map(tuple, ONE)), ONE)])
    assert task.test_input_grids.tolist() == task.output_grids_examples.tolist() == [ONE]


def test_default_canvas_takes_the_largest_rows_and_the_largest_columns():
    tall, wide = np.zeros((7, 2), np.int8), np.zeros((3, 5), np.int8)
    assert create_task([(tall, tall)], [(tall, wide)]).grid_shape == (7, 5)


def test_too_small_a_canvas_names_task_pair_size_limit_and_fix():
    small, large = np.zeros((2, 2), np.int8), np.zeros((4, 6), np.int8)
    index = register_task("create-too-large")
    with pytest.raises(ValueError, match=r"'create-too-large'.*1.*4x6.*5x5") as caught:
        create_task([(small, small), (small, large)], [(small, small)], (5, 5), task_index=index)
    assert "at least 4x6" in str(caught.value)
    assert "select(max_side=5)" in str(caught.value)


def test_raw_task_does_not_change_with_the_array_it_came_from():
    grid = np.array(ONE, np.int8)
    task = RawTask("raw", ((grid, grid),), ((grid, grid),))
    grid[0, 0] = 9
    assert task.train[0][0].tolist() == ONE
    with pytest.raises(ValueError, match="read-only"):
        task.train[0][0][0, 0] = 9


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2), (3, 3), (5, 30), (30, 30)])
def test_mock_task_has_three_unsolved_demonstrations_and_one_unsolved_test(shape):
    task = create_mock_task(*shape)
    assert task.grid_shape == shape
    assert (int(task.num_train_pairs), int(task.num_test_pairs)) == (3, 1)
    sources = np.concatenate([task.input_grids_examples, task.test_input_grids])
    targets = np.concatenate([task.output_grids_examples, task.true_test_output_grids])
    for source, target in zip(sources, targets, strict=True):
        assert (source != target).any()
        assert ((source == -1) == (target == -1)).all()
        assert (target == np.array([0, 2, 3, 1, -1])[source]).all()
        assert (source >= 0).any(axis=1).sum() <= 10


def test_tasks_padded_to_equal_slots_share_one_program_and_stack():
    tasks = load_tasks("arc-agi-1/training:max_side=8")
    shapes = {(len(task.train), len(task.test)) for task in tasks}
    assert len(shapes) > 3
    config = JaxArcConfig().with_fields(max_grid_height=8, max_grid_width=8, selection_format="bbox")
    padded = [tasks.get_task_by_id(task.task_id, (8, 8), tasks.max_pairs) for task in tasks]
    traced = 0

    @jax.jit
    def reset(key, task):
        nonlocal traced
        traced += 1
        return arc_reset(key, config, task)[0].target_grid

    first_of_shape = {(len(raw.train), len(raw.test)): task for raw, task in zip(tasks, padded, strict=True)}
    for task in first_of_shape.values():
        reset(jax.random.key(0), task)
    assert traced == 1
    # A padded task plays as the task itself does: the same pair is drawn, whatever slots are free.
    raw = tasks[0]
    assert (reset(jax.random.key(7), padded[0]) == reset(jax.random.key(7), pad_task(raw, (8, 8)))).all()
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *padded)
    states = jax.vmap(lambda key, task: arc_reset(key, config, task)[0], (0, 0))(
        jax.random.split(jax.random.key(0), len(tasks)), stacked
    )
    assert states.working_grid.shape == (len(tasks), 8, 8)
    answers = {task.task_id: [grid.tolist() for _, grid in task.train] for task in tasks}
    for index, task in enumerate(tasks):
        target = np.asarray(states.target_grid[index])
        height, width = (int((target >= 0).any(axis=axis).sum()) for axis in (1, 0))
        assert target[:height, :width].tolist() in answers[task.task_id]
