"""What other ARC environments get wrong (JaxARC 1.0.3, ARCLE 0.2.6), and what is right here."""

import equinox as eqx
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
    MOVE_DOWN,
    MOVE_LEFT,
    MOVE_RIGHT,
    MOVE_UP,
    PASTE,
    RESIZE,
    ROTATE_CLOCKWISE,
    SUBMIT,
)
from jaxarc.datasets import TaskSet
from jaxarc.envs import BboxAction, MaskAction, PointAction, arc_reset, arc_step
from jaxarc.envs.observations import observation_space
from jaxarc.envs.spaces import action_space
from jaxarc.tasks import RawTask, create_mock_task, create_task
from jaxarc.testing import create_test_config

CANVAS = (4, 5)
WHOLE = (0, 0, CANVAS[0] - 1, CANVAS[1] - 1)
NOWHERE = (3, 3, 3, 4)  # outside the active area of the grids below
FORMATS = ["point", "bbox", "mask"]


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


def two_tasks():
    """Two one-pair tasks: all 1 to all 2, all 3 to all 4."""
    grid = lambda color: np.full((2, 2), color)
    tasks = [RawTask(f"peer/{c}", ((grid(c), grid(c + 1)),), ((grid(c), grid(c + 1)),)) for c in (1, 3)]
    return TaskSet("two", tuple(tasks))


# JaxARC 1: `action=raw` is not applied, all 35 operations run.
def test_only_allowed_operations_act():
    fields = {"allowed_operations": (3, SUBMIT), "invalid_action_policy": "noop"}
    assert edited([[1, 1]], (3, WHOLE), **fields) == [[3, 3]]
    state, _, _, _, info = play([[1, 1]], (4, WHOLE), **fields)
    assert cells(state.working_grid) == [[1, 1]]
    assert info["invalid_action"]


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


# JaxARC 4: resize can never grow.
def test_resize_grows_with_black_cells():
    assert edited([[1, 2]], (RESIZE, (0, 0, 1, 3))) == [[1, 2, 0, 0], [0, 0, 0, 0]]
    assert edited([[1]], (RESIZE, WHOLE)) == [[1, 0, 0, 0, 0], *[[0] * 5] * 3]


# JaxARC 5: a grid of the wrong size that covers the target pays the success bonus.
@pytest.mark.parametrize(("grid", "target"), [([[2, 2, 0]], [[2, 2]]), ([[2, 2]], [[2, 2, 0]])], ids=["over", "under"])
def test_grid_of_the_wrong_size_is_not_a_solution(grid, target):
    state, _, reward, _, info = play(grid, (SUBMIT, WHOLE), target=target)
    assert info["similarity"] == pytest.approx(2 / 3)
    assert not state.is_solved
    assert reward == pytest.approx(-1.0 - 0.01)


# JaxARC 6: all four moves are inverted and wrap inside the box; a one-cell selection never moves.
@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (MOVE_UP, [[0, 7, 0], [0, 0, 0], [0, 0, 0]]),
        (MOVE_DOWN, [[0, 0, 0], [0, 0, 0], [0, 7, 0]]),
        (MOVE_LEFT, [[0, 0, 0], [7, 0, 0], [0, 0, 0]]),
        (MOVE_RIGHT, [[0, 0, 0], [0, 0, 7], [0, 0, 0]]),
    ],
)
def test_one_cell_moves_the_named_way(operation, expected):
    assert edited([[0, 0, 0], [0, 7, 0], [0, 0, 0]], (operation, (1, 1, 1, 1))) == expected


def test_what_moves_off_the_grid_is_lost():
    assert edited([[1, 2, 3]], (MOVE_LEFT, WHOLE)) == [[2, 3, 0]]
    assert edited([[1, 2, 3]], (MOVE_RIGHT, (0, 1, 0, 2))) == [[1, 0, 2]]


# JaxARC 7: rotate turns the whole padded canvas.
def test_rotate_turns_only_the_box():
    grid = [[1, 2, 9], [3, 4, 9], [9, 9, 9]]
    assert edited(grid, (ROTATE_CLOCKWISE, (0, 0, 1, 1))) == [[3, 1, 9], [4, 2, 9], [9, 9, 9]]


