"""Every legal action has one number, and a step with the number is the step with the action."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_tasks import tasks_of

import jaxarc
from jaxarc.constants import FILL, FLIP_LEFT_RIGHT, RESIZE, SUBMIT
from jaxarc.envs import BboxAction, MaskAction, PointAction
from jaxarc.envs.action_masks import MAX_FLAT_ACTIONS, FlatActionCodec
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset, EpisodeStatistics, FlatActions

H, W = CANVAS = (2, 3)
OPERATIONS = (FILL + 4, FLIP_LEFT_RIGHT, RESIZE, SUBMIT)
ONE = np.array([[1, 2], [3, 4]])
TASKS = tasks_of((ONE, ONE.T))
BOXES = [  # numbered by hand: top, bottom, left, right
    (top, left, bottom, right)
    for top, bottom in [(0, 0), (0, 1), (1, 1)]
    for left, right in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
]


@functools.cache
def make(selection_format="bbox", **fields):
    fields = {"allowed_operations": OPERATIONS, "invalid_action_policy": "noop", **fields}
    env, params = jaxarc.make(TASKS, create_test_config(4, selection_format, CANVAS, **fields))
    return env, FlatActions(env), params


def numbers_of(selection_format):
    return FlatActionCodec(OPERATIONS, selection_format, CANVAS)


def test_points_are_numbered_operation_by_operation_and_row_by_row():
    action = numbers_of("point").to_structured(jnp.arange(24))
    expected = [(operation, row, column) for operation in OPERATIONS for row in range(H) for column in range(W)]
    assert list(zip(action.operation.tolist(), action.row.tolist(), action.col.tolist(), strict=True)) == expected


def test_boxes_are_numbered_operation_by_operation_and_corner_by_corner():
    action = numbers_of("bbox").to_structured(jnp.arange(72))
    fields = (action.operation, action.r1, action.c1, action.r2, action.c2)
    expected = [(operation, *box) for operation in OPERATIONS for box in BOXES]
    assert list(zip(*(field.tolist() for field in fields), strict=True)) == expected
    assert numbers_of("bbox").selections.tolist() == [list(box) for box in BOXES]


@pytest.mark.parametrize("selection_format", ["point", "bbox"])
def test_number_of_the_action_of_a_number_is_that_number(selection_format):
    numbers = FlatActionCodec((FILL, *OPERATIONS), selection_format, CANVAS)
    every = jnp.arange(numbers.num_actions)
    np.testing.assert_array_equal(numbers.to_flat(numbers.to_structured(every)), every)


@pytest.mark.parametrize(
    "action",
    [
        BboxAction(5, 0, 0, 1, 1),  # not allowed
        BboxAction(-1, 0, 0, 1, 1),
        BboxAction(42, 0, 0, 1, 1),
        BboxAction(SUBMIT, 0, 0, 2, 1),
        BboxAction(SUBMIT, 0, 0, 1, -1),
    ],
    ids=str,
)
def test_action_that_is_not_legal_has_no_number(action):
    _, flat, params = make()
    assert flat.to_flat(action, params) == -1


def test_step_with_a_number_is_the_step_with_its_action():
    plain, flat, params = make()
    state, observation = flat.reset(jax.random.key(3), params)
    chex.assert_trees_all_equal((state, observation), plain.reset(jax.random.key(3), params))
    for number in (0, 17, 23, 71):
        expected = plain.step(state, flat.to_structured(number, params), params)
        for given in (number, np.int64(number), jnp.uint8(number)):
            chex.assert_trees_all_equal(flat.step(state, given, params), expected)
    chex.assert_trees_all_equal(flat.reset_next(state, params), plain.reset_next(state, params))
    chex.assert_trees_all_equal(flat.observe(state, params), plain.observe(state, params))
    chex.assert_trees_all_equal(flat.info(state, params), plain.info(state, params))


@pytest.mark.parametrize("number", [-1, 72, 2**31 - 1])
def test_number_out_of_range_is_an_invalid_action(number):
    _, flat, params = make()
    state, observation = flat.reset(jax.random.key(3), params)
    after, seen, _, _, info = flat.step(state, number, params)
    assert info["invalid_action"]
    assert after.step_count == 1
    np.testing.assert_array_equal(seen, observation)


def test_auto_reset_gives_the_same_inside_and_outside_under_vmap_and_scan():
    plain, flat, params = make()
    keys, actions = (
        jax.random.split(jax.random.key(3), 3),
        jnp.asarray([[0, 71, 30], [60, 5, 70], [71, 72, 1], [12, 0, 71]]),
    )
    structured = flat.to_structured(actions, params)

    @functools.partial(jax.jit, static_argnums=0)
    def play(env, params, actions):
        states, first = jax.vmap(env.reset, (0, None))(keys, params)

        def step(states, action):
            states, *result = jax.vmap(env.step, (0, 0, None))(states, action, params)
            return states, result

        return first, jax.lax.scan(step, states, actions)

    expected = play(EpisodeStatistics(AutoReset(plain)), params, structured)
    assert expected[1][1][2].sum() >= 3  # episodes ended
    for env in (EpisodeStatistics(AutoReset(flat)), EpisodeStatistics(FlatActions(AutoReset(plain)))):
        chex.assert_trees_all_equal(play(env, params, actions), expected)


def test_masks_have_no_numbers():
    _, flat, params = make("mask")
    with pytest.raises(ValueError, match=r"'point'.*'bbox'.*'mask': 2x3.*2\*\*6"):
        flat.action_space(params)
    state, _ = flat.reset(jax.random.key(3), params)
    with pytest.raises(ValueError, match="got 'mask'"):
        flat.step(state, 0, params)
    with pytest.raises(TypeError, match="got a MaskAction"):
        numbers_of("point").to_flat(MaskAction(0, np.zeros(CANVAS, bool)))


def test_too_many_actions_are_refused_with_their_count():
    boxes = create_test_config(selection_format="bbox")
    with pytest.raises(ValueError, match=r"would be 7,784,100 \(36 operations x 216,225 selections"):
        FlatActionCodec.of(boxes)
    points = FlatActionCodec.of(create_test_config(selection_format="point"))
    assert points.num_actions == 36 * 900 < MAX_FLAT_ACTIONS


def test_action_of_another_format_is_refused():
    with pytest.raises(TypeError, match="format 'bbox', got a PointAction"):
        numbers_of("bbox").to_flat(PointAction(SUBMIT, 0, 0))
