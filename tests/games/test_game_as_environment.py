"""A game behind the interface of environments: auto-reset, statistics, the check, rollouts over devices, an adapter."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.games import MOVES, Color, GameEnvironment, GameError, GridGame, Level, LevelEvent, bits
from jaxarc.testing import check_environment
from jaxarc.wrappers import AutoReset, EpisodeStatistics

LEFT, RIGHT = 3, 4


def rule(board, action):
    """Walk to the goal."""
    player = bits.walk(board["player"], board.solid(), action.number)
    return board.set(player=player), LevelEvent(bits.some(player & board["goal"]))


GAME = GridGame(
    name="walk",
    about="For these tests.",
    layers={"goal": Color.RED, "player": Color.WHITE},
    letters={"P": ("player",), "G": ("goal",)},
    actions=MOVES,
    rule=rule,
    levels=[Level(1, "PG."), Level(2, "P.G")],
)
ENV = GameEnvironment(GAME)
PARAMS = ENV.make_params(max_steps=4)


def test_auto_reset_and_statistics_take_a_game():
    env = EpisodeStatistics(AutoReset(ENV))
    state, first = env.reset(jax.random.key(0), PARAMS)
    for action in (RIGHT, LEFT, RIGHT, RIGHT):
        state, seen, _, done, info = env.step(state, action, PARAMS)
    assert done & info["success"] & info["episode_ended"]
    assert (float(info["episode_return"]), int(info["episode_length"])) == (2, 4)
    np.testing.assert_array_equal(seen, first)
    assert (np.asarray(info["final_observation"]) != first).any()
    assert int(state.env_state.step_count) == 0
    assert env.name == "games/walk"


def test_a_game_that_resets_itself_keeps_the_contract():
    report = check_environment(AutoReset(ENV), PARAMS, num_envs=2, num_steps=6)
    assert {"stable types", "spaces", "views", "endings", "pure", "step and reset"} <= set(report.passed)
    assert report.episodes_truncated


def test_a_rollout_of_a_game_is_the_same_on_two_devices():
    code = """
import jax
from jaxarc.parallel import RandomPolicy, data_mesh, rollout
from jaxarc.wrappers import AutoReset, EpisodeStatistics
from test_game_as_environment import ENV, PARAMS
env = EpisodeStatistics(AutoReset(ENV))
policy = RandomPolicy(env.action_space(PARAMS))
one, two = (rollout(env, PARAMS, policy, jax.random.key(0), 4, 16, data_mesh(d), count_tasks=True) for d in (1, 2))
assert one.totals == two.totals, (one.totals, two.totals)
assert one.task_counts.episodes.tolist() == [one.totals.episodes]
assert one.totals.episodes >= 16 and one.totals.return_sum > 0, one.totals
"""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    paths = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    given = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_gymnasium_plays_a_batch_of_a_game():
    gymnasium = pytest.importorskip("gymnasium")
    from jaxarc.adapters import GymnasiumVectorEnv

    batch = GymnasiumVectorEnv(ENV, PARAMS, 2, "SameStep")
    first, _ = batch.reset(seed=0)
    assert batch.single_action_space == gymnasium.spaces.Discrete(5)
    assert first in batch.observation_space
    batch.step(np.array([RIGHT, RIGHT]))
    batch.step(np.array([RIGHT, LEFT]))
    seen, rewards, terminated, truncated, info = batch.step(np.array([RIGHT, LEFT]))
    assert (rewards.tolist(), terminated.tolist(), truncated.tolist()) == ([1, 0], [True, False], [False, False])
    np.testing.assert_array_equal(seen[0], first[0])
    assert info["final_info"]["success"].tolist() == [True, False]


def test_sets_of_a_task_are_drawn_by_its_weight():
    levels = jnp.concatenate([PARAMS.levels] * 6)
    params = ENV.make_params()
    params = type(params)(levels, params.max_steps, params.game, jnp.array([0.0, 0.0, 1.0]))
    states, _ = jax.vmap(ENV.reset, (0, None))(jax.random.split(jax.random.key(0), 32), params)
    assert set(np.asarray(states.set_index).tolist()) == {2, 5}
    assert set(np.asarray(ENV.info(states, params)["task_index"]).tolist()) == {2}
    assert int(ENV.reset(jax.random.key(0), params, 1)[0].set_index) in (1, 4)


def test_a_pair_and_params_of_something_else_are_refused():
    with pytest.raises(GameError, match="pair_index=0"):
        ENV.reset(jax.random.key(0), PARAMS, 0, 0)
    for call in (AutoReset(ENV).action_space, AutoReset(ENV).require):
        with pytest.raises(GameError, match="dict"):
            call({})
