"""Play the same small games in this package, JaxARC 1.0.3 and ARCLE 0.2.6, and say where a rule holds.

Run by `make compare-rules`. Writes benchmarks/results/rules.json and the table on docs/other_packages.md.
"""

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cases import TASKS
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from jaxarc.files import write_whole

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "rules.json"
PAGE = HERE.parents[1] / "docs" / "other_packages.md"
PEERS = HERE.parent / ".venv-peers" / "bin" / "python"
PLAYERS = {
    "jaxarc": (sys.executable, "player_jaxarc_here"),
    "JaxARC 1.0.3": (str(PEERS), "player_jaxarc_1_0_3"),
    "ARCLE 0.2.6": (str(PEERS), "player_arcle"),
}
BEGIN, END = "<!-- rules: begin -->\n", "<!-- rules: end -->\n"
_MARKS = {True: "yes", False: "**no**", None: "–"}


def main() -> int:
    console = Console()
    if not PEERS.is_file():
        console.print(f"{PEERS.parents[1].name} is missing; run: make compare-rules")
        return 1
    results: dict[str, Any] = {"date": datetime.now(UTC).date().isoformat(), "players": {}}
    with tempfile.TemporaryDirectory() as folder:
        write_tasks(Path(folder))
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            for name, (python, module) in PLAYERS.items():
                progress.add_task(f"{name} plays")
                results["players"][name] = _play(python, module, folder)
    write_whole(RESULTS, (json.dumps(results, indent=1) + "\n").encode())
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    write_whole(PAGE, (before + BEGIN + markdown(results) + END + rest.split(END)[1]).encode())
    console.print(_table(results))
    return 0


def write_tasks(folder: Path) -> None:
    """Write the tasks of the cases as files of ARC JSON."""
    for name, pairs in TASKS.items():
        train = [{"input": source, "output": target} for source, target in pairs]
        text = json.dumps({"train": train, "test": train[:1]})
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def markdown(results: dict[str, Any]) -> str:
    """Draw the results as the table on the page."""
    names = list(results["players"])
    lines = [
        f"Played on {results['date']}.",
        "",
        "| Rule | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for row in zip(*(player["seen"] for player in results["players"].values()), strict=True):
        cells = [row[0]["rule"]]
        cells += [_MARKS[seen["holds"]] + ("" if seen["holds"] else f", {seen['seen']}") for seen in row]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _play(python: str, module: str, folder: str) -> dict[str, Any]:
    command = [python, str(HERE / "play_cases.py"), module, folder]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"}, cwd=folder
    )
    if done.returncode:
        raise SystemExit(f"{module} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _table(results: dict[str, Any]) -> Table:
    table = Table("rule", *results["players"])
    for row in zip(*(player["seen"] for player in results["players"].values()), strict=True):
        marks = ["–" if seen["holds"] is None else "[green]yes[/]" if seen["holds"] else "[red]no[/]" for seen in row]
        table.add_row(row[0]["rule"], *marks)
    return table


if __name__ == "__main__":
    sys.exit(main())
