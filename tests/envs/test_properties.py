"""What holds for every grid, selection and sequence of actions."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from reference.cases import random_boxes, random_masks, random_operations, random_points

from jaxarc.constants import (
    CUT,
    FILL,
    FIRST_UNSOLVED_TEST_PAIR,
    FLIP_LEFT_RIGHT,
    FLIP_UP_DOWN,
    MOVE_DOWN,
    MOVE_LEFT,
    MOVE_RIGHT,
    MOVE_UP,
    NUM_OPERATIONS,
    PADDING,
    PASTE,
    RESET_PAIR,
    RESIZE,
    ROTATE_CLOCKWISE,
    ROTATE_COUNTERCLOCKWISE,
    SUBMIT,
)
from jaxarc.datasets import TaskSet
from jaxarc.envs import ArcEnvironment, BboxAction, EnvParams, MaskAction, PointAction, arc_reset, arc_step
from jaxarc.tasks import RawTask, create_task
from jaxarc.testing import create_test_config
from jaxarc.types import JaxArcTask
from jaxarc.wrappers import AutoReset

H, W = CANVAS = (4, 5)
LENGTH = 12  # steps of a run; shorter ones end with steps that do nothing
NOTHING = -1
CONFIG = create_test_config(9, "mask", CANVAS, invalid_action_policy="noop", max_submissions=2)
NO_CELL = np.zeros(CANVAS, bool)


# Runs: from grids and actions to the states after each step, compiled once a canvas.
@eqx.filter_jit
def run(grid, target, actions, config):
    pair = [grid[None], target[None], 1]
    state, _ = arc_reset(jax.random.key(0), config, JaxArcTask(*pair, *pair, 0))

    def step(state, action):
        after, *received = arc_step(state, action, config)
        return after, (views(after), *received, after)

    return views(state), jax.lax.scan(step, state, actions)[1]


class Views(NamedTuple):
    working_grid: Any
    grid_size: Any
    target_grid: Any
    selected: Any
    clipboard: Any
    similarity_score: Any


def views(state):
    """What a state shows, as arrays."""
    return Views(*(getattr(state, name) for name in Views._fields))


def pad(grid, canvas=CANVAS):
    return np.pad(
        grid, [(0, big - small) for small, big in zip(grid.shape, canvas, strict=True)], constant_values=PADDING
    )


def play(grid, *steps, target=None, config=CONFIG):
    """Views of the first state, and what the steps of (operation, cells) returned: views, ..., states."""
    steps = [*steps, *[(NOTHING, NO_CELL)] * (LENGTH - len(steps))]
    actions = MaskAction(*(np.stack(column) for column in zip(*steps, strict=True)))
    target = grid if target is None else target
    return jax.device_get(run(pad(grid, config.grid_shape), pad(target, config.grid_shape), actions, config))


def edited(grid, *steps):
    """The active area after each step."""
    _, (states, *_) = play(grid, *steps)
    return [after[: size[0], : size[1]] for after, size in zip(states.working_grid, states.grid_size, strict=True)]


sizes = st.tuples(st.integers(1, H), st.integers(1, W))
grids = sizes.flatmap(lambda size: arrays(np.int8, size, elements=st.integers(0, 9)))
masks = arrays(np.bool_, CANVAS)


@st.composite
def grids_with_a_box(draw, square=False, margin=0):
    """A grid, and a mask of a box inside it that keeps a margin from the edge."""
    low = 1 + 2 * margin
    grid = draw(arrays(np.int8, st.tuples(st.integers(low, H), st.integers(low, W)), elements=st.integers(0, 9)))
    height, width = (draw(st.integers(1, side - 2 * margin)) for side in grid.shape)
    if square:
        height = width = min(height, width)
    top = draw(st.integers(margin, grid.shape[0] - margin - height))
    left = draw(st.integers(margin, grid.shape[1] - margin - width))
    cells = NO_CELL.copy()
    cells[top : top + height, left : left + width] = True
    return grid, cells


@given(grids, masks, st.sampled_from([FLIP_LEFT_RIGHT, FLIP_UP_DOWN]))
def test_flip_twice_is_identity(grid, cells, flip):
    np.testing.assert_array_equal(edited(grid, (flip, cells), (flip, cells))[1], grid)


@given(grids_with_a_box(square=True), st.permutations([ROTATE_CLOCKWISE, ROTATE_COUNTERCLOCKWISE]))
def test_rotate_and_rotate_back_is_identity_on_a_square(grid_and_cells, turns):
    grid, cells = grid_and_cells
    first, second, *_ = edited(grid, *[(turn, cells) for turn in turns])
    box = np.ix_(cells.any(1), cells.any(0))
    turned = np.rot90(pad(grid)[box], -1 if turns[0] == ROTATE_CLOCKWISE else 1)
    np.testing.assert_array_equal(pad(first)[box], turned)
    np.testing.assert_array_equal(second, grid)


@given(grids_with_a_box(square=True), st.sampled_from([ROTATE_CLOCKWISE, ROTATE_COUNTERCLOCKWISE]))
def test_four_rotations_of_a_square_are_identity(grid_and_cells, turn):
    grid, cells = grid_and_cells
    np.testing.assert_array_equal(edited(grid, *[(turn, cells)] * 4)[3], grid)


@given(grids, masks, st.integers(0, 9))
def test_fill_twice_is_fill_once(grid, cells, color):
    once, twice, *_ = edited(grid, (FILL + color, cells), (FILL + color, cells))
    np.testing.assert_array_equal(twice, once)
    inside = cells[: grid.shape[0], : grid.shape[1]]
    np.testing.assert_array_equal(once, np.where(inside, color, grid))


@given(grids, masks)
def test_paste_after_cut_restores_the_grid(grid, cells):
    cut, pasted, *_ = edited(grid, (CUT, cells), (PASTE, cells))
    inside = cells[: grid.shape[0], : grid.shape[1]]
    np.testing.assert_array_equal(cut, np.where(inside, 0, grid))
    np.testing.assert_array_equal(pasted, grid)


DIRECTIONS = {MOVE_UP: (-1, 0), MOVE_DOWN: (1, 0), MOVE_LEFT: (0, -1), MOVE_RIGHT: (0, 1)}
BACK = {MOVE_UP: MOVE_DOWN, MOVE_DOWN: MOVE_UP, MOVE_LEFT: MOVE_RIGHT, MOVE_RIGHT: MOVE_LEFT}


@given(grids_with_a_box(margin=1), masks, st.sampled_from(list(DIRECTIONS)))
def test_move_and_move_back_restores_all_but_what_was_overwritten(grid_and_cells, holes, move):
    grid, cells = grid_and_cells
    cells = np.where((cells & holes).any(), cells & holes, cells)
    moved = np.roll(cells, DIRECTIONS[move], (0, 1))
    _, (states, *_) = play(grid, (move, cells), (BACK[move], moved))
    np.testing.assert_array_equal(states.selected[0], moved)
    np.testing.assert_array_equal(states.selected[1], cells)
    expected = np.where(moved & ~cells, 0, pad(grid))
    np.testing.assert_array_equal(states.working_grid[1], expected)


@given(grids, grids)
def test_similarity_is_symmetric_and_one_only_for_equal_grids(first, second):
    there, _ = play(first, target=second)
    back, _ = play(second, target=first)
    alike, _ = play(first, target=first)
    assert there.similarity_score == back.similarity_score
    assert 0 <= there.similarity_score <= 1
    assert (there.similarity_score == 1) == np.array_equal(first, second)
    assert alike.similarity_score == 1


@given(grids, st.integers(1, H), st.integers(1, W))
def test_target_of_another_size_is_never_matched(grid, height, width):
    other = np.full((height, width), grid[0, 0], np.int8)
    state, _ = play(np.full_like(grid, grid[0, 0]), target=other)
    union = max(height, grid.shape[0]) * max(width, grid.shape[1])
    common = min(height, grid.shape[0]) * min(width, grid.shape[1])
    assert state.similarity_score == np.float32(common) / np.float32(union)


# Invariants of whole episodes.
operations = st.one_of(st.integers(0, NUM_OPERATIONS - 1), st.sampled_from([RESIZE, CUT, PASTE, NOTHING, 99]))
scripts = st.lists(st.tuples(operations, masks), max_size=LENGTH)


@given(grids, grids, scripts)
def test_state_is_well_formed_after_any_actions(grid, target, script):
    _, (states, observations, rewards, dones, infos, _) = play(grid, *script, target=target)
    np.testing.assert_array_equal(observations, states.working_grid)
    for i in range(LENGTH):
        size = states.grid_size[i]
        active = np.zeros(CANVAS, bool)
        active[: size[0], : size[1]] = True
        after, held = states.working_grid[i], states.clipboard[i] > PADDING
        assert (size >= 1).all()
        assert ((after >= 0) == active).all()
        assert after.max() <= 9
        assert not (states.selected[i] & ~active).any()
        assert not held.any() or (held[0].any() and held[:, 0].any())  # content stands at the origin
        assert ((states.clipboard[i] >= 0) == held).all()
        np.testing.assert_array_equal(states.target_grid[i], pad(target))
        assert 0 <= states.similarity_score[i] <= 1
    assert np.isfinite(rewards).all()
    assert (infos["step_count"] <= 9).all()
    assert not (infos["terminated"] & infos["truncated"]).any()
    np.testing.assert_array_equal(dones, infos["terminated"] | infos["truncated"])
    np.testing.assert_array_equal(infos["discount"], 1 - infos["terminated"])


@given(grids, grids, scripts)
def test_nothing_happens_after_the_end(grid, target, script):
    script = [*script[: LENGTH - 3], (SUBMIT, NO_CELL), (SUBMIT, NO_CELL)]
    _, (_, _, rewards, dones, infos, states) = play(grid, *script, target=target)
    assert dones[-1]
    end = int(np.argmax(dones))
    assert (rewards[end + 1 :] == 0).all()
    assert not infos["invalid_action"][end + 1 :].any()
    for leaf in jax.tree.leaves(states):
        assert (leaf[end:] == leaf[end]).all()


@given(grids, grids, scripts)
def test_larger_canvas_changes_nothing(grid, target, script):
    """No operation reads or writes padding: how much of it there is makes no difference."""
    wide = (H + 2, W + 1)
    larger = CONFIG.with_fields(max_grid_height=wide[0], max_grid_width=wide[1])
    _, (small, _, *others, _) = play(grid, *script, target=target)
    widened = [(operation, np.pad(cells, ((0, 2), (0, 1)))) for operation, cells in script]
    widened += [(NOTHING, np.zeros(wide, bool))] * (LENGTH - len(script))
    _, (large, _, *large_others, _) = play(grid, *widened, target=target, config=larger)
    for name in ("working_grid", "clipboard", "selected"):
        before, after = getattr(small, name), getattr(large, name)
        np.testing.assert_array_equal(after[:, :H, :W], before)
        assert not after[:, H:].any() or (after[:, H:] == PADDING).all()
        assert not after[:, :, W:].any() or (after[:, :, W:] == PADDING).all()
    assert eqx.tree_equal(others, large_others)


# Test mode: the hidden answer reaches the agent only by what a submit pays.
HIDDEN = {
    "point": {"selection_format": "point"},
    "bbox": {"selection_format": "bbox", "include_step_count": True, "score_on_submit": True},
    "mask": {"selection_format": "mask", "start_grid": "empty", "max_submissions": 3},
    "switching": {"selection_format": "bbox", "allow_test_switching": True, "test_selection": "random"},
    "random start": {"selection_format": "point", "start_grid": "random", "score_on_submit": True},
}
EPISODES, STEPS = 64, 20


def random_actions(rng, selection_format, shape, refused=()):
    count = int(np.prod(shape))
    operation = random_operations(rng, count)
    operation[np.isin(operation, refused)] = NOTHING
    match selection_format:
        case "point":
            action = PointAction(operation, *random_points(rng, count, H, W).T)
        case "bbox":
            action = BboxAction(operation, *random_boxes(rng, count, H, W).T)
        case _:
            action = MaskAction(operation, random_masks(rng, count, H, W))
    return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), action)


@functools.cache
def hidden_params(fields):
    """Params whose tasks have two demonstrations and two tests each, and the same with other hidden outputs."""
    rng = np.random.default_rng(5)
    grid = lambda: rng.integers(0, 10, (rng.integers(1, H + 1), rng.integers(1, W + 1)))
    shown = [[(grid(), grid()), (grid(), grid())] for _ in range(3)]
    tests = [[grid(), grid()] for _ in range(3)]
    config = create_test_config(7, grid_shape=CANVAS, mode="test", invalid_action_policy="noop").with_fields(
        **dict(fields)
    )
    params = []
    for _ in range(2):
        tasks = [
            RawTask(f"hidden/{i}", tuple(pairs), tuple((start, grid()) for start in tests[i]))
            for i, pairs in enumerate(shown)
        ]
        params.append(EnvParams(TaskSet("hidden", tuple(tasks)).buffer(CANVAS), jnp.ones(3), config))
    assert (params[0].tasks.outputs != params[1].tasks.outputs).any()
    return params


@eqx.filter_jit
def everything_received(env, params, actions):
    """All that agents receive in a rollout."""
    keys = jax.random.split(jax.random.key(1), EPISODES)
    states, first = jax.vmap(env.reset, (0, None))(keys, params)

    def step(states, action):
        states, *received = jax.vmap(env.step, (0, 0, None))(states, action, params)
        return states, received

    return first, jax.lax.scan(step, states, actions)[1], jax.vmap(env.info, (0, None))(states, params)


@pytest.mark.parametrize("rules", HIDDEN.values(), ids=list(HIDDEN))
def test_hidden_answer_changes_nothing_before_the_submit(rules):
    env = AutoReset(ArcEnvironment())  # its info holds the inner environment's observation too
    ours, theirs = hidden_params(tuple(rules.items()))
    rng = np.random.default_rng(len(str(rules)))
    actions = random_actions(rng, rules["selection_format"], (STEPS, EPISODES), refused=[SUBMIT])
    received = everything_received(env, ours, actions)
    assert eqx.tree_equal(received, everything_received(env, theirs, actions))
    assert received[1][2].any()  # some episodes ended


@pytest.mark.parametrize("submissions", [1, 3])
@pytest.mark.parametrize("name", ["point", "switching"])
def test_only_a_scored_submit_tells_about_the_hidden_answer(name, submissions):
    """Right and wrong submits look alike in all that follows, unless the config says that they are scored."""
    grid, answer, other = np.full((2, 2), 1), np.full((2, 2), 2), np.full((2, 2), 3)
    for scored in (False, True):
        config = create_test_config(7, "point", CANVAS, mode="test", score_on_submit=scored)
        rules = {**HIDDEN[name], "selection_format": "mask", "score_on_submit": scored}
        config = config.with_fields(**{**rules, "max_submissions": submissions, "invalid_action_policy": "noop"})
        seen = []
        for hidden in (answer, other):
            task = create_task([(grid, grid)], [(grid, hidden), (grid, hidden)], CANVAS)
            state, _ = arc_reset(jax.random.key(0), config, task)
            received = []
            for operation in (FILL + 2, SUBMIT, FIRST_UNSOLVED_TEST_PAIR, SUBMIT):
                state, *rest = arc_step(state, MaskAction(operation, ~NO_CELL), config)
                received.append(rest)
            seen.append(received)
        assert eqx.tree_equal(*seen) == (not scored)


# The reward: planning on the environment itself.
CHUNK = 256


def explore(config, task, operations):
    """Every state that can be reached, and for each state and action: the next state's place, reward and done."""
    height, width = config.grid_shape
    cells = [(operation, row, column) for operation in operations for row in range(height) for column in range(width)]
    actions = PointAction(*np.array(cells, np.int32).T)
    step = eqx.filter_jit(jax.vmap(jax.vmap(functools.partial(arc_step, config=config), (None, 0)), (0, None)))
    leaves, structure = jax.tree.flatten(jax.device_get(arc_reset(jax.random.key(0), config, task)[0]))
    unpacked = lambda rows: jax.tree.unflatten(structure, [np.stack(x) for x in zip(*rows, strict=True)])
    found, places, table = [leaves], {}, []
    places[b"".join(x.tobytes() for x in leaves)] = 0
    while len(table) < len(found):
        chunk = found[len(table) : len(table) + CHUNK]
        repeated = [chunk[i % len(chunk)] for i in range(CHUNK)]  # always as many: one compilation
        after, _, rewards, dones, _ = jax.device_get(step(unpacked(repeated), actions))
        columns = jax.tree.leaves(after)
        for i in range(len(chunk)):
            nexts = []
            for a in range(len(cells)):
                row = [column[i, a] for column in columns]
                nexts.append(places.setdefault(b"".join(x.tobytes() for x in row), len(found)))
                if nexts[-1] == len(found):
                    found.append(row)
            table.append((nexts, rewards[i], dones[i]))
    nexts, rewards, dones = (np.array(column) for column in zip(*table, strict=True))
    return unpacked(found), np.array(cells)[:, 0], nexts, rewards.astype(np.float64), dones


