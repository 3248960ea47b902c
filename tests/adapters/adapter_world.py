"""Three tiny tasks, one of them solved by submitting at once, as every adapter plays them."""

import jax
import numpy as np

import jaxarc
from jaxarc.constants import SUBMIT
from jaxarc.datasets import TaskSet
from jaxarc.tasks import RawTask
from jaxarc.testing import create_test_config
from jaxarc.wrappers import FlatActions

CANVAS = (3, 4)
FORMATS = ("point", "bbox", "mask", "flat")
OPERATIONS = (1, 3, SUBMIT)  # few, for they compile fast
SHOWN = dict.fromkeys(  # everything that an observation can show
    (
        "reveal_target",
        "include_input",
        "include_clipboard",
        "include_selection",
        "include_demonstrations",
        "include_operations",
        "include_step_count",
        "include_submission_count",
    ),
    True,
)
SUBMIT_PLACE = OPERATIONS.index(SUBMIT)


def _grid(color):
    return np.full((2, 3), color)


TASKS = TaskSet(
    "adapters",
    (
        RawTask("adapters/same", ((_grid(1), _grid(1)),), ((_grid(1), _grid(1)),)),
        RawTask("adapters/other", ((_grid(1), _grid(2)), (_grid(4), _grid(5))), ((_grid(6), _grid(7)),)),
        RawTask("adapters/third", ((_grid(3), _grid(8)),), ((_grid(8), _grid(9)),)),
    ),
)


def world_fields(action_format="point", **fields):
    """Config fields of the world; episodes last at most 4 steps."""
    height, width = CANVAS
    selection_format = "bbox" if action_format == "flat" else action_format
    names = {"max_episode_steps": 4, "selection_format": selection_format, "max_grid_height": height}
    return names | {"max_grid_width": width, "allowed_operations": OPERATIONS, "invalid_action_policy": "noop"} | fields


def make_world(action_format="point", **fields):
    """Environment without auto-reset, and params."""
    env, params = jaxarc.make(TASKS, create_test_config(), **world_fields(action_format, **fields))
    return (FlatActions(env) if action_format == "flat" else env), params


def assert_trees_equal(left, right):
    """Equal structure, shapes, dtypes and bits."""
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)
