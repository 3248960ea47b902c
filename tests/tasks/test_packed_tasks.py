"""Tasks as arrays are the tasks that were packed: each by itself, as a set, and on the device."""

import tracemalloc

import jax
import numpy as np
import pytest

from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.datasets.installed import Label, install, install_grids, read_installed
from jaxarc.datasets.task_set import digest_of
from jaxarc.registration import make
from jaxarc.tasks import RawTask, pack_tasks
from jaxarc.tasks.packed_tasks import PackedTasks
from jaxarc.tasks.raw_task import pad_grids

MANY = 20_000


def drawn_tasks(count):
    """Tasks of different numbers of pairs, whose grids have different sizes; the last one has a hidden answer."""
    random = np.random.default_rng(0)
    grid = lambda: random.integers(0, 10, random.integers(1, 6, 2)).astype(np.int8)
    pairs = lambda most: tuple((grid(), grid()) for _ in range(random.integers(1, most)))
    tasks = [RawTask(f"task-{i}", pairs(5), pairs(3), f"title {i}", "concept") for i in range(count - 1)]
    return (*tasks, RawTask("hidden", pairs(3), ((grid(), None),)))


@pytest.fixture(scope="module")
def tasks():
    return drawn_tasks(40)


@pytest.fixture
def large(tmp_path, monkeypatch):
    """The name of an installed set of many tasks of one demonstration and a test, all of 3 rows and 4 columns."""
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path))
    labels = [Label(f"{number:05}", f"title {number}", "", 1, 1, 0) for number in range(MANY)]
    cells = np.random.default_rng(0).integers(0, 10, MANY * 4 * 12).astype(np.uint8)
    install_grids("large", labels, np.tile([3, 4], (MANY * 4, 1)), cells)
    return "large"


def described(task):
    return task.task_id, task.title, task.concept, [(name, grid.tolist()) for name, grid in task.named_grids()]


def test_each_task_comes_back(tasks):
    packed = PackedTasks.of(tasks)
    assert list(map(described, packed)) == list(map(described, tasks))
    assert described(packed[-1]) == described(tasks[-1])
    assert list(map(described, packed[3:9][1:])) == list(map(described, tasks[4:9]))
    assert list(map(described, packed[::7])) == list(map(described, tasks[::7]))
    assert (len(packed[9:3]), len(packed[5:])) == (0, 35)
    assert not packed[0].train[0][0].flags.writeable
    with pytest.raises(IndexError):
        packed[len(tasks)]


def test_a_set_of_packed_tasks_is_the_set_of_these_tasks(tasks):
    plain, packed = TaskSet("mine", tasks), TaskSet("mine", PackedTasks.of(tasks))
    for name in (
        "task_ids",
        "titles",
        "max_grid_shape",
        "grid_shape",
        "max_pairs",
        "num_pairs",
        "has_answers",
        "has_pools",
    ):
        assert getattr(packed, name) == getattr(plain, name), name
    assert repr(packed) == repr(plain)
    assert digest_of(packed) == digest_of(plain)
    assert packed.index_of("task-7") == 7
    small = {"max_side": 4}
    changes = [
        lambda tasks: tasks[5:9],
        lambda tasks: tasks.select(first=4),
        lambda tasks: tasks.select(without=["task-3"], first=5),
        lambda tasks: tasks.select(**small),
        lambda tasks: tasks.fit((4, 5), "skip"),
        lambda tasks: tasks.fit((9, 9)),
        lambda tasks: tasks.split(0.3)[0],
        lambda tasks: tasks.by_size()[0],
        lambda tasks: tasks[:5] + tasks[5:8],
    ]
    for change in changes:
        one, other = change(packed), change(plain)
        assert (repr(one), one.grid_shape) == (repr(other), other.grid_shape)
        assert list(map(described, one)) == list(map(described, other))
    for one in (plain, packed):
        with pytest.raises(ValueError, match="does not fit the canvas 3x9") as raised:
            one.fit((3, 9))
        assert repr(next(task.task_id for task in tasks if task.grid_shape[0] > 3)) in str(raised.value)
    with pytest.raises(ValueError, match="two tasks with the id 'task-2'"):
        TaskSet("mine", PackedTasks.of((*tasks, tasks[2])))


@pytest.mark.parametrize("pack", [tuple, PackedTasks.of])
def test_a_buffer_has_every_pair_in_its_row(tasks, pack):
    buffer = pack_tasks(pack(tasks), (6, 5))
    pairs = [pair for task in tasks for pair in task.pairs]
    for side, found in enumerate((buffer.inputs, buffer.outputs)):
        np.testing.assert_array_equal(found.reshape(-1, 6, 5), pad_grids([pair[side] for pair in pairs], (6, 5)))
    assert buffer.num_train.tolist() == [len(task.train) for task in tasks]
    assert buffer.num_test.tolist() == [len(task.test) for task in tasks]
    rows = [int(first) for first in buffer.first_pair]
    assert [pairs[row] is task.train[0] for row, task in zip(rows, tasks, strict=True)] == [True] * len(tasks)


def test_a_large_set_is_loaded_without_an_object_for_each_task(large):
    tracemalloc.start()
    try:
        tasks = load_tasks(large)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(tasks.tasks, PackedTasks)
    # Of each task 4 grids of 12 cells and 2 sides, 16 letters, the ends of 3 texts and 3 counts.
    assert held < 1.2 * MANY * (4 * 14 + 16 + 3 * 8 + 3 * 8)
    assert peak < 1000 * MANY
    assert isinstance(load_tasks(f"{large}:first 15000").tasks, PackedTasks)


def test_a_large_set_is_played(large):
    env, params = make(large)
    assert params.tasks.num_tasks == MANY
    state, _ = env.reset(jax.random.key(0), params, task_index=12_345)
    _, answer = read_installed(large)["12345"].train[0]
    np.testing.assert_array_equal(np.asarray(state.target_grid)[:3, :4], answer)


def test_a_large_set_is_installed_as_it_is(large, tmp_path):
    before = (tmp_path / "tasks" / "large.tasks").read_bytes()
    assert install(load_tasks(large), "again").read_bytes() == before


def test_more_cells_than_are_read_again_are_not_installed(tasks, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxarc.datasets.installed._MOST_BYTES", 30)
    with pytest.raises(ValueError, match=r"up to 30 cells, and 'mine' has [0-9,]+; take fewer tasks"):
        install(TaskSet("mine", tasks), "mine", tmp_path)
    assert not list(tmp_path.iterdir())
