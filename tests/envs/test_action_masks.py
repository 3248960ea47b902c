"""A mask keeps an action exactly where a step with it can do something, and knows nothing of the target."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc import constants as c
from jaxarc.datasets import TaskSet
from jaxarc.envs import BboxAction, PointAction
from jaxarc.envs.action_masks import FlatActionCodec, factored_action_mask, flat_action_mask, legal_operation_mask
from jaxarc.tasks import RawTask
from jaxarc.testing import create_test_config

CANVAS = (3, 4)
KEY = jax.random.key(1)
GRID = np.array([[1, 2, 3], [4, 5, 6]])  # 2x3 active cells on a 3x4 canvas; all cells differ
TASKS = TaskSet("masks", (RawTask("masks/one", ((GRID, GRID[::-1]),) * 2, ((GRID, GRID[::-1]),)),))
SOME = (c.FILL + 7, c.FLOOD_FILL + 8, c.MOVE_UP, c.COPY, c.PASTE, c.RESIZE, c.SUBMIT)
ONE_CELL = {
    "point": lambda operation: PointAction(operation, 1, 1),
    "bbox": lambda operation: BboxAction(operation, 1, 1, 1, 1),
}


@functools.cache
def make(selection_format="point", allowed=SOME, **fields):
    config = create_test_config(
        9, selection_format, CANVAS, allowed_operations=allowed, invalid_action_policy="noop", **fields
    )
    env, params = jaxarc.make(TASKS, config)
    return env, params, env.reset(KEY, params)[0]


def true_ids(mask):
    return tuple(np.flatnonzero(mask).tolist())


def test_paste_is_left_out_until_something_is_copied():
    env, params, state = make()
    assert true_ids(legal_operation_mask(state, params.config)) == tuple(sorted(set(SOME) - {c.PASTE}))
    state = env.step(state, PointAction(c.COPY, 0, 0), params)[0]
    assert true_ids(legal_operation_mask(state, params.config)) == SOME


@pytest.mark.parametrize(
    ("mode", "switching", "switches"),
    [("train", True, (35, 36, 40)), ("train", False, ()), ("test", True, (37, 38, 41)), ("test", False, ())],
)
def test_operations_on_pairs_are_those_of_the_mode(mode, switching, switches):
    _, params, state = make(allowed=None, mode=mode, allow_demo_switching=switching, allow_test_switching=switching)
    grid_operations = set(range(c.NUM_GRID_OPERATIONS)) - {c.PASTE}
    expected = sorted(grid_operations | {c.RESET_PAIR} | set(switches))
    assert true_ids(legal_operation_mask(state, params.config)) == tuple(expected)


def test_something_is_always_allowed():
    _, params, state = make(allowed=(c.PASTE,))
    assert true_ids(legal_operation_mask(state, params.config)) == (c.PASTE,)
    assert flat_action_mask(state, params.config).any()
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    assert [true_ids(mask) for mask in legal_operation_mask(batch, params.config)] == [(c.PASTE,)] * 2


@pytest.mark.parametrize("selection_format", ["point", "bbox"])
@pytest.mark.parametrize("copied", [False, True])
def test_flat_mask_is_true_exactly_where_an_action_can_apply(selection_format, copied):
    env, params, state = make(selection_format)
    if copied:
        kept = state.canvas.selection  # an operation that applies leaves its selection behind, so start without one
        state = env.step(state, ONE_CELL[selection_format](c.COPY), params)[0]
        state = eqx.tree_at(lambda state: state.canvas.selection, state, kept)
    numbers = FlatActionCodec.of(params.config)
    actions = numbers.to_structured(jnp.arange(numbers.num_actions))
    after = jax.vmap(env.step, (None, 0, None))(state, actions, params)[0]
    selects = (after.canvas.selection != state.canvas.selection[None]).any(axis=-1)
    edits = (after.canvas.grid != state.canvas.grid[None]).any(axis=-1)
    np.testing.assert_array_equal(flat_action_mask(state, params.config), selects | edits | after.done)


@pytest.mark.parametrize(
    ("selection_format", "allowed", "is_bounded"),
    [
        ("point", (c.FILL + 7, c.FLOOD_FILL + 8, c.COPY, c.PASTE, c.COPY_INPUT, c.SUBMIT), True),
        (
            "bbox",
            (c.FILL + 7, c.FLOOD_FILL + 8, c.COPY, c.PASTE, c.MOVE_UP, c.CLEAR, c.ROTATE_CLOCKWISE, c.SUBMIT),
            True,
        ),
        ("point", (c.FILL + 7, c.MOVE_UP), False),
        ("point", (c.CLEAR, c.SUBMIT), False),
        ("bbox", (c.FILL + 7, c.RESIZE), False),
    ],
)
def test_what_a_factored_mask_leaves_out_is_of_no_use(selection_format, allowed, is_bounded):
    env, params, state = make(selection_format, allowed)
    mask = np.array(factored_action_mask(state, params.config))
    sides = CANVAS if selection_format == "point" else (*CANVAS, *CANVAS)
    kept = np.split(mask, np.cumsum((len(allowed), *sides))[:-1])
    assert [part.sum() for part in kept[1:]] == list(GRID.shape if is_bounded else CANVAS) * (len(sides) // 2)
    np.testing.assert_array_equal(kept[0], [operation != c.PASTE for operation in sorted(allowed)])

    numbers = np.indices((len(allowed), *sides)).reshape(len(sides) + 1, -1)
    kind = PointAction if selection_format == "point" else BboxAction
    actions = kind(np.array(sorted(allowed))[numbers[0]], *numbers[1:])
    after = jax.vmap(env.step, (None, 0, None))(state, actions, params)[0]
    does = np.concatenate([after.canvas.grid, after.canvas.clipboard, after.canvas.sizes, after.done[:, None]], axis=1)
    nothing = np.concatenate([state.canvas.grid, state.canvas.clipboard, state.canvas.sizes, state.done[None]])
    is_kept = np.all([part[number] for part, number in zip(kept, numbers, strict=True)], axis=0)
    useful = {row.tobytes() for row in does[is_kept]} | {nothing.astype(does.dtype).tobytes()}
    assert all(row.tobytes() in useful for row in does[~is_kept])
    if not is_bounded:
        grid_only = {row.tobytes() for row in does[is_kept & _is_inside(numbers[1:])]}
        assert len(useful) > len(grid_only | {nothing.astype(does.dtype).tobytes()}), "the padding is of use"


def _is_inside(coordinates):
    limits = np.array([GRID.shape[place % 2] for place in range(len(coordinates))])
    return (coordinates < limits[:, None]).all(axis=0)


def test_masks_of_selections_that_are_masks_are_refused():
    _, params, state = make("mask")
    with pytest.raises(ValueError, match="selection_format"):
        factored_action_mask(state, params.config)


def test_masks_of_a_batch_are_those_of_its_states():
    env, params, state = make("bbox")
    other = env.step(state, BboxAction(c.COPY, 0, 0, 0, 0), params)[0]
    other = env.step(other, BboxAction(c.RESIZE, 2, 3, 2, 3), params)[0]
    batch = jax.tree.map(lambda *x: jnp.stack(x), state, other)
    for compute in (legal_operation_mask, flat_action_mask, factored_action_mask):
        one_by_one = jnp.stack([compute(one, params.config) for one in (state, other)])
        assert (one_by_one[0] != one_by_one[1]).any()
        np.testing.assert_array_equal(compute(batch, params.config), one_by_one)
        mapped = jax.vmap(compute, (0, None))(batch, params.config)
        np.testing.assert_array_equal(mapped, one_by_one)


@pytest.mark.parametrize("mode", ["train", "test"])
def test_masks_do_not_depend_on_the_target(mode):
    _, params, _ = make("bbox", mode=mode)
    env, state = make("bbox", mode=mode)[0], make("bbox", mode=mode)[2]
    tasks = dataclasses.replace(params.tasks, outputs=jnp.flip(params.tasks.outputs, axis=1) * 0 + 1)
    changed, _ = env.reset(KEY, dataclasses.replace(params, tasks=tasks))
    assert (changed.canvas.target != state.canvas.target).any()
    for compute in (legal_operation_mask, flat_action_mask):
        np.testing.assert_array_equal(compute(changed, params.config), compute(state, params.config))
