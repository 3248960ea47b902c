"""The bridge to ARC-AGI-3: our games for arcengine and its arcade, and their games as frames and numbers."""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from played_again import assert_plays_again

import jaxarc.games
from jaxarc.agents import GameAgent
from jaxarc.agents.games.game_policy import GamePolicy
from jaxarc.config import NetworkConfig
from jaxarc.games import GameError, GameParams
from jaxarc.games.explorer import explore
from jaxarc.games.frames import OwnFrames, to_number
from jaxarc.games.recordings import read_recording
from jaxarc.games.scoring import game_score

arcengine = pytest.importorskip("arcengine", reason="nox -s games installs arcengine, which needs Python 3.12")
arc_agi = pytest.importorskip("arc_agi")

from jaxarc.adapters import GymnasiumGame  # noqa: E402
from jaxarc.games.bridge import ArcadeFrames, open_environment, write_environments  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
from games.record_twins import TWINS, levels_of, solutions_of  # noqa: E402
from games.streams import stream  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("name", TWINS)
def test_our_game_answers_perform_action_as_its_twin_does(name):
    import arcengine_twins

    game = jaxarc.games.game(name)
    levels = levels_of(game)
    twin, ours = arcengine_twins.TWINS[name](levels), jaxarc.games.as_arcengine(name)
    actions = stream(3, [level["rows"] for level in levels], sorted(game.actions), solutions_of(name))
    for _ in range(250):
        number, x, y = next(actions)
        told = arcengine.ActionInput(
            id=arcengine.GameAction.from_id(number), data={"x": x, "y": y} if number == 6 else {}
        )
        one, other = (each.perform_action(told) for each in (twin, ours))
        assert other.model_dump(exclude={"game_id"}) == one.model_dump(exclude={"game_id"})


def test_an_agent_plays_random_levels_by_perform_action():
    env, _ = jaxarc.games.make("lamps")
    params = env.random_params(jax.random.key(0), 3)
    one, other = (jaxarc.games.as_arcengine("lamps", seed, params) for seed in (0, 1))
    assert not np.array_equal(one.picture, other.picture)


def test_a_click_needs_a_place():
    game = jaxarc.games.as_arcengine("lamps")
    game.perform_action(arcengine.ActionInput(id=arcengine.GameAction.RESET))
    click = lambda **data: game.perform_action(
        arcengine.ActionInput(id=arcengine.GameAction.ACTION6, data=data), raw=True
    )
    for wrong in ({"x": 3}, {"x": 3, "y": 2.5}):
        with pytest.raises(GameError, match="a click's y is a whole number"):
            click(**wrong)
    before = game.picture
    click(x=10**30, y=-(10**30))  # beside the level, as arcengine takes it
    np.testing.assert_array_equal(game.picture, before)
    assert click(x=np.int64(3), y=np.uint8(3)).levels_completed == 0


def test_a_game_takes_no_params_of_another_and_no_half_seed():
    with pytest.raises(GameError, match="'order'"):
        jaxarc.games.as_arcengine("order", 0, jaxarc.games.make("plates")[1])
    with pytest.raises(GameError, match="seed"):
        jaxarc.games.as_arcengine("order", 1.5)


@pytest.fixture
def folder(tmp_path):
    write_environments(tmp_path / "environments", ["ice", "lamps"])
    return tmp_path / "environments"


def test_the_arcade_makes_scores_and_records_our_games(folder, tmp_path):
    arcade = arc_agi.Arcade(
        operation_mode=arc_agi.OperationMode.OFFLINE,
        environments_dir=str(folder),
        recordings_dir=str(tmp_path / "recordings"),
    )
    assert sorted(info.game_id for info in arcade.get_environments()) == ["ice", "lamps"]
    game = ArcadeFrames(arcade.make("ice", save_recording=True))
    ours = OwnFrames(*jaxarc.games.make("ice"))
    solution = [number for level in solutions_of("ice")[:2] for number, _, _ in level]
    # A level reset in between, which the official score counts, and actions that the game does not have.
    for number in [0, 4, 0, 5, *solution[:3], 7, *solution[3:]]:
        seen, expected = game.send(number), ours.send(number)
        assert len(seen.frames) == len(expected.frames)
        assert all(map(np.array_equal, seen.frames, expected.frames))
        assert seen[1:] == expected[1:]
    card = arcade.get_scorecard()
    assert game.spent == ours.spent
    assert card.score == pytest.approx(game.score)
    assert card.score == pytest.approx(game_score(game.baselines, game.spent, 2))
    (path,) = (tmp_path / "recordings").rglob("*.jsonl")
    recording = read_recording(path)
    assert [step.action for step in recording.steps[1:]] == [0, 4, 0, 5, *solution[:3], 7, *solution[3:]]


