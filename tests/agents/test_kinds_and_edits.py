"""The parts of an edit, and the actions that they stand for."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from edit_world import EVERY, FEW, config

from jaxarc import constants as c
from jaxarc.agents.edits import Edit, allowed_colors, from_action, kinds_of, to_action
from jaxarc.envs import BboxAction

HEIGHT, WIDTH = 3, 4
KINDS = kinds_of(config(HEIGHT, WIDTH))


def operations_of(kind):
    return range(kind.operation, kind.operation + (c.NUM_COLORS if kind.colored else 1))


@pytest.mark.parametrize("operations", [EVERY, FEW, (c.SUBMIT,), (3, 14, c.PASTE, c.SUBMIT)])
def test_every_allowed_operation_belongs_to_exactly_one_kind_and_no_kind_has_none(operations):
    kinds = kinds_of(config(HEIGHT, WIDTH, operations))
    owners = [[operation in operations_of(kind) for kind in kinds] for operation in operations]
    assert np.sum(owners, axis=1).tolist() == [1] * len(operations)
    assert np.any(owners, axis=0).all()
    assert [kind.operation for kind in kinds] == sorted(kind.operation for kind in kinds)


def test_a_color_is_allowed_to_a_kind_where_its_own_operation_is():
    rules = config(HEIGHT, WIDTH, (2, 5, c.FLOOD_FILL + 7, c.RESIZE, c.SUBMIT))
    paint, flood, resize, submit = allowed_colors(kinds_of(rules), rules)
    assert (np.flatnonzero(paint).tolist(), np.flatnonzero(flood).tolist()) == ([2, 5], [7])
    assert resize.all()
    assert submit.all()


def every_edit():
    cells = range(HEIGHT * WIDTH)
    rows = itertools.product(range(len(KINDS)), cells, cells, range(c.NUM_COLORS))
    return Edit(*(jnp.asarray(part, jnp.int32) for part in np.array(list(rows)).T))


def needed_parts(edit):
    """The parts of an edit that matter; 0 instead of the others."""
    selects = np.array([kind.selects for kind in KINDS])[edit.kind]
    colored = np.array([kind.colored for kind in KINDS])[edit.kind]
    first = np.where(np.isin(selects, ("box", "cell")), edit.first, 0)
    second = np.where(np.isin(selects, ("box", "size")), edit.second, 0)
    return np.stack([edit.kind, first, second, np.where(colored, edit.color, 0)])


def test_all_that_matters_of_an_edit_survives_the_way_to_an_action_and_back():
    edits = every_edit()
    action = to_action(edits, KINDS, WIDTH)
    back = from_action(action, KINDS, WIDTH)
    np.testing.assert_array_equal(needed_parts(back), needed_parts(edits))
    colors = np.where(np.asarray(edits.kind) < 2, edits.color, 0)
    np.testing.assert_array_equal(action.operation, np.array([k.operation for k in KINDS])[edits.kind] + colors)
    again = to_action(back, KINDS, WIDTH)
    matters = np.asarray(action.operation) != c.SUBMIT
    for part, other in zip(jax.tree.leaves(action), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(np.asarray(part)[matters], np.asarray(other)[matters])


def test_flood_fill_acts_on_one_cell_and_resize_counts_from_the_corner():
    edits = Edit(*(jnp.array(part, jnp.int32) for part in ([1, 15], [6, 6], [11, 9], [4, 4])))
    action = to_action(edits, KINDS, WIDTH)
    assert [part.tolist() for part in (action.operation, action.r1, action.c1, action.r2, action.c2)] == [
        [14, 33],
        [1, 0],
        [2, 0],
        [1, 2],
        [2, 1],
    ]


@pytest.mark.parametrize("corners", [((0, 3), (2, 1)), ((2, 1), (0, 3))])
def test_a_resize_from_any_two_corners_is_the_size_that_both_lie_in(corners):
    (r1, c1), (r2, c2) = corners
    action = BboxAction(*(jnp.array([x], jnp.int32) for x in (c.RESIZE, r1, c1, r2, c2)))
    assert from_action(action, KINDS, WIDTH).second.tolist() == [2 * WIDTH + 3]
