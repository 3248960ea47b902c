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
from jaxarc.agents import read_metrics
from jaxarc.files import write_whole
from jaxarc.games.explorer import explore
from jaxarc.games.frames import OwnFrames
from jaxarc.games.game_speed import measure_speed
from jaxarc.games.level_solver import solve
from jaxarc.runs import RunFolder
from jaxarc.runs.folder import read_table

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "games.json"
EXPLORER_ACTIONS = 500  # in one level
MECHANICS = {
    "bridges": "moves and clicks, collecting, spending",
    "crates": "pushing, undo",
    "fire": "automaton, timer",
    "flood": "clicks, graph, budget",
    "fog": "fog, maze",
    "gravity": "gravity, act",
    "ice": "sliding",
    "keys": "keys and doors",
    "lamps": "clicks, toggle",
    "mirrors": "rays, pushing, toggle",
    "order": "collecting in order",
    "paint": "template, act",
    "path": "no revisiting, undo",
    "patrol": "enemies, act",
    "pipes": "pipes and graph, clicks",
    "plates": "plates and gates, pushing",
    "portals": "teleports",
    "shifts": "template, sliding tiles, clicks",
    "torus": "torus, collecting",
    "twins": "several avatars",
}


def measure(name: str, python: str | None) -> dict:
    env, params = jaxarc.games.make(name)
    solved = [solve(env, words).actions for words in params.levels[0]]
    found = explore(OwnFrames(env, params), EXPLORER_ACTIONS)
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
    """Return the game that a run learned, and how its last agent played it: each level once, up to the first lost."""
    folder = RunFolder(Path(run))
    name = json.loads(folder.config.read_text(encoding="utf-8"))["game"]["name"]
    last = read_metrics(folder.metrics)[-1]
    own = [row["solved"] for row in read_table(folder.measured)[0] if row["task_id"].startswith("level/")]
    return name, {
        "ppo_score": round(last.game_score, 1),
        "ppo_levels": [*own, False].index(False),
        "ppo_steps": last.environment_steps,
        "ppo_unseen": None if last.evaluation_solve_rate is None else round(100 * last.evaluation_solve_rate, 1),
    }


def _agent(row: dict) -> str:
    """Say what the agent of a game is, its score, and the levels that it completes."""
    if "ppo_score" not in row:
        return f"explorer {row['explorer_score']:.1f}, {row['explorer_levels']}"
    unseen = "" if row["ppo_unseen"] is None else f"; unseen {row['ppo_unseen']:.1f} %"
    return f"PPO {row['ppo_score']:.1f}, {row['ppo_levels']}{unseen}"


def table(rows: list[dict]) -> str:
    lines = [
        "| Game | Mechanics | Levels | Solver's actions | Actions/s | arcengine's | Agent: score, levels |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        levels = f"{len(row['actions'])}{' +' if row['random_levels'] else ''}"
        solver = " ".join(map(str, row["actions"]))
        speed = f"{row['actions_per_second'] / 1e6:.2f} M"
        other = f"{row['arcengine_per_second'] / 1e3:.1f} k" if "arcengine_per_second" in row else ""
        lines.append(
            f"| {row['game']} | {MECHANICS[row['game']]} | {levels} | {solver} | {speed} | {other} | {_agent(row)} |"
        )
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
