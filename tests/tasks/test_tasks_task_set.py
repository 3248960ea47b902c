"""Looking tasks up, choosing some, and packing them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.datasets import TaskSet
from jaxarc.datasets.selectors import SubsetError
from jaxarc.tasks import RawTask, buffer_of_task, task_id_of


def square(task_id, side, train=2, test=1, color=1):
    def grid(pair):
        return np.full((side, side), (color + pair) % 10, np.int8)

    return RawTask(
        task_id,
        tuple((grid(p), grid(p + 1)) for p in range(train)),
        tuple((grid(p + 5), grid(p + 6)) for p in range(test)),
    )


@pytest.fixture
def tasks():
    return TaskSet("squares", (square("two", 2), square("five", 5, train=3, test=2), square("three", 3, train=1)))


def test_tasks_are_found_by_index_id_and_slice(tasks):
    assert tasks[0] is tasks["two"] is next(iter(tasks))
    assert tasks[-1].task_id == "three"
    assert tasks[np.int64(1)].task_id == "five"
    assert tasks[1:].task_ids == ("five", "three")
    assert tasks.on_canvas((6, 8))[:2].grid_shape == (6, 8)


def test_a_sample_has_different_tasks_and_depends_on_the_key_alone(tasks):
    assert sorted(tasks.sample(7, 3).task_ids) == ["five", "three", "two"]
    assert tasks.sample(7, 2).task_ids == tasks.sample(jax.random.key(7), 2).task_ids
    assert {tasks.sample(seed)[0].task_id for seed in range(20)} == set(tasks.task_ids)


def test_a_split_has_every_task_once_in_its_order_and_depends_on_the_key_alone(mixed):
    splits = {seed: mixed.split(3, seed) for seed in range(8)}
    for train, held_out in splits.values():
        assert len(train) == 3
        assert sorted(train.task_ids + held_out.task_ids) == sorted(mixed.task_ids)
        assert train.task_ids == tuple(name for name in mixed.task_ids if name in train)
    assert len({held_out.task_ids for _, held_out in splits.values()}) > 1
    for same in (mixed.split(0.75, 5), mixed.split(3, jax.random.key(5))):
        assert [part.task_ids for part in same] == [part.task_ids for part in splits[5]]


def test_the_name_of_a_part_says_how_many_tasks_of_the_whole_set_it_has(mixed):
    part = mixed.select(first=3)
    assert part.name == "mixed (3 of 4 tasks)"
    assert part[:2].name == part.split(2)[0].name == part.fit((4, 4), "skip").name == "mixed (2 of 4 tasks)"


def test_the_sum_of_two_sets_has_the_tasks_of_both(tasks, mixed):
    both = tasks.on_canvas((9, 9)) + mixed.on_canvas((9, 9))
    assert both.task_ids == tasks.task_ids + mixed.task_ids
    assert both.grid_shape == (9, 9)
    assert (tasks.on_canvas((9, 9)) + mixed).grid_shape == (8, 8)
    with pytest.raises(TypeError):
        tasks + tasks[0]


def test_task_by_id_is_padded_to_the_canvas_of_the_set(tasks):
    task = tasks.get_task_by_id("two")
    assert task.grid_shape == tasks.max_grid_shape == (5, 5)
    assert task_id_of(int(task.task_index)) == "two"
    assert task.input_grids_examples[0, :2, :2].tolist() == [[1, 1], [1, 1]]
    assert tasks.get_task_by_id("two", (7, 6)).grid_shape == (7, 6)


def test_chosen_canvas_serves_tasks_buffer_and_selections(tasks):
    wide = tasks.on_canvas((6, 8))
    assert wide.get_task_by_id("two").grid_shape == (6, 8)
    assert wide.buffer().grid_shape == (6, 8)
    assert wide.select(max_side=2).buffer().grid_shape == (6, 8)
    assert tasks.select(max_side=2).buffer().grid_shape == (2, 2)


def test_select_by_size_keeps_tasks_whose_grids_all_fit(tasks):
    assert tasks.select(max_side=3).task_ids == ("two", "three")
    mixed = RawTask("mixed", (([[1]], [[1] * 4]),), (([[1]], [[1]]),))
    assert TaskSet("more", (*tasks.tasks, mixed)).select(max_side=3).task_ids == ("two", "three")


@pytest.fixture
def mixed():
    """Four tasks: sides 2, 4, 6 and 8; the second grows, and the last two have a concept."""
    grown = RawTask("grown", (([[1]], [[1] * 4]),), (([[1]], [[1]]),))
    six, eight = (
        dataclasses.replace(square(f"s{side}", side), concept=name) for side, name in ((6, "Above-Below"), (8, "Copy"))
    )
    return TaskSet("mixed", (square("s2", 2), grown, six, eight))


def test_select_by_shape_size_concept_and_first(mixed):
    assert mixed.select(same_shape=True).task_ids == ("s2", "s6", "s8")
    assert mixed.select(min_side=4).task_ids == ("grown", "s6", "s8")
    assert mixed.select(min_side=4, max_side=6).task_ids == ("grown", "s6")
    for spelling in ("Above-Below", "above below", "ABOVEBELOW", "above_below"):
        assert mixed.select(concept=spelling).task_ids == ("s6",)
    assert mixed.select(without=["s2", "s8"]).task_ids == ("grown", "s6")
    assert mixed.select(first=3).task_ids == ("s2", "grown", "s6")
    assert mixed.select(first=99).task_ids == mixed.task_ids
    assert mixed.select(same_shape=True, first=2, min_side=4).task_ids == ("s6", "s8")


def test_select_by_demonstrations_colors_and_outputs_that_fit(tasks, mixed):
    assert tasks.select(min_demonstrations=2).task_ids == ("two", "five")
    assert tasks.select(max_demonstrations=2).task_ids == ("two", "three")
    assert mixed.select(max_colors=1).task_ids == ("grown",)
    assert mixed.select(min_colors=5).task_ids == ("s2", "s6", "s8")  # 1 2 3 of demonstrations, 6 7 of the test
    assert mixed.select(output_fits_input=True).task_ids == ("s2", "s6", "s8")
    shrunk = RawTask("shrunk", (([[1, 2]], [[1]]),), (([[1, 2]], [[2]]),))
    wider = RawTask("wider", (([[1], [2]], [[1, 2]]),), (([[1, 2]], [[2]]),))
    assert TaskSet("two", (shrunk, wider)).select(output_fits_input=True).task_ids == ("shrunk",)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"min_colors": 6}, "needs min_colors=5 or less"),
        ({"max_demonstrations": 1, "ids": ["s2"]}, "needs max_demonstrations=2"),
        ({"output_fits_input": True, "ids": ["grown"]}, "higher or wider"),
        ({"concept": "copi"}, r"select\(concept='copi'\) .*did you mean 'Copy'\?"),
        ({"concept": "zzz"}, "its concepts: Above-Below, Copy"),
        ({"concept": "copy", "ids": ["s2"]}, "its tasks have no concepts"),
        ({"same_shape": True, "ids": ["grown"]}, "output of another shape"),
        ({"min_side": 9}, "needs min_side=8 or less"),
        ({"max_side": 1}, "needs max_side=2"),
        ({"first": 0}, "ask for 1 or more"),
        ({"ids": ["s2"], "without": ["s2"]}, "it names all 1 tasks"),
    ],
)
def test_condition_that_leaves_nothing_says_what_would(mixed, conditions, message):
    with pytest.raises(SubsetError, match=message):
        mixed.select(**conditions)


def test_tasks_that_do_not_fit_are_refused_or_skipped(mixed):
    with pytest.raises(ValueError, match=r"'s6'.*0.*6x6.*4x4"):
        mixed.fit((4, 4))
    skipped = mixed.fit((4, 4), too_large="skip")
    assert skipped.task_ids == ("s2", "grown")
    assert skipped.buffer().grid_shape == (4, 4)
    assert mixed.fit((8, 9)).grid_shape == (8, 9)


def test_buffer_lists_demonstrations_then_tests_task_by_task(tasks):
    buffer = tasks.buffer()
    assert buffer.num_tasks == 3
    assert buffer.grid_shape == (5, 5)
    assert buffer.inputs.dtype == buffer.outputs.dtype == jnp.int8
    assert buffer.num_train.tolist() == [2, 3, 1]
    assert buffer.num_test.tolist() == [1, 2, 1]
    assert buffer.first_pair.tolist() == [0, 3, 8]
    assert buffer.inputs[:, 0].tolist() == [1, 2, 6, 1, 2, 3, 6, 7, 1, 6]
    assert buffer.outputs[:, 0].tolist() == [2, 3, 7, 2, 3, 4, 7, 8, 2, 7]
    assert (buffer.inputs >= 0).sum(axis=1).tolist() == [4, 4, 4, 25, 25, 25, 25, 25, 9, 9]
    assert [task_id_of(index) for index in buffer.registry_index.tolist()] == list(tasks.task_ids)


def test_buffer_of_one_task_equals_the_packed_one(tasks):
    for task_id in tasks.task_ids:
        packed = tasks.select(ids=[task_id]).buffer((5, 5))
        single = jax.jit(buffer_of_task)(tasks.get_task_by_id(task_id))
        assert single.grid_shape == packed.grid_shape
        for left, right in zip(jax.tree.leaves(single), jax.tree.leaves(packed), strict=True):
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype


def named_set(name, count):
    pair = (np.ones((1, 1), np.int8), np.ones((1, 1), np.int8))
    return TaskSet(name, tuple(RawTask(f"{name}{index}", (pair,), (pair,)) for index in range(count)))


def test_a_part_of_a_sum_is_named_with_the_counts_of_the_sum():
    first, second = (named_set(name, 4) for name in "ab")
    both = first[:3] + second[:2]
    assert both[:4].name == "(a (3 of 4 tasks) + b (2 of 4 tasks)) (4 of 5 tasks)"
    assert both[:4][:2].name == "(a (3 of 4 tasks) + b (2 of 4 tasks)) (2 of 5 tasks)"
    assert (first + second)[:5][:4].name == "(a + b) (4 of 8 tasks)"
    assert first[:3][:2].name == "a (2 of 4 tasks)"


def test_a_split_takes_the_numbers_of_numpy():
    tasks = named_set("a", 4)
    for size, key in ((np.int64(2), 0), (np.float32(0.5), np.int64(0)), (0.5, 0)):
        assert tasks.split(size, key)[0].task_ids == tasks.split(2)[0].task_ids


def test_by_size_puts_each_task_on_the_smallest_canvas_that_holds_it(mixed):
    largest = {task.task_id: max(task.grid_shape) for task in mixed}
    groups = mixed.by_size([4, 30])
    assert [group.grid_shape for group in groups] == [(4, 4), (30, 30)]
    assert [set(group.task_ids) for group in groups] == [
        {name for name, side in largest.items() if side <= 4},
        {name for name, side in largest.items() if side > 4},
    ]
    every = [group.grid_shape[0] for group in mixed.by_size()]
    assert every == sorted(set(largest.values()))  # fewer than five sizes: each has its own canvas
    assert len(mixed.by_size([1, 2, 3, 29, 30])) < 5  # a canvas without a task is left out
