"""Agents that learn games: the levels of a run, its episodes, its score, and the agent as a player of frames."""

import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
import jaxarc.games
from jaxarc.agents import GameAgent, load_agent, load_game_agent, load_levels
from jaxarc.agents.games import levels as game_levels
from jaxarc.agents.games.game_policy import GamePolicy
from jaxarc.agents.games.levels import record_levels
from jaxarc.agents.train import train
from jaxarc.cli.main import main
from jaxarc.cli.settings import read_experiment
from jaxarc.config import GameConfig, NetworkConfig
from jaxarc.files import locate_run
from jaxarc.games import GameEnvironment, GameError, Level
from jaxarc.games.frames import OwnFrames
from jaxarc.games.scoring import game_score
from jaxarc.runs.checkpoint import CheckpointError
from jaxarc.wrappers import AutoReset

RANDOM = GameConfig(name="lamps", num_sets=3, num_unseen=2, max_steps=6)
NETWORK = NetworkConfig(kind="residual_cnn", hidden_size=4, num_layers=2)


@pytest.fixture(scope="module")
def lamps():
    return load_levels(RANDOM)


def test_no_level_that_is_measured_is_learned_where_levels_are_random(lamps):
    rows = lambda levels: {row.tobytes() for row in levels}
    assert (len(lamps.train), lamps.num_train, lamps.num_evaluation) == (3 * 16, 8, 16)
    assert len(rows(lamps.train.levels)) == 8 + 24
    assert not rows(lamps.train.levels) & rows(lamps.eval.levels[8:])
    own = load_levels(RANDOM.replace(num_sets=0))
    assert np.array_equal(own.train.levels, lamps.eval.levels[:8])
    assert (own.num_train, own.num_evaluation) == (8, 0)


def test_the_score_is_the_official_one_up_to_the_first_level_that_is_lost(lamps):
    baselines = [level.baseline for level in lamps.train.game.levels]
    solved, steps = np.ones(24, bool), np.array(baselines + [1] * 16)
    assert lamps.scores(solved, steps) == {"game_score": 100}
    solved[2] = False
    (score,) = lamps.scores(solved, 2 * steps).values()
    assert score == game_score(baselines, [2 * one for one in baselines], 2) > 0


@pytest.mark.parametrize("task", [0, 13])
def test_an_episode_plays_a_level_of_the_task_that_is_drawn_and_the_next_one_follows(lamps, task):
    params = dataclasses.replace(lamps.train.params(), weights=jnp.zeros(16).at[task].set(1.0))
    env = AutoReset(GameEnvironment(lamps.train.game))
    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), 32), params)
    assert set(np.asarray(states.set_index).tolist()) == {task, task + 16, task + 32}
    for number in range(1, RANDOM.max_steps + 1):
        states, seen, _, done, info = jax.vmap(env.step, (0, None, None))(states, 26, params)  # no action of the game
        assert done.all() == info["truncated"].all() == (number == RANDOM.max_steps)
    assert not states.step_count.any()
    assert set(np.asarray(info["task_index"]).tolist()) == {task}
    assert np.array_equal(seen, env.observe(states, params))
    assert not info["success"].any()


def test_a_policy_clicks_on_cells_of_the_level_alone(lamps):
    policy = GamePolicy.create(jax.random.key(0), lamps.train.game, NETWORK)
    env = GameEnvironment(lamps.train.game)
    cells = env.cells(env.game.board(0))  # 3x3 of 4x5
    drawn = policy.sample(jax.random.key(1), jnp.broadcast_to(cells, (256, *cells.shape)))
    actions = policy.to_action(drawn.choice)
    _, exists = jax.vmap(env.decode, (0, None))(actions, env.game.board(0).inside)
    assert exists.all()
    assert len(set(actions.tolist())) == 9
    told = policy.evaluate(jnp.broadcast_to(cells, (256, *cells.shape)), drawn.choice)
    assert jnp.allclose(told.log_prob, drawn.log_prob, atol=1e-6)
    assert jnp.allclose(jnp.exp(drawn.log_prob), 1 / 9, atol=0.02)