def test_a_recording_of_the_arcade_replays_in_our_engine(folder, tmp_path):
    arcade = arc_agi.Arcade(
        operation_mode=arc_agi.OperationMode.OFFLINE,
        environments_dir=str(folder),
        recordings_dir=str(tmp_path / "recordings"),
    )
    wrapper = arcade.make("lamps", save_recording=True)
    for action, x, y in [(6, 10, 30), (0, 0, 0), (6, 40, 60), (1, 0, 0)]:
        wrapper.step(arcengine.GameAction.from_id(action), {"x": x, "y": y} if action == 6 else {})
    (path,) = (tmp_path / "recordings").rglob("*.jsonl")
    assert_plays_again(read_recording(path), OwnFrames(*jaxarc.games.make("lamps")))


def test_a_game_of_one_s_own_file_goes_over_the_bridge(tmp_path, monkeypatch):
    monkeypatch.setattr(jaxarc.games.game_names, "_registered", {})
    code = "import dataclasses, jaxarc.games\nfog = jaxarc.games.game('fog')\n"
    code += "THIEF = dataclasses.replace(fog, name='thief', levels=fog.levels[:2])"
    (tmp_path / "own.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    write_environments("environments", ["own.py:thief"])
    monkeypatch.chdir(tmp_path.parent)
    game = open_environment("thief", tmp_path / "environments")
    game.reset()
    for number, x, y in solutions_of("fog")[0]:
        seen = game.send(number, x, y)
    assert (seen.levels_completed, seen.win_levels, game.score) == (1, 2, pytest.approx(100 / 3))
    assert jaxarc.games.as_arcengine(f"{tmp_path / 'own.py'}:THIEF").game_id == "thief"


def test_an_environment_of_a_folder_is_a_gymnasium_environment(folder):
    from gymnasium.utils.env_checker import check_env

    env = GymnasiumGame(open_environment("lamps", folder), render_mode="rgb_array")
    check_env(env, skip_render_check=True)
    observation, info = env.reset()
    assert (observation.shape, info["levels_completed"], info["win_levels"]) == ((64, 64), 0, 8)
    assert info["action_mask"].sum() == 64 * 64
    solved = 0.0
    for number, x, y in solutions_of("lamps")[0]:
        observation, reward, terminated, _, info = env.step(to_number(number, x, y))
        solved += reward
    assert (solved, terminated, info["levels_completed"], info["score"]) == (1, False, 1, pytest.approx(100 / 36))
    assert env.render().shape == (512, 512, 3)
    _, info = env.reset(options={"level": True})
    assert info["levels_completed"] == 0  # nothing was done in the second level: RESET begins the whole game
    with pytest.raises(ValueError, match="'pair'"):
        env.reset(options={"pair": 1})
    with pytest.raises(GameError, match="4102"):
        env.step(4102)


def test_the_explorer_plays_through_the_bridge(folder):
    found = explore(open_environment("ice", folder), 40)
    assert found == explore(OwnFrames(*jaxarc.games.make("ice")), 40)
    assert found.levels_completed > 0


def test_a_trained_policy_plays_through_the_bridge_as_here(folder):
    env, params = jaxarc.games.make("lamps")
    policy = GamePolicy.create(jax.random.key(0), env.game, NetworkConfig(kind="residual_cnn", hidden_size=4))
    agent = GameAgent(policy, 5)
    through = agent.play(open_environment("lamps", folder), 40)
    assert through == agent.play(OwnFrames(env, params), 40)
    baselines = [level.baseline for level in env.game.levels]
    assert through == agent.play(ArcadeFrames(jaxarc.games.as_arcengine("lamps"), baselines), 40)


def test_a_folder_without_games_and_a_game_that_is_not_there_are_told(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "metadata.json").write_text("{}")
    for place in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(GameError, match="no games"):
            open_environment("ice", place)
    with pytest.raises(GameError, match=r"'ls20'.*ice, lamps"):
        open_environment("ls20", folder)
    with pytest.raises(GameError, match="no such game"):
        ArcadeFrames(None)


def test_a_class_that_fails_is_told(folder):
    about = json.loads((folder / "ice" / "metadata.json").read_text())
    (folder / "ice" / "metadata.json").write_text(json.dumps(about | {"class_name": "Snow"}))
    game = open_environment("ice", folder)
    with pytest.raises(GameError, match="answered nothing"):
        game.reset()


def test_params_of_several_sets_are_drawn_by_the_seed():
    env, params = jaxarc.games.make("order")
    sets = GameParams(jnp.concatenate([params.levels, params.levels[:, ::-1]]), params.max_steps)
    one, other = (jaxarc.games.as_arcengine("order", seed, sets) for seed in (0, 1))
    assert one.current_level.grid_size == (5, 5)
    assert other.current_level.grid_size == (9, 8)
    assert env.game.levels[-1].rows[0] == "23....###"