def best_values(states, nexts, rewards, dones, horizon):
    """The value of every action in every state, and how many edits a state is away from its target."""
    ended = states.endings.any(1)
    values = np.zeros(len(nexts))
    distance = np.where(states.similarity_score == 1, 0.0, np.inf)
    for _ in range(horizon):
        of_actions = rewards + np.where(dones, 0, values[nexts])
        values = np.where(ended, 0, of_actions.max(1))
        distance = np.minimum(distance, 1 + distance[nexts].min(1))
    return of_actions, distance


GRID_OPERATIONS = (FILL + 1, FILL + 2, MOVE_RIGHT, RESIZE, SUBMIT)
PLANS = {
    "train": {},
    "two submissions": {"max_submissions": 2},
    "from scratch": {"start_grid": "empty", "start_height": 1, "start_width": 1},
    "test": {"mode": "test", "score_on_submit": True},
}


def assert_best_policy_is_to_solve_submit_and_stop(operations, fields):
    horizon = 6
    config = create_test_config(horizon, grid_shape=(1, 2), history_enabled=False, **fields)
    pairs = [([[1, 0]], [[2, 1]]), ([[0, 2]], [[1, 1]])]
    states, operation, nexts, rewards, dones = explore(config, create_task(pairs, pairs, (1, 2)), operations)
    values, distance = best_values(states, nexts, rewards, dones, horizon)
    solvable = ~states.endings.any(1) & (distance + 1 <= horizon - states.step_count) & ~states.is_solved
    assert solvable.sum() > 40
    shaping = 1 - states.similarity_score if config.episode.mode == "train" else np.zeros(len(states.similarity_score))
    promised = shaping + config.reward.success_bonus + config.reward.step_penalty * (distance + 1)
    np.testing.assert_allclose(values.max(1)[solvable], promised[solvable], rtol=0, atol=1e-5)
    is_best = values >= values.max(1, keepdims=True) - 1e-5
    at_target = solvable & (distance == 0)
    assert (operation[None].repeat(len(values), 0)[at_target][is_best[at_target]] == SUBMIT).all()
    under_way = solvable & (distance > 0)
    closer = distance[nexts] == distance[:, None] - 1
    assert closer[under_way][is_best[under_way]].all()
    assert dones[at_target][:, operation == SUBMIT].all()


@pytest.mark.parametrize("fields", PLANS.values(), ids=list(PLANS))
def test_best_policy_is_to_solve_submit_and_stop(fields):
    assert_best_policy_is_to_solve_submit_and_stop(GRID_OPERATIONS, fields)


def test_best_policy_never_farms_the_shaping_by_resetting_the_pair():
    assert_best_policy_is_to_solve_submit_and_stop((*GRID_OPERATIONS, RESET_PAIR), {})