def test_rotate_of_the_whole_leaves_padding_alone():
    assert edited([[1, 2], [3, 4]], (ROTATE_CLOCKWISE, NOWHERE)) == [[3, 1], [4, 2]]


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


def test_operation_minus_one_is_refused_by_default():
    with pytest.raises(RuntimeError, match="Invalid operation ID -1"):
        play([[1, 2]], (-1, WHOLE))


# JaxARC 10: stepping after done goes on and pays again.
def test_step_after_done_changes_nothing_and_pays_nothing():
    config = create_test_config(selection_format="bbox", grid_shape=CANVAS)
    solved, *_ = play([[1, 1]], (2, WHOLE), (SUBMIT, WHOLE), target=[[2, 2]])
    after, _, reward, done, _ = arc_step(solved, BboxAction(SUBMIT, *WHOLE), config)
    assert reward == 0
    assert done
    assert eqx.tree_equal(after, solved)


# JaxARC 11: truncation has discount 0.
def test_discount_is_zero_only_after_termination():
    *_, cut_short = play([[1, 1]], (1, WHOLE), (1, WHOLE), max_episode_steps=2)
    *_, handed_in = play([[1, 1]], (1, WHOLE), (SUBMIT, WHOLE), max_episode_steps=2)
    assert (cut_short["truncated"], cut_short["terminated"], cut_short["discount"]) == (True, False, 1.0)
    assert (handed_in["truncated"], handed_in["terminated"], handed_in["discount"]) == (False, True, 0.0)


# JaxARC 12: the step limit of a registered environment is not applied.
def test_step_limit_of_make_ends_the_episode():
    env, params = jaxarc.make(
        two_tasks(), selection_format="point", max_grid_height=2, max_grid_width=2, max_episode_steps=7
    )
    state, _ = env.reset(jax.random.key(0), params)
    ended = []
    for _ in range(7):
        state, _, _, done, _ = env.step(state, PointAction(0, 0, 0), params)
        ended.append(bool(done))
    assert ended == [False] * 6 + [True]


# JaxARC 13: a selection outside the active area becomes "select all".
def test_selection_outside_the_active_area_is_empty():
    state, *_ = play([[1, 2]], (5, NOWHERE))
    assert cells(state.working_grid) == [[1, 2]]
    assert not state.selected.any()


# JaxARC 14: clear with an empty selection writes into the padding.
def test_clear_with_empty_selection_stays_in_the_active_area():
    assert edited([[1, 2], [3, 4]], (CLEAR, NOWHERE)) == [[0, 0], [0, 0]]  # cells() checks the padding


# JaxARC 15: copy-input does not update the mask.
def test_copy_input_restores_the_size_too():
    state, *_ = play([[1, 2], [3, 4]], (RESIZE, WHOLE), (COPY_INPUT, WHOLE))
    assert cells(state.working_grid) == [[1, 2], [3, 4]]
    assert state.working_grid_mask.sum() == 4
    assert state.grid_size.tolist() == [2, 2]


# JaxARC 16: paste treats black as nothing.
def test_paste_writes_black_cells():
    assert edited([[0, 1, 7, 7]], (COPY, (0, 0, 0, 1)), (PASTE, (0, 2, 0, 2))) == [[0, 1, 0, 1]]


# JaxARC 17: a start grid moves content outside its mask.
@pytest.mark.parametrize("start", ["input", "empty", "random", "partial"])
def test_start_grid_is_active_in_one_top_left_area(start):
    config = create_test_config(
        grid_shape=CANVAS, start_grid=start, start_height=3, start_width=2, partial_probability=1.0
    )
    states, _ = jaxarc.batch_reset(jax.random.split(jax.random.key(0), 64), config, create_mock_task(*CANVAS))
    facts = jax.device_get((states.working_grid, states.grid_size, states.working_grid_mask))
    for grid, (height, width), mask in zip(*facts, strict=True):
        active = cells(grid)
        assert (len(active), len(active[0])) == (height, width)
        assert mask.sum() == height * width


