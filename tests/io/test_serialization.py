"""States on disk: restored bit for bit, a tenth of the full dump, and no wrong file ever read as a state."""

import functools
import json
import subprocess
import sys

import equinox as eqx
import jax
import numpy as np
import pytest

from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.action_space import action_space
from jaxarc.envs.functional import arc_reset, arc_step
from jaxarc.files import CHECKSUM, ChecksumError, add_checksum, verify_checksum
from jaxarc.io.serialization import StateFileError, load_state_efficiently, save_state_efficiently
from jaxarc.tasks import create_task, register_task
from jaxarc.tasks.task import create_mock_task, mock_raw_task
from jaxarc.types import JaxArcTask

PARSER = TaskSet("mock", (mock_raw_task(30, 30),), canvas=(30, 30))
GRIDS = [f.name for f in JaxArcTask.__dataclass_fields__.values() if "grids" in f.name]


def _config(selection_format, **fields):
    return JaxArcConfig().with_fields(
        selection_format=selection_format, allowed_operations=tuple(range(34)), max_episode_steps=100, **fields
    )


def _padded_to_slots(task, train, tests):
    """The task with the guide's 10 + 3 slots, as loaders of the guide pad it."""

    def pad(name):
        array = getattr(task, name)
        slots = tests if name.startswith(("test", "true")) else train
        return np.pad(array, ((0, slots - array.shape[0]), (0, 0), (0, 0)), constant_values=-1)

    return JaxArcTask(
        **{name: pad(name) for name in GRIDS},
        num_train_pairs=task.num_train_pairs,
        num_test_pairs=task.num_test_pairs,
        task_index=task.task_index,
    )


def _shown(state):
    """All that a state shows; what it stores is smaller already: bytes for the history, a box for the selection."""
    names = ["working_grid", "working_grid_mask", "target_grid", "target_grid_mask", "selected", "clipboard"]
    return [getattr(state, name) for name in [*names, "action_history", "step_count", "similarity_score", "key"]]


def _played(config, steps=20):
    """A state after some random actions on the mock task."""
    task = _padded_to_slots(create_mock_task(30, 30), 10, 3)
    state, _ = arc_reset(jax.random.key(1), config, task)
    space = action_space(config)
    for key in jax.random.split(jax.random.key(2), steps):
        state, *_ = arc_step(state, space.sample(key), config)
    return state


def _assert_same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("selection_format", ["point", "bbox", "mask"])
def test_a_saved_state_is_restored_exactly_and_is_ten_times_smaller(selection_format, tmp_path):
    config = _config(selection_format)
    state = _played(config, steps=100)
    path = save_state_efficiently(state, tmp_path / "state.bin")
    dummy, _ = arc_reset(jax.random.key(9), config, create_mock_task(30, 30))
    loaded = load_state_efficiently(path, PARSER, dummy)
    _assert_same(loaded, state)
    full = tmp_path / "full.eqx"
    eqx.tree_serialise_leaves(full, (_shown(state), state.task_data))
    assert path.stat().st_size <= full.stat().st_size / 10


def test_another_process_finds_the_task_by_its_id(tmp_path):
    config = _config("point")
    register_task("something registered earlier")  # so that indices differ between the processes
    path = save_state_efficiently(_played(config), tmp_path / "state")
    code = f"""
import jax
from jaxarc.config import JaxArcConfig
from jaxarc.envs.functional import arc_reset
from jaxarc.io.serialization import extract_task_id_from_index, load_state_efficiently
from jaxarc.datasets import TaskSet
from jaxarc.tasks import register_task
from jaxarc.tasks.task import mock_raw_task
register_task("other one"); register_task("other two"); register_task("other three")
config = JaxArcConfig().with_fields(selection_format="point", allowed_operations=tuple(range(34)))
parser = TaskSet("mock", (mock_raw_task(30, 30),), canvas=(30, 30))
dummy, _ = arc_reset(jax.random.key(0), config)
state = load_state_efficiently({str(path)!r}, parser, dummy)
assert int(state.task_index) == int(state.task_data.task_index)
print(extract_task_id_from_index(state.task_index), int(state.step_count))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["jaxarc/mock", "20"], done.stderr


@functools.cache
def _dummy():
    return arc_reset(jax.random.key(0), _config("point"))[0]


def test_a_state_of_another_config_is_refused(tmp_path):
    path = save_state_efficiently(_played(_config("point")), tmp_path / "state")
    other, _ = arc_reset(jax.random.key(0), _config("bbox"))
    with pytest.raises(StateFileError, match="dummy_state"):
        load_state_efficiently(path, PARSER, other)


def test_a_task_whose_grids_changed_is_refused(tmp_path):
    path = save_state_efficiently(_played(_config("point")), tmp_path / "state")
    changed = TaskSet("mock", (mock_raw_task(7, 7),), canvas=(30, 30))
    with pytest.raises(StateFileError, match="jaxarc/mock"):
        load_state_efficiently(path, changed, _dummy())


def test_a_parser_without_the_task_says_so(tmp_path):
    path = save_state_efficiently(_played(_config("point")), tmp_path / "state")
    other = TaskSet("other", (type(PARSER.tasks[0])("x", PARSER.tasks[0].train, PARSER.tasks[0].test),))
    with pytest.raises(KeyError, match="jaxarc/mock"):
        load_state_efficiently(path, other, _dummy())


def test_a_task_without_an_id_cannot_be_saved(tmp_path):
    grid = np.array([[1, 2]])
    task = create_task([(grid, grid[:, ::-1])], [(grid, grid)], grid_shape=(30, 30))
    state, _ = arc_reset(jax.random.key(0), _config("point"), task)
    with pytest.raises(ValueError, match="register_task"):
        save_state_efficiently(state, tmp_path / "state")
    assert not list(tmp_path.iterdir())


FIELDS = {"name": "é", "numbers": [1, 2.5, None], "inner": {"b": 1, "a": [True]}}


def test_fields_with_a_checksum_come_back_through_json_in_any_order():
    content = json.loads(json.dumps(add_checksum(FIELDS)))
    assert verify_checksum(content) == FIELDS
    assert verify_checksum(dict(reversed(content.items()))) == FIELDS


@pytest.mark.parametrize(
    "change", [{"name": "e"}, {"numbers": [1, 2.5]}, {"more": 1}, {CHECKSUM: "0" * 16}, {CHECKSUM: None}]
)
def test_a_change_is_noticed(change):
    with pytest.raises(ChecksumError, match="'sha256'"):
        verify_checksum({**add_checksum(FIELDS), **change})
