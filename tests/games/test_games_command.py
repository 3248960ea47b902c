"""``jaxarc games``: what it prints, and that a wrong baseline is found."""

import dataclasses
import importlib.util
import json
from pathlib import Path

import pytest
from run_command import run_command

import jaxarc.games
from jaxarc.games import Level

ROOT = Path(__file__).parents[2]


def test_the_list_names_every_game():
    printed = run_command("games", "list", "--json")
    assert printed.exit_code == 0
    rows = json.loads(printed.stdout)
    assert [row["game"] for row in rows] == list(jaxarc.games.NAMES)
    assert sum(row["makes_levels"] for row in rows) == sum(
        jaxarc.games.game(name).generate is not None for name in jaxarc.games.NAMES
    )


def test_a_drawn_level_is_as_wide_as_it_is():
    printed = run_command("games", "show", "order", "--level", "0")
    assert printed.exit_code == 0
    assert "5 actions" in printed.stdout


def test_a_level_that_is_not_there_is_refused():
    printed = run_command("games", "show", "order", "--level", "8")
    assert (printed.exit_code, "0 .. 7" in printed.stderr) == (2, True)
    printed = run_command("games", "check", "chess")
    assert (printed.exit_code, "chess" in printed.stderr) == (2, True)


@pytest.mark.parametrize(("baseline", "code"), [(2, 0), (3, 1)])
def test_a_baseline_that_the_search_does_not_find_is_an_error(baseline, code, monkeypatch):
    game = dataclasses.replace(jaxarc.games.game("fog"), levels=[Level(baseline, "P.G")])
    monkeypatch.setattr(jaxarc.games.game_names, "game", lambda name: game)
    printed = run_command("games", "check", "fog", "--json")
    assert printed.exit_code == code
    (result,) = json.loads(printed.stdout)
    assert result["levels"] == [{"level": 0, "baseline": baseline, "actions": 2, "states": 2, "holds": baseline == 2}]


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_table_of_the_page_is_that_of_the_measurements_and_has_all_games():
    script = load_script("make_game_table")
    rows = json.loads(script.TABLE.read_text(encoding="utf-8"))
    assert [row["game"] for row in rows] == list(jaxarc.games.NAMES)
    for row in rows:
        assert row["actions"] == [level.baseline for level in jaxarc.games.game(row["game"]).levels]
        assert row["compile_seconds"] <= 5
    assert script.table(rows) in (ROOT / "docs" / "games.md").read_text(encoding="utf-8")


def test_the_pictures_are_those_of_the_levels():
    script = load_script("make_game_pictures")
    for name in jaxarc.games.NAMES:
        assert (script.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == script.picture(name)
    assert (script.FOLDER.parent / "games.svg").read_text(encoding="utf-8") == script.strip()
