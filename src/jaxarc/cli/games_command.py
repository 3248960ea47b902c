"""``jaxarc games``: list the games, draw one, and prove that their levels can be solved."""

from typing import Annotated, Any, Final

import jax
import numpy as np
import typer
from rich.console import Console
from rich.text import Text

import jaxarc.games
from jaxarc.cli.console import JsonOption, number_table, print_error, print_json, print_line
from jaxarc.errors import visible
from jaxarc.games import GameEnvironment
from jaxarc.games.game import ACTION_NAMES, HEX_COLORS
from jaxarc.games.game_speed import measure_speed
from jaxarc.games.level_solver import DEFAULT_MAX_STATES, replay, solve

_NAME: Final = "Name of a game, or of one of your own: file.py:NAME."

app = typer.Typer(help="List, draw and check the games.", no_args_is_help=True, rich_markup_mode="rich")


@app.command("list")
def list_games(
    names: Annotated[list[str] | None, typer.Argument(help=f"{_NAME} By default all.", metavar="GAME")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the games: their levels, actions and what they are about.

    Examples:
        jaxarc games list
        jaxarc games list own.py:mower
    """
    rows = [_facts(jaxarc.games.load_game(name)) for name in names or jaxarc.games.all_names()]
    if as_json:
        print_json(rows)
        return
    table = number_table("game", "about", "actions", "levels", "largest", "baselines", num_words=3)
    for row in rows:
        largest = "x".join(map(str, row["shape"]))
        baselines = f"{min(row['baselines'])}-{max(row['baselines'])}"
        random_levels = "+" if row["makes_levels"] else ""
        about, actions = row["about"], " ".join(row["actions"])
        table.add_row(row["game"], about, actions, f"{len(row['baselines'])}{random_levels}", largest, baselines)
    Console().print(table)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help=_NAME, metavar="GAME")],
    level: Annotated[int | None, typer.Option(min=0, help="Only this level.")] = None,
) -> None:
    """Draw the levels of a game in the terminal; without colors as maps of letters.

    Examples:
        jaxarc games show crates
        jaxarc games show ice --level 7
        jaxarc games show own.py:mower
    """
    env = GameEnvironment(jaxarc.games.load_game(name))
    num_levels = len(env.game.levels)
    if level is not None and level >= num_levels:
        raise typer.BadParameter(f"game {name!r} has the levels 0 .. {num_levels - 1}, got {level}", param_hint="level")
    console = Console(highlight=False)
    console.print(visible(f"{env.game.name}: {env.game.about}"), markup=False, style="bold")
    in_color = console.color_system is not None and not console.no_color
    if not in_color:
        letters = [f"{letter} {' and '.join(names)}" for letter, names in env.game.letters.items()]
        print_line(console, ", ".join([*letters, ". nothing"]))
    for index in range(num_levels) if level is None else (level,):
        budget = env.game.levels[index].budget
        limit = f", lost after {budget}" if budget else ""
        console.print(f"\nlevel {index}: {env.game.levels[index].baseline} actions{limit}", markup=False)
        if in_color:
            console.print(_picture(np.asarray(env.cells(env.game.board(index)))))
        else:
            for row in env.game.levels[index].rows:
                print_line(console, row)


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help=f"{_NAME} By default all.", metavar="GAME")] = None,
    max_states: Annotated[int, typer.Option(min=1, help="States of a search.")] = DEFAULT_MAX_STATES,
    speed: Annotated[bool, typer.Option("--speed", help="Also measure actions per second.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Prove that every level can be solved, and that its baseline is the fewest actions; exit code 1 if one is not.

    Examples:
        jaxarc games check ice
        jaxarc games check --speed
    """
    results = []
    for one in jaxarc.games.all_names() if name is None else (name,):
        env, params = jaxarc.games.make(one)
        levels = [_check_level(env, params, index, max_states) for index in range(len(env.game.levels))]
        results.append({"game": env.game.name, "levels": levels, **(measure_speed(env, params) if speed else {})})
        if not as_json:
            _print_check(results[-1])
        jax.clear_caches()
    if as_json:
        print_json(results)
    wrong = [f"{one['game']} {level['level']}" for one in results for level in one["levels"] if not level["holds"]]
    if wrong:
        print_error(f"the baseline is not what the search finds: {', '.join(wrong)}")
        raise typer.Exit(1)


def _facts(game: jaxarc.games.GridGame) -> dict[str, Any]:
    return {
        "game": game.name,
        "about": game.about,
        "actions": [ACTION_NAMES[number] for number in sorted(game.actions)],
        "shape": list(game.shape),
        "baselines": [level.baseline for level in game.levels],
        "makes_levels": game.generate is not None,
    }


def _check_level(env: GameEnvironment, params: Any, index: int, max_states: int) -> dict[str, Any]:
    found = solve(env, params.levels[0, index], max_states)
    actions = found.actions
    baseline = env.game.levels[index].baseline
    solved = actions is not None and replay(env, params, index, actions)
    return {
        "level": index,
        "baseline": baseline,
        "actions": None if actions is None else len(actions),
        "states": found.num_states,
        "holds": solved and len(actions or ()) == baseline,
    }


def _print_check(result: dict[str, Any]) -> None:
    found = " ".join(str(level["actions"]) for level in result["levels"])
    states = sum(level["states"] for level in result["levels"])
    holds = all(level["holds"] for level in result["levels"])
    line = f"{result['game']:10} {'ok' if holds else 'WRONG':5}  actions {found}  ({states:,} states)"
    if "actions_per_second" in result:
        line += f"  {result['actions_per_second'] / 1e6:.2f} M actions/s, compiled in {result['compile_seconds']:.1f} s"
    Console(highlight=False, soft_wrap=True).print(line, markup=False)


def _picture(cells: np.ndarray) -> Text:
    text = Text()
    for row in cells:
        for cell in row:
            text.append("  ", "" if cell < 0 else f"on {HEX_COLORS[cell]}")
        text.append("\n")
    return text
