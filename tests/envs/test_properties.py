"""After the end nothing happens, a hidden answer stays hidden, and the best policy is to solve, submit and stop."""

import functools

import equinox as eqx
import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from jaxarc.constants import (
    CUT,
    FILL,
    FIRST_UNSOLVED_TEST_PAIR,
    MOVE_RIGHT,
    NUM_OPERATIONS,
    PASTE,
    RESET_PAIR,
    RESIZE,
    SUBMIT,
)
from jaxarc.envs import MaskAction, PointAction, arc_reset, arc_step
from jaxarc.tasks import create_task
from jaxarc.testing import create_test_config
from jaxarc.types import JaxArcTask

H, W = CANVAS = (4, 5)
LENGTH = 12  # steps of a run; shorter ones end with steps that do nothing
NOTHING = -1
CONFIG = create_test_config(9, "mask", CANVAS, invalid_action_policy="noop", max_submissions=2)
NO_CELL = np.zeros(CANVAS, bool)


@eqx.filter_jit
def run(grid, target, actions, config):
    """All that is returned in each step of an episode from one grid to another."""
    pair = [grid[None], target[None], 1]
    state, _ = arc_reset(jax.random.key(0), config, JaxArcTask(*pair, *pair, 0))

    def step(state, action):
        result = arc_step(state, action, config)
        return result[0], result

    return jax.lax.scan(step, state, actions)[1]


def pad(grid):
    return np.pad(grid, [(0, big - small) for small, big in zip(grid.shape, CANVAS, strict=True)], constant_values=-1)


sizes = st.tuples(st.integers(1, H), st.integers(1, W))
grids = sizes.flatmap(lambda size: arrays(np.int8, size, elements=st.integers(0, 9)))
masks = arrays(np.bool_, CANVAS)
operations = st.one_of(st.integers(0, NUM_OPERATIONS - 1), st.sampled_from([RESIZE, CUT, PASTE, NOTHING, 99]))
scripts = st.lists(st.tuples(operations, masks), max_size=LENGTH)


@given(grids, grids, scripts)
def test_nothing_happens_after_the_end(grid, target, script):
    script = [*script[: LENGTH - 3], (SUBMIT, NO_CELL), (SUBMIT, NO_CELL)]
    script += [(NOTHING, NO_CELL)] * (LENGTH - len(script))
    actions = MaskAction(*(np.stack(column) for column in zip(*script, strict=True)))
    states, _, rewards, dones, infos = jax.device_get(run(pad(grid), pad(target), actions, CONFIG))
    assert dones[-1]
    end = int(np.argmax(dones))
    assert (rewards[end + 1 :] == 0).all()
    assert not infos["invalid_action"][end + 1 :].any()
    for leaf in jax.tree.leaves(states):
        assert (leaf[end:] == leaf[end]).all()


@pytest.mark.parametrize("submissions", [1, 3])
@pytest.mark.parametrize("rules", [{}, {"allow_test_switching": True, "test_selection": "random"}], ids=str)
def test_only_a_scored_submit_tells_about_the_hidden_answer(rules, submissions):
    """Right and wrong submits look alike in all that follows, unless the config says that they are scored."""
    grid, answer, other = np.full((2, 2), 1), np.full((2, 2), 2), np.full((2, 2), 3)
    for scored in (False, True):
        fields = {"score_on_submit": scored, "max_submissions": submissions, "invalid_action_policy": "noop", **rules}
        config = create_test_config(7, "mask", CANVAS, mode="test", **fields)
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
