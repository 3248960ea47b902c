"""The rules on the host against the environment's, action by action, and what is said of wrong actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.cases import random_boxes, random_masks, random_pairs, random_points

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.functional import arc_reset, arc_step
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction
from jaxarc.experts.expert import ExpertError, InvalidActionError, NotSolvedError, Pair
from jaxarc.experts.host_canvas import HostCanvas, check_action, check_solution, play_on_host
from jaxarc.tasks import create_task

SHAPE = (6, 5)
EPISODES, STEPS = 64, 40
PAIR = Pair(np.array([[1, 2], [3, 4]], np.int8), np.array([[1, 2], [3, 5]], np.int8))


def without_padding(grid):
    return grid[: (grid[:, 0] >= 0).sum(), : (grid[0] >= 0).sum()]


def random_actions(rng, action_format):
    """Actions of all episodes and steps, and the same as lists of numbers for the host."""
    count = EPISODES * STEPS
    operations = rng.integers(0, c.SUBMIT, count, dtype=np.int32)
    if action_format == "mask":
        masks = random_masks(rng, count, *SHAPE)
        numbers = [np.argwhere(mask).ravel().tolist() for mask in masks]
        action = MaskAction(operations, jnp.asarray(masks))
    else:
        draw, kind = {"point": (random_points, PointAction), "bbox": (random_boxes, BboxAction)}[action_format]
        numbers = draw(rng, count, *SHAPE, bad_fraction=0)
        action = kind(operations, *numbers.T)
    listed = [(int(operation), *map(int, rest)) for operation, rest in zip(operations, numbers, strict=True)]
    by_step = jax.tree.map(lambda x: jnp.asarray(x).reshape(STEPS, EPISODES, *x.shape[1:]), action)
    return by_step, [listed[i::EPISODES] for i in range(EPISODES)]


def play_in_environment(pairs, actions, action_format):
    """The grids after each step, without padding."""
    config = JaxArcConfig().with_fields(
        max_grid_height=SHAPE[0],
        max_grid_width=SHAPE[1],
        selection_format=action_format,
        max_episode_steps=STEPS + 1,
        history_enabled=False,
        executor="xla",  # compiles faster
    )
    tasks = [create_task([pair], [pair], grid_shape=SHAPE) for pair in pairs]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *tasks)

    @jax.jit
    def play(tasks, actions):
        keys = jax.random.split(jax.random.key(0), EPISODES)
        states, _ = jax.vmap(arc_reset, in_axes=(0, None, 0))(keys, config, tasks)

        def step(states, action):
            states = jax.vmap(arc_step, in_axes=(0, 0, None))(states, action, config)[0]
            return states, states.working_grid

        return jax.lax.scan(step, states, actions)[1]

    return np.asarray(play(stacked, actions))


@pytest.mark.parametrize("action_format", ["point", "bbox", "mask"])
def test_host_and_environment_agree_after_every_action(action_format):
    rng = np.random.default_rng(len(action_format))
    pairs = [tuple(map(without_padding, pair)) for pair in random_pairs(rng, EPISODES, *SHAPE)]
    actions, listed = random_actions(rng, action_format)
    played = play_in_environment(pairs, actions, action_format)
    for episode, (pair, numbers) in enumerate(zip(pairs, listed, strict=True)):
        canvas = HostCanvas(pair[0], SHAPE)
        for step, action in enumerate(numbers):
            canvas.apply(action, action_format)
            expected = without_padding(played[step, episode])
            np.testing.assert_array_equal(canvas.grid, expected, f"episode {episode}, step {step}, action {action}")


def test_played_actions_leave_the_pair_as_it_was():
    grid = play_on_host(PAIR, [(9, 0, 0, 1, 1), (c.RESIZE, 0, 0, 2, 2)], "bbox")
    assert grid.tolist() == [[9, 9, 0], [9, 9, 0], [0, 0, 0]]
    assert PAIR.input.tolist() == [[1, 2], [3, 4]]


def test_solution_passes():
    check_solution(PAIR, [(5, 1, 1), (c.SUBMIT, 0, 0)], "point")


@pytest.mark.parametrize(
    ("action_format", "actions", "error", "words"),
    [
        ("point", [(5, 1)], InvalidActionError, "action 0: 2 numbers.*'point'"),
        ("bbox", [(5, 1, 1)], InvalidActionError, "action 0: 3 numbers.*'bbox'"),
        ("mask", [(5, 1)], InvalidActionError, "action 0: 2 numbers.*'mask'"),
        ("point", [()], InvalidActionError, "action 0: 0 numbers"),
        ("point", [(35, 0, 0)], InvalidActionError, "action 0: operation 35.*0..34"),
        ("point", [(-1, 0, 0)], InvalidActionError, "action 0: operation -1"),
        ("point", [(5, 30, 0)], InvalidActionError, "action 0: row 30.*30x30"),
        ("mask", [(5, 0, 0, 0, -1)], InvalidActionError, "action 0: column -1"),
        ("point", [(5, 1.0, 0)], InvalidActionError, "action 0: 1.0"),
        ("point", [(5, True, 0)], InvalidActionError, "action 0: True"),
        ("point", [(c.SUBMIT, 0, 0), (5, 1, 1)], InvalidActionError, "action 1 .*action 0"),
        ("point", [(5, 1, 1)], NotSolvedError, "operation 34"),
        ("point", [(c.RESIZE, 2, 0), (c.SUBMIT, 0, 0)], NotSolvedError, "3x1, the output is 2x2"),
        ("point", [(6, 1, 1), (c.SUBMIT, 0, 0)], NotSolvedError, "row 1, column 1: got 6"),
    ],
)
def test_what_is_no_solution_is_named(action_format, actions, error, words):
    with pytest.raises(ExpertError, match=words) as caught:
        check_solution(PAIR, actions, action_format)
    assert type(caught.value) is error


def test_only_the_given_operations_are_valid():
    check_action((c.NEXT_TEST_PAIR, 0, 0), "here", "point", operations=(0, c.NEXT_TEST_PAIR))
    with pytest.raises(InvalidActionError, match=r"here: operation 1 .*0, 37"):
        check_action((1, 0, 0), "here", "point", operations=(0, 37))
