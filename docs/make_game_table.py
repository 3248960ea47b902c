"""Measure the games, and print the table of ``docs/games.md``.

``python docs/make_game_table.py`` prints the table of ``docs/games.json``. ``--measure`` fills that file anew: it
solves every level, counts actions per second, and lets the explorer play. ``--python PYTHON`` names an interpreter
(3.12 or later) with arcengine, which plays the twins of five games. Run it on a quiet machine; it takes ten minutes,
most of them to compile. ``--run RUN`` takes the result of a run of ``jaxarc train experiment=games_NAME``.
"""

import argparse
import json
import sys
from pathlib import Path

import jax

import jaxarc.games
from jaxarc.agents import load_game_agent, read_metrics
from jaxarc.files import write_whole
from jaxarc.games.explorer import explore
from jaxarc.games.frames import OwnFrames
from jaxarc.games.game import ACTION_NAMES
from jaxarc.games.game_speed import measure_speed
from jaxarc.games.level_solver import solve
from jaxarc.runs import RunFolder

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "games.json"
MAX_ACTIONS = 500  # in one level


def measure(name: str, python: str | None) -> dict:
    env, params = jaxarc.games.make(name)
    solved = [solve(env, words).actions for words in params.levels[0]]
    found = explore(OwnFrames(env, params), MAX_ACTIONS)
    row = {
        "game": name,
        "actions": [None if actions is None else len(actions) for actions in solved],
        "random_levels": env.game.generate is not None,
        **{name: round(value, 1) for name, value in measure_speed(env, params).items()},
        "explorer_score": round(found.score, 1),
        "explorer_levels": found.levels_completed,
    }
    sys.path.insert(0, str(ROOT / "tests" / "games"))
    from record_twins import KEPT, TWINS, play_twin

    if python and name in TWINS:
        solutions = json.loads(KEPT.read_text())[name]["solutions"]
        seconds = play_twin(python, name, solutions, range(1), 2000)["seconds"]
        row["arcengine_per_second"] = round(2000 / seconds)
    return row


def read_run(run: str) -> tuple[str, dict]:
    """Return the game that a run learned, and how its last agent plays it, with as many actions as the explorer has."""
    folder = RunFolder(Path(run))
    last = read_metrics(folder.metrics)[-1]
    agent = load_game_agent(run, checkpoint="last")
    name = agent.policy.game.name
    played = agent.play(OwnFrames(*jaxarc.games.make(name)), MAX_ACTIONS)
    return name, {
        "ppo_score": round(played.score, 1),
        "ppo_levels": played.levels_completed,
        "ppo_steps": last.environment_steps,
        "ppo_unseen": None if last.evaluation_solve_rate is None else round(100 * last.evaluation_solve_rate, 1),
    }


def _agent(row: dict) -> str:
    """Say the score of the explorer and its completed levels, and the same of the agent that learned the game."""
    explorer = f"{row['explorer_score']:.1f}, {row['explorer_levels']}"
    if "ppo_score" not in row:
        return f"{explorer} | "
    unseen = "" if row["ppo_unseen"] is None else f"; {row['ppo_unseen']:.1f} %"
    return f"{explorer} | {row['ppo_score']:.1f}, {row['ppo_levels']}{unseen}"


def table(rows: list[dict]) -> str:
    lines = [
        "| Game | What to do | Fewest actions | Actions/s | Explorer | PPO |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        name = row["game"]
        game = jaxarc.games.game(name)
        actions = ", ".join(ACTION_NAMES[number] for number in game.actions)
        fewest = f"{' '.join(map(str, row['actions']))}{' +' if row['random_levels'] else ''}"
        speed = f"{row['actions_per_second'] / 1e6:.2f} M"
        shown = f"![{name}](images/games/{name}.svg) {name}"
        lines.append(f"| {shown} | {game.about} *({actions})* | {fewest} | {speed} | {_agent(row)} |")
    return "\n".join(lines)


def _write(rows: dict[str, dict]) -> None:
    write_whole(TABLE, (json.dumps([rows[one] for one in sorted(rows)], indent=1) + "\n").encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--python", metavar="PYTHON")
    parser.add_argument("--run", metavar="RUN", action="append", default=[])
    parser.add_argument("games", nargs="*", default=list(jaxarc.games.NAMES))
    told = parser.parse_args()
    rows = {row["game"]: row for row in json.loads(TABLE.read_text())} if TABLE.exists() else {}
    for name in told.games if told.measure else ():
        agent = {field: value for field, value in rows.get(name, {}).items() if field.startswith("ppo")}
        rows[name] = {**measure(name, told.python), **agent}
        _write(rows)
        jax.clear_caches()
    for run in told.run:
        name, played = read_run(run)
        rows[name] |= played
        _write(rows)
    print(table([rows[name] for name in sorted(rows)]))


if __name__ == "__main__":
    main()
