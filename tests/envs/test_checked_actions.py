"""From an action to a command under every policy, at every edge, against the rules in plain Python."""

import itertools

import jax
import numpy as np
import pytest

from jaxarc.constants import COPY, FILL, NUM_OPERATIONS, SUBMIT
from jaxarc.envs import BboxAction, MaskAction, PointAction
from jaxarc.envs.structured_actions import CHANGES_PAIR, ERASES, FLOODS, SHIFTS, TURNS, check_action, refuse_invalid
from jaxarc.testing import create_test_config
from jaxarc.utils.error_handling import JAXErrorHandler

H, W = CANVAS = (4, 6)
LEGAL = (FILL + 1, COPY, SUBMIT, 39)
OPERATIONS = (-(2**31), -2, -1, 0, FILL + 1, 2, COPY, SUBMIT, 35, 39, 41, 42, 43, 2**31 - 1)
ROWS, COLUMNS = (-1, 0, 1, H - 1, H), (-7, 0, W - 2, W - 1, W)
NO_OPERATION = -1


def config(selection_format, policy):
    return create_test_config(
        selection_format=selection_format, grid_shape=CANVAS, invalid_action_policy=policy, allowed_operations=LEGAL
    )


def checked(actions, policy, selection_format):
    rules = config(selection_format, policy)
    return jax.jit(jax.vmap(lambda action: check_action(action, rules)))(actions)


def clipped(value, size):
    return min(max(value, 0), size - 1)


def is_inside(row, column):
    return 0 <= row < H and 0 <= column < W


@pytest.mark.parametrize("policy", ["noop", "clip"])
def test_points(policy):
    cases = list(itertools.product(OPERATIONS, ROWS, COLUMNS))
    found, invalid = checked(PointAction(*np.array(cases).T), policy, "point")
    for i, (operation, row, column) in enumerate(cases):
        valid = operation in LEGAL and (policy == "clip" or is_inside(row, column))
        corner = [clipped(row, H), clipped(column, W)]
        assert int(found.operation[i]) == (operation if valid else NO_OPERATION), cases[i]
        assert found.selection[i].tolist() == corner * 2, cases[i]
        assert bool(invalid[i]) != valid, cases[i]


@pytest.mark.parametrize("policy", ["noop", "clip"])
def test_boxes(policy):
    cases = [(COPY, *corners) for corners in itertools.product(ROWS, COLUMNS, ROWS, COLUMNS)]
    cases += [(operation, 3, 1, 0, 5) for operation in OPERATIONS]
    found, invalid = jax.device_get(checked(BboxAction(*np.array(cases).T), policy, "bbox"))
    for i, (operation, r1, c1, r2, c2) in enumerate(cases):
        valid = operation in LEGAL and (policy == "clip" or (is_inside(r1, c1) and is_inside(r2, c2)))
        rows, columns = (sorted((clipped(a, size), clipped(b, size))) for a, b, size in ((r1, r2, H), (c1, c2, W)))
        assert found.operation[i] == (operation if valid else NO_OPERATION), cases[i]
        assert found.selection[i].tolist() == [rows[0], columns[0], rows[1], columns[1]], cases[i]
        assert invalid[i] != valid, cases[i]


@pytest.mark.parametrize("policy", ["noop", "clip"])
def test_masks(policy):
    masks = np.random.default_rng(0).random((len(OPERATIONS), H, W)) < 0.5
    found, invalid = checked(MaskAction(np.array(OPERATIONS), masks), policy, "mask")
    for i, operation in enumerate(OPERATIONS):
        valid = operation in LEGAL
        assert int(found.operation[i]) == (operation if valid else NO_OPERATION), operation
        assert bool(invalid[i]) != valid, operation
    np.testing.assert_array_equal(found.selection, masks.reshape(len(OPERATIONS), -1))


@pytest.mark.parametrize("operations", [FLOODS, SHIFTS, TURNS, CHANGES_PAIR, ERASES])
def test_a_set_of_operations_holds_the_same_ids_known_and_traced(operations):
    ids = np.arange(-1, NUM_OPERATIONS + 1)
    known = [operation in operations for operation in ids.tolist()]
    assert 0 < sum(known) < NUM_OPERATIONS
    np.testing.assert_array_equal(known[1:-1], operations.mask)
    np.testing.assert_array_equal(known, jax.jit(operations.has)(ids))


@pytest.mark.parametrize(("fields", "legal"), [({"mode": "test", "allow_test_switching": True}, 41), ({}, None)])
def test_the_last_operation_is_legal_where_pairs_are_switched(fields, legal):
    rules = create_test_config(grid_shape=CANVAS, invalid_action_policy="noop", **fields)
    found = [check_action(PointAction(operation, 0, 0), rules)[1].item() for operation in (40, 41)]
    assert found == [40 != legal, 41 != legal]


def test_raise_stops_where_raising_is_on_and_ignores_where_it_is_off(monkeypatch):
    rules, wrong = config("point", "raise"), PointAction(COPY, H, 0)
    right, invalid = check_action(PointAction(COPY, 0, 0), rules)
    assert (int(right.operation), bool(invalid)) == (COPY, False)
    with pytest.raises(RuntimeError, match="Invalid point row 4"):
        refuse_invalid(wrong, rules)
    with pytest.raises(RuntimeError, match="Invalid operation ID 42"):
        refuse_invalid(PointAction(42, 0, 0), rules)
    monkeypatch.setattr(JAXErrorHandler, "stops_on_error", staticmethod(lambda: False))
    ignored, invalid = check_action(refuse_invalid(wrong, rules), rules)
    assert (int(ignored.operation), bool(invalid)) == (NO_OPERATION, True)
