"""Compare this package with JaxARC 1.0.3 and ARCLE 0.2.6, measured in turn. Run by `make benchmark-peers`.

Writes benchmarks/results/peers.json after each contest and draws docs/pictures/speed.svg at the end.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contests import all_contests
from draw_speed import draw_speed
from peer_tasks import write_tasks
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from turns import Contest, Worker, WorkerError, alternate, report

from jaxarc.benchmarks.measure import describe_machine, pinned_to_cores
from jaxarc.files import write_whole

HERE = Path(__file__).resolve().parent
PEERS = HERE / ".venv-peers"
RESULTS = HERE / "results" / "peers.json"
PICTURE = HERE.parent / "docs" / "pictures" / "speed.svg"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    console = Console()
    if options.draw:
        draw_speed(json.loads(options.json.read_text(encoding="utf-8")), PICTURE)
        console.print(f"drawn: {PICTURE.relative_to(HERE.parent)}")
        return 0
    python = PEERS / "bin" / "python"
    if not python.is_file():
        console.print(f"{PEERS.name} is missing; run: make benchmark-peers")
        return 1
    contests = [c for c in all_contests(options.quick) if not options.only or c.contest_id in options.only]
    results: dict[str, Any] = {"benchmark": "peers", "quick": options.quick}
    results["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    workers = _workers(python)
    try:
        with pinned_to_cores(1) as used:  # and the workers, which start inside
            results |= {"hardware": describe_machine(used), "packages": {}, "contests": []}
            _compete(contests, workers, options.rounds, results, None if options.quick else options.json)
    except WorkerError as error:
        console.print(f"[red]{error}[/]")
        return 1
    finally:
        for worker in workers.values():
            worker.close()
    console.print(table(results))
    if not options.quick and not options.only:
        draw_speed(results, PICTURE)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    known = [contest.contest_id for contest in all_contests(quick=False)]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few steps of two contests; nothing is written")
    parser.add_argument("--only", nargs="+", choices=known, metavar="CONTEST", help=f"some of {', '.join(known)}")
    parser.add_argument("--rounds", type=int, default=None, help="samples of each entrant (5; 1 with --quick)")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--draw", action="store_true", help="measure nothing, draw the results again")
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = 1 if options.quick else 5
    if options.rounds < 1:
        parser.error(f"--rounds must be 1 or more, got {options.rounds}")
    return options


def _workers(python: Path) -> dict[str, Worker]:
    folder = PEERS / "tasks"
    write_tasks(folder)
    scripts = {
        "ours": (sys.executable, "worker_ours.py"),
        "jaxarc": (str(python), "worker_jaxarc.py"),
        "arcle": (str(python), "worker_arcle.py"),
    }
    return {name: Worker([interpreter, str(HERE / script)], folder) for name, (interpreter, script) in scripts.items()}


def _compete(
    contests: Sequence[Contest], workers: dict[str, Worker], rounds: int, results: dict[str, Any], path: Path | None
) -> None:
    """Hold the contests one after another; the file grows by each."""
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    console, turns = Console(stderr=True), itertools.count()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task("", total=sum(len(contest.entrants) for contest in contests) * rounds)
        for contest in contests:
            show = lambda name, where=contest.contest_id: progress.update(
                bar, completed=next(turns), description=f"{where}: {name}"
            )
            results["contests"].append(report(contest, alternate(contest, workers, rounds, show)))
            results["packages"] = {name: worker.description for name, worker in workers.items() if worker.description}
            if path is not None:
                write_whole(path, (json.dumps(results, indent=1) + "\n").encode())
            if not console.is_terminal:
                console.print(_line(results["contests"][-1]), highlight=False, soft_wrap=True)


def _line(contest: dict[str, Any]) -> str:
    parts = [f"{entrant['name']} {entrant['median']:,.0f}" for entrant in contest["entrants"]]
    return f"{contest['id']}: {'; '.join(parts)}"


def table(results: dict[str, Any]) -> Table:
    """Show medians and ratios, one line per entrant."""
    shown = Table(title="steps or resets per second, median of turns", caption=results["hardware"])
    shown.add_column("contest", no_wrap=True)
    shown.add_column("who")
    for name in ("median", "min – max", "ratio"):
        shown.add_column(name, justify="right", no_wrap=True)
    for contest in results["contests"]:
        for place, entrant in enumerate(contest["entrants"]):
            ratio = entrant["first_is_faster_by"]
            shown.add_row(
                contest["id"] if place == 0 else "",
                entrant["name"],
                f"{entrant['median']:,.0f}",
                f"{entrant['min']:,.0f} – {entrant['max']:,.0f}",
                "" if ratio is None else f"{ratio['median']:,.1f}x",
                end_section=place == len(contest["entrants"]) - 1,
            )
    return shown


if __name__ == "__main__":
    sys.exit(main())