# JaxARC 18: declared spaces do not contain the values. ARCLE: 2963 of 3000 observations lie outside.
@pytest.mark.parametrize("more", [{}, {"reveal_target": True, "include_step_count": True}], ids=["plain", "more"])
@pytest.mark.parametrize("selection_format", FORMATS)
def test_spaces_contain_everything_that_is_drawn_and_shown(selection_format, more):
    config = create_test_config(20, selection_format, grid_shape=CANVAS, **more)
    actions, observations = action_space(config), observation_space(config, 0)
    state, observation = arc_reset(jax.random.key(0), config, create_mock_task(*CANVAS))

    def step(state, key):
        action = actions.sample(key)
        state, observation, *_ = arc_step(state, action, config)
        return state, actions.contains(action) & observations.contains(observation)

    run = eqx.filter_jit(lambda state, keys: jax.lax.scan(step, state, keys)[1])
    assert observations.contains(observation)
    for start in range(25):  # 25 episodes of 40 steps, half of them after the end
        assert run(state, jax.random.split(jax.random.key(start), 40)).all()
    assert observations.contains(observations.sample(jax.random.key(0)))


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


# JaxARC 20: the policy `penalize` equals `clip`; the state's key never advances.
def test_noop_policy_pays_the_penalty_and_clip_does_not():
    outside = (2, (0, -3, 0, 0))
    ignored, _, ignored_reward, _, ignored_info = play([[1, 1]], outside, invalid_action_policy="noop")
    clipped, _, clipped_reward, _, clipped_info = play([[1, 1]], outside, invalid_action_policy="clip")
    assert cells(ignored.working_grid) == [[1, 1]]
    assert cells(clipped.working_grid) == [[2, 1]]
    assert ignored_info["invalid_action"]
    assert not clipped_info["invalid_action"]
    assert ignored_reward == pytest.approx(-0.01 - 0.1)
    assert clipped_reward == pytest.approx(-0.01)


@pytest.fixture(scope="module")
def auto_reset():
    """An auto-resetting environment with two tasks whose episodes last one step, compiled once."""
    env, params = jaxarc.make(
        two_tasks(), selection_format="point", max_grid_height=2, max_grid_width=2, max_episode_steps=1
    )
    return jaxarc.wrappers.AutoReset(env), params


def one_step_episodes(env, params, count):
    def step(state, _):
        state, *_ = env.step(state, PointAction(0, 0, 0), params)
        return state, (state.task_index, state.key)

    return eqx.filter_jit(lambda state: jax.lax.scan(step, state, length=count)[1])(
        env.reset(jax.random.key(0), params)[0]
    )


def test_every_episode_has_a_key_of_its_own(auto_reset):
    tasks, keys = one_step_episodes(*auto_reset, 100)
    assert len(np.unique(np.asarray(keys), axis=0)) == 100
    assert set(tasks.tolist()) == {0, 1}


# JaxARC, further: auto-reset drops the params.
def test_auto_reset_keeps_the_params(auto_reset):
    env, params = auto_reset
    only_second = eqx.tree_at(lambda p: p.weights, params, jnp.array([0.0, 1.0]))
    tasks, _ = one_step_episodes(env, only_second, 100)
    assert set(tasks.tolist()) == {1}


# JaxARC, further: similarity is never seen; `state_space()` raises.
def test_similarity_is_reported_from_reset_on(auto_reset):
    env, params = auto_reset
    state, _ = env.reset(jax.random.key(0), params)
    assert env.info(state, params)["similarity"] == state.similarity_score == 0
    *_, info = play([[1, 2]], (2, (0, 0, 0, 0)), target=[[2, 3]])
    assert info["similarity"] == 0.5


def test_every_declared_space_can_be_drawn_from(auto_reset):
    env, params = auto_reset
    for space in (env.action_space(params), env.observation_space(params)):
        assert space.contains(space.sample(jax.random.key(0)))


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


# ARCLE: reset with a seed is not deterministic.
def test_reset_with_the_same_key_gives_the_same_bits():
    config, task = create_test_config(grid_shape=CANVAS, start_grid="random"), create_mock_task(*CANVAS)
    again = [arc_reset(jax.random.key(seed), config, task) for seed in (7, 8, 7)]
    assert eqx.tree_equal(again[0], again[2])
    assert not eqx.tree_equal(again[0], again[1])
