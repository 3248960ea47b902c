"""A game of one's own, as ``file.py:NAME`` or registered, wherever a game's name goes."""

import dataclasses
import json
import random
import sys

import jax
import pytest
from run_command import run_command

import jaxarc.games
from jaxarc.agents import Experiment
from jaxarc.cli.settings import with_own_parts
from jaxarc.config import ConfigValidationError, GameConfig
from jaxarc.games import GameError, all_names
from jaxarc.games.game_names import full_name, load_game, register_game

CODE = """
import beside_the_game
from jaxarc.games import MOVES, Color, GridGame, Level, LevelEvent, bits

def rule(board, action):
    player = bits.walk(board["player"], board.solid(), action.number)
    return board.set(player=player), LevelEvent(won=bits.some(player & board["goal"]))

GAME = GridGame(
    name="thief", about="Reach the goal.", layers={"goal": Color.GREEN, "player": Color.YELLOW},
    letters={"P": ["player"], "G": ["goal"]}, actions=MOVES, rule=rule, levels=[Level(2, "P.G"), Level(1, "PG")],
)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(jaxarc.games.game_names, "_registered", {})
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside_the_game.py").write_text("")
    (tmp_path / "random.py").write_text(CODE)
    return tmp_path / "random.py"


@pytest.mark.parametrize("name", ["random.py:GAME", "random.py:thief", "random.py", "games/random.py:thief"])
def test_a_game_of_a_file_is_made_by_name(file, name):
    env, params = jaxarc.games.make(name)
    assert env.name == "games/thief"
    state, _ = env.reset(jax.random.key(0), params)
    assert env.step(state, 4, params)[0].action_count == 1
    assert jaxarc.games.make("thief")[0].game is env.game is load_game(str(file))
    assert all_names()[-1] == "thief"
    assert full_name("random.py") == f"{file}:thief"
    assert sys.modules["random"] is random  # which the file's name does not hide


def test_a_file_that_changes_is_run_again(file):
    before = load_game("random.py")
    file.write_text(CODE.replace("Reach", "Find"))
    assert (before.about, load_game("random.py").about) == ("Reach the goal.", "Find the goal.")


@pytest.mark.parametrize(
    ("code", "name", "quoted"),
    [
        (CODE, "none.py:thief", "no file 'none.py'"),
        (CODE, "random.py:crook", "no game 'crook'.*random.py:GAME"),
        ("x = 3", "random.py:x", "no game 'x'.*GridGame"),
        ("x = 3", "random.py", "no game"),
        ("x = 3\nraise RuntimeError('no\\nway')", "random.py:x", r"random.py, line 2 fails: RuntimeError: no\\nway"),
        ("import sys\nsys.exit(3)", "random.py:x", "sys.exit"),
        ("x = (", "random.py:x", "SyntaxError"),
        ("import nothing_of_this_name", "random.py:x", "line 1 fails: ModuleNotFoundError"),
        (CODE + "OTHER = GridGame('one', '', {}, {}, [1], rule, [Level(1, '.')])", "random.py", "several games"),
        (CODE.replace("thief", "ice"), "random.py:GAME", "'ice' is that of a game of this package"),
    ],
)
def test_what_is_no_game_is_one_line(file, code, name, quoted):
    file.write_text(code)
    with pytest.raises(GameError, match=quoted) as caught:
        jaxarc.games.make(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "quoted"),
    [
        (('"thief"', '"../thief"'), "'../thief'"),
        (('levels=[Level(2, "P.G"), Level(1, "PG")]', "levels=[]"), "no level"),
        (("actions=MOVES", "actions=[4, 8]"), "1 .. 7"),
        (("actions=MOVES", "actions=['up']"), "1 .. 7"),
        (('"goal": Color.GREEN', '"goal": 16'), "0 .. 15"),
        (("rule=rule", "rule=rule, needed=['wall']"), "no layer 'wall'"),
        (("rule=rule", "rule=rule, counters={'goal': 1}"), "'goal' is a layer and a counter"),
    ],
)
def test_a_fact_that_cannot_be_is_named(file, change, quoted):
    file.write_text(CODE.replace(*change))
    with pytest.raises(GameError, match=quoted):
        load_game("random.py")


def test_a_registered_game_has_a_name_of_its_own(file):
    game = load_game("random.py")
    register_game(game)
    other = dataclasses.replace(game, about="Another.")
    with pytest.raises(GameError, match="replace=True"):
        register_game(other)
    register_game(other, replace=True)
    assert jaxarc.games.game("games/thief") is other
    with pytest.raises(GameError, match="GridGame"):
        register_game("thief")


def test_a_config_runs_no_file(file, monkeypatch):
    file.write_text("raise SystemExit('it ran')")
    with pytest.raises(ConfigValidationError, match=r"no game 'random.py:GAME'.*--game"):
        Experiment(game=GameConfig(name="random.py:GAME"))


def test_the_command_line_loads_the_file_and_the_config_has_the_name(file):
    assert with_own_parts("game.name=random.py:GAME") == "game.name=thief"
    assert with_own_parts("+game.name='random.py,ice'") == "+game.name=thief,ice"
    assert with_own_parts("task.train_dataset=random.py") == "task.train_dataset=random.py"
    assert jaxarc.games.game("thief").name == "thief"


def test_games_lists_shows_and_checks_it(file):
    listed = run_command("games", "list", "random.py:thief", "--json")
    assert (listed.exit_code, json.loads(listed.stdout)[0]["game"]) == (0, "thief")
    shown = run_command("games", "show", "random.py:thief")
    assert (shown.exit_code, "P player, G goal" in shown.stdout, "\nP.G\n" in shown.stdout) == (0, True, True)
    checked = run_command("games", "check", "random.py", "--json")
    assert (checked.exit_code, json.loads(checked.stdout)[0]["game"]) == (0, "thief")
    refused = run_command("games", "check", "random.py:crook")
    assert (refused.exit_code, refused.stderr.count("\n"), "crook" in refused.stderr) == (2, 1, True)