def test_what_is_beside_a_level_says_where_it_ends_and_the_player_is_in_the_middle():
    game = jaxarc.games.game("ice")
    policy = GamePolicy.create(jax.random.key(0), game, NETWORK)
    env = GameEnvironment(game)
    board = env.game.board(0)
    cells = env.cells(board)
    # The same picture elsewhere on the array is the same level.
    moved = jnp.roll(cells, (1, 2), (0, 1))
    one, other = policy.evaluate(jnp.stack([cells, moved]), jnp.zeros(2, jnp.int32)).value
    assert jnp.allclose(one, other, atol=1e-6)
    away = dataclasses.replace(board, layers={**board.layers, "player": board["player"] << 1})
    assert not jnp.allclose(policy.value(env.cells(away)[None])[0], one, atol=1e-6)


@pytest.fixture
def corridor(monkeypatch):
    """A game that is learned in seconds: walk to the goal, in levels of one row."""
    levels = [Level(2, "P.G"), Level(3, "G..P"), Level(4, "P...G")]
    game = dataclasses.replace(jaxarc.games.game("fog"), levels=levels)
    monkeypatch.setattr(game_levels, "game", lambda name: game)
    return game


def test_an_agent_learns_a_game_and_plays_it_by_frames_for_the_score_that_was_measured(corridor):
    experiment = read_experiment([
        "experiment=games_ice", "game.name=fog", "game.max_steps=8", "agent.num_envs=32",
        "agent.num_minibatches=4", "agent.rollout_steps=8", "training.total_steps=20000",
        "training.updates_per_report=80", "schedule.learning_rate=3e-3", "schedule.final_learning_rate=3e-3",
    ])  # fmt: skip
    levels = load_levels(experiment.game)
    with jax.numpy_dtype_promotion("standard"):  # optax
        result = train(experiment, levels)
    before, after = result.reports[0], result.reports[-1]
    assert before.game_score < after.game_score == 100
    assert (after.train_solve_rate, after.evaluation_solve_rate, after.score) == (1, None, 1)
    policy = jax.tree.map(lambda leaf: leaf[0], result.state.learner.policy)
    env = GameEnvironment(corridor)
    played = GameAgent(policy, 8).play(OwnFrames(env, env.make_params()))
    assert (played.score, played.won, played.actions) == (100, True, (2, 3, 4))
    recorded = record_levels(policy, levels.eval)
    assert [len(level.actions) for level in recorded] == [2, 3, 4]
    assert all(level.completed and len(level.cells) == len(level.actions) + 1 for level in recorded)
    assert recorded[1].actions == ["left"] * 3


def test_an_agent_resets_a_level_that_it_cannot_complete_until_its_actions_are_spent():
    env, params = jaxarc.games.make("ice")
    agent = GameAgent(GamePolicy.create(jax.random.key(0), env.game, NETWORK), 4)
    played = agent.play(OwnFrames(env, params), max_actions=13)
    assert played.levels_completed < 8
    assert played.actions[played.levels_completed] == 13
    with pytest.raises(GameError, match=r"'ice'.*'lamps'"):
        agent.play(OwnFrames(*jaxarc.games.make("lamps")))


def test_a_run_is_trained_resumed_replayed_and_loaded(tmp_path, capsys):
    short = ["agent.num_envs=8", "agent.num_minibatches=2", "game.num_sets=2", "game.num_unseen=1", "game.max_steps=4"]
    small = [*short, "training.updates_per_report=1", "training.total_steps=128", f"logging.run_root={tmp_path}"]

    def run(*arguments):
        with pytest.raises(SystemExit) as caught, jax.numpy_dtype_promotion("standard"):  # optax
            main([str(one) for one in arguments])
        printed = capsys.readouterr()
        assert caught.value.code == 0, printed.err
        return printed.out

    assert "8 random levels" in run("train", "experiment=games_flood", *small)
    (folder,) = tmp_path.iterdir()
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["game_score"] is not None
    assert len((folder / "measured.jsonl").read_text().splitlines()) == 16
    assert (folder / "learning_curve.png").exists()
    assert "is finished" in run("train", "--resume", folder)
    page = tmp_path / "game.html"
    assert "official score" in run("replay", folder, "-o", page)
    assert b"flood" in page.read_bytes()
    assert load_game_agent(folder).policy.game.name == "flood"
    with pytest.raises(CheckpointError, match="load_game_agent"):
        load_agent(folder)
    with pytest.raises(CheckpointError, match="load_agent"):
        load_game_agent(locate_run(Path("ladder_l2_small")))
