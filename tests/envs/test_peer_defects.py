"""What other ARC environments get wrong (JaxARC 1.0.3, ARCLE 0.2.6), and what is right here."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc.constants import (
    CLEAR,
    COPY,
    COPY_INPUT,
    FLOOD_FILL,
    MOVE_LEFT,
    MOVE_RIGHT,
    MOVE_UP,
    PASTE,
    RESIZE,
    ROTATE_CLOCKWISE,
    SUBMIT,
)
from jaxarc.envs import BboxAction, MaskAction, PointAction, arc_reset, arc_step
from jaxarc.envs.observations import observation_space
from jaxarc.envs.spaces import action_space
from jaxarc.tasks import create_mock_task, create_task
from jaxarc.testing import create_test_config

CANVAS = (4, 5)
WHOLE = (0, 0, CANVAS[0] - 1, CANVAS[1] - 1)
NOWHERE = (3, 3, 3, 4)  # outside the active area of the grids below


def play(grid, *steps, target=((9,),), canvas=CANVAS, **fields):
    """Start on ``grid`` and take steps of (operation, box); what the last one returned."""
    config = create_test_config(selection_format="bbox", grid_shape=canvas, **fields)
    state, observation = arc_reset(jax.random.key(0), config, create_task([(grid, target)], [(grid, target)], canvas))
    result = state, observation, None, None, None
    for operation, box in steps:
        result = arc_step(result[0], BboxAction(operation, *box), config)
    return result


def cells(grid):
    """The active area as nested lists, after a check that the rest is padding."""
    grid = np.asarray(grid)
    height, width = (grid[:, 0] >= 0).sum(), (grid[0] >= 0).sum()
    inside = np.zeros_like(grid, bool)
    inside[:height, :width] = True
    assert ((grid >= 0) == inside).all()
    return grid[:height, :width].tolist()


def edited(grid, *steps, **kwargs):
    return cells(play(grid, *steps, **kwargs)[0].working_grid)


EDITS = {  # start, steps of (operation, box), what is left
    "resize grows with black cells": ([[1, 2]], [(RESIZE, (0, 0, 1, 3))], [[1, 2, 0, 0], [0, 0, 0, 0]]),
    "one cell moves up": ([[0, 0], [7, 0]], [(MOVE_UP, (1, 0, 1, 0))], [[7, 0], [0, 0]]),
    "one cell moves right": ([[7, 0], [0, 0]], [(MOVE_RIGHT, (0, 0, 0, 0))], [[0, 7], [0, 0]]),
    "what leaves the grid is lost": ([[1, 2, 3]], [(MOVE_LEFT, WHOLE)], [[2, 3, 0]]),
    "only the box turns": ([[1, 2, 9], [3, 4, 9]], [(ROTATE_CLOCKWISE, (0, 0, 1, 1))], [[3, 1, 9], [4, 2, 9]]),
    "a selection beside the grid is empty": ([[1, 2]], [(5, NOWHERE)], [[1, 2]]),
    "clear leaves the padding": ([[1, 2], [3, 4]], [(CLEAR, NOWHERE)], [[0, 0], [0, 0]]),
    "copy input takes its size": ([[1, 2], [3, 4]], [(RESIZE, WHOLE), (COPY_INPUT, WHOLE)], [[1, 2], [3, 4]]),
    "black is pasted": ([[0, 1, 7, 7]], [(COPY, (0, 0, 0, 1)), (PASTE, (0, 2, 0, 2))], [[0, 1, 0, 1]]),
}


@pytest.mark.parametrize(("grid", "steps", "expected"), EDITS.values(), ids=EDITS)
def test_an_edit_does_what_the_page_says(grid, steps, expected):
    assert edited(grid, *steps) == expected


def test_action_space_offers_only_allowed_operations():
    space = action_space(create_test_config(allowed_operations=(3, 12, SUBMIT)))
    drawn = jax.vmap(space.sample)(jax.random.split(jax.random.key(0), 300))
    assert set(drawn.operation.tolist()) == {3, 12, SUBMIT}


# JaxARC 2: the start grid is usually the input of another pair than the one that is scored.
def test_start_grid_is_the_input_of_the_scored_pair():
    config, task = create_test_config(grid_shape=CANVAS), create_mock_task(*CANVAS)
    states, observations = jaxarc.batch_reset(jax.random.split(jax.random.key(0), 1000), config, task)
    pairs = np.asarray(states.pair_index)
    assert set(pairs.tolist()) == {0, 1, 2}
    np.testing.assert_array_equal(observations, task.input_grids_examples[pairs])
    np.testing.assert_array_equal(states.target_grid, task.output_grids_examples[pairs])


# JaxARC 3: test mode cannot be solved, its target is blanked.
def test_test_episode_can_be_solved():
    right, _, reward, done, info = play(
        [[1, 1]], (2, WHOLE), (SUBMIT, WHOLE), target=[[2, 2]], mode="test", score_on_submit=True
    )
    assert done
    assert info["success"]
    assert right.is_solved
    assert reward == pytest.approx(10.0 - 0.01)


# JaxARC 5: a grid of the wrong size that covers the target pays the success bonus.
@pytest.mark.parametrize(("grid", "target"), [([[2, 2, 0]], [[2, 2]]), ([[2, 2]], [[2, 2, 0]])], ids=["over", "under"])
def test_grid_of_the_wrong_size_is_not_a_solution(grid, target):
    state, _, reward, _, info = play(grid, (SUBMIT, WHOLE), target=target)
    assert info["similarity"] == pytest.approx(2 / 3)
    assert not state.is_solved
    assert reward == pytest.approx(-1.0 - 0.01)


# JaxARC 8: flood fill stops after 64 rounds.
def test_flood_fill_follows_a_long_corridor_to_its_end():
    grid = np.zeros((30, 30), int)
    grid[::2] = 1
    grid[1::4, -1] = grid[3::4, 0] = 1  # a serpentine of 465 cells and a last step
    expected = np.where(grid == 1, 5, 0)
    assert edited(grid, (FLOOD_FILL + 5, (0, 0, 0, 0)), canvas=(30, 30)) == expected.tolist()


# JaxARC 9: invalid operation ids are clipped, so 35 and 100 become a submit. ARCLE accepts -1.
@pytest.mark.parametrize("policy", ["noop", "clip"])
@pytest.mark.parametrize("operation", [-1, 35, 42, 100, 2**31 - 1])
def test_invalid_operation_is_never_another_one(policy, operation):
    state, _, _, done, info = play([[1, 2]], (operation, WHOLE), invalid_action_policy=policy)
    assert cells(state.working_grid) == [[1, 2]]
    assert info["invalid_action"]
    assert state.submission_count == 0
    assert not done
    assert state.step_count == 1


def test_spaces_refuse_what_is_not_in_them():
    config = create_test_config(grid_shape=CANVAS)
    grid = jnp.zeros(CANVAS, jnp.int8)
    space = observation_space(config, 0)
    assert space.contains(grid)
    assert not space.contains(grid + jnp.int8(10))
    assert not space.contains(grid.astype(jnp.int32))
    assert not space.contains(grid[1:])
    assert not action_space(config).contains(PointAction(0, CANVAS[0], 0))
    assert not action_space(config).contains(PointAction(35, 0, 0))
    assert not action_space(config).contains(BboxAction(0, 0, 0, 0, 0))


# JaxARC 19: the flattened mask space overflows to size 0.
def test_mask_space_draws_every_cell_of_a_full_canvas():
    drawn = jax.vmap(action_space(create_test_config(selection_format="mask")).sample)(
        jax.random.split(jax.random.key(0), 64)
    )
    assert drawn.selection.shape == (64, 30, 30)
    assert drawn.selection.any(0).all()
    assert not drawn.selection.all(0).any()


# ARCLE: every step returns the same mutable observation.
def test_earlier_observations_stay_as_they_were():
    config = create_test_config(selection_format="mask", grid_shape=CANVAS)
    state, first = arc_reset(jax.random.key(0), config, create_mock_task(*CANVAS))
    kept = np.array(first)
    _, second, *_ = arc_step(state, MaskAction(9, np.ones(CANVAS, bool)), config)
    assert (np.asarray(second) != kept).any()
    np.testing.assert_array_equal(first, kept)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(second)[0, 0] = 3
