"""Kill processes with SIGKILL, again and again, and compare what they leave with what an undisturbed one leaves.

``python -m campaign.faults.kills --help``, with this folder's parent on the path; ``make kills`` does that.
"""

import argparse
import collections
import io
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

from archive_server import Answer, ArchiveServer
from killable_training import prepare, start
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from campaign.faults.killed_commands import Evaluation, Play, Replay, Training, training_overrides
from campaign.faults.killed_files import (
    CheckpointSaving,
    Download,
    HierarchicalCache,
    TraceRecording,
    write_tasks,
)
from campaign.faults.killing import Killing, Tally
from campaign.faults.victim import Work
from jaxarc.datasets import load_tasks
from jaxarc.datasets.task_set import digest_of

SHARES: Final = {  # of 200 kills
    "download": 24,
    "traces record": 48,
    "checkpoint saving": 35,
    "hierarchical cache": 14,
    "training": 45,
    "play": 12,
    "evaluate": 12,
    "replay": 10,
}


@contextmanager
def workshop(home: Path) -> Iterator[Callable[[str], Work]]:
    """Prepare what all kinds of work need, and give a function that makes one by its name.

    Args:
        home: an empty folder.
    """
    tasks, tiny = write_tasks(home / "tasks", 8), write_tasks(home / "tiny", 3, side=2)
    with ArchiveServer(zip_of(tasks)) as server:
        server.answers = _Slow()
        kinds: dict[str, Callable[[], Work]] = {
            "download": lambda: Download(server.url, digest_of(load_tasks(str(tasks)))),
            "traces record": lambda: TraceRecording(tasks),
            "checkpoint saving": CheckpointSaving,
            "hierarchical cache": lambda: HierarchicalCache(tasks),
            "training": lambda: _training(home, tiny),
            "play": lambda: Play(tasks, home / "compiled"),
            "evaluate": lambda: Evaluation(tasks, home / "compiled"),
            "replay": lambda: Replay(tasks, traces_of(home, tasks), home / "compiled"),
        }
        yield lambda name: kinds[name]()


def _training(home: Path, tasks: Path) -> Training:
    """Compile what is trained."""
    process = start(prepare, home / "compiled.pickle", training_overrides(tasks))
    process.join()
    assert process.exitcode == 0, "what is trained does not compile"
    return Training(tasks, home / "compiled.pickle")


class _Slow(collections.deque):
    """Answers that take their time, without end."""

    def __bool__(self) -> bool:
        return True

    def popleft(self) -> Answer:
        return Answer(pause=0.002)


def zip_of(tasks: Path) -> bytes:
    """Return the tasks and 100 kB of noise beside them, so that there is something to cut."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for file in sorted(tasks.iterdir()):
            archive.write(file, file.name)
        archive.writestr("noise.bin", bytes(range(256)) * 400)
    return made.getvalue()


def traces_of(home: Path, tasks: Path) -> Path:
    """Write actions for some pairs, as a recording."""
    lines = [
        {"task_id": file.stem, "pair_index": 0, "actions": [[2, 0, 0, 0, 0], [1, 0, 1, 0, 1], [34, 0, 0, 0, 0]]}
        for file in sorted(tasks.iterdir())
    ]
    path = home / "traces.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def main(arguments: list[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="in all (200)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (0)")
    parser.add_argument("--only", action="append", choices=list(SHARES), help="one kind; may be given several times")
    parser.add_argument("--json", type=Path, help="write the summary here")
    chosen = parser.parse_args(arguments)
    names, console, begun = chosen.only or list(SHARES), Console(), time.monotonic()
    counts = shared(chosen.kills, names)
    home, tallies = Path(tempfile.mkdtemp(prefix="jaxarc-kills-")), []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with workshop(home / "shared") as make, Progress(*columns, console=Console(stderr=True)) as progress:
            bar = progress.add_task("kills", total=sum(counts.values()))
            for name in names:
                progress.update(bar, description=name)
                killing = Killing(make(name), home / name, random.Random(f"{chosen.seed} {name}"))
                tallies.append(killing.tally)
                killing.kill(counts[name], lambda: progress.advance(bar))
                print(f"{name}: {killing.tally}", file=sys.stderr)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return _report(tallies, chosen, time.monotonic() - begun, console)


def shared(kills: int, names: list[str]) -> dict[str, int]:
    """Divide the kills among the kinds; each gets at least one."""
    total = sum(SHARES[name] for name in names)
    counts = {name: max(1, kills * SHARES[name] // total) for name in names}
    counts[names[0]] += max(0, kills - sum(counts.values()))
    return counts


def _report(tallies: list[Tally], chosen: argparse.Namespace, seconds: float, console: Console) -> int:
    table = Table(
        "killed", "kills", "before a file\noperation", "by tenth of the work", "saved things\ntold of", "findings"
    )
    for tally in tallies:
        tenths = " ".join(str(tally.moments[tenth]) for tenth in range(10))
        table.add_row(
            tally.name, str(tally.kills), str(tally.by_operation), tenths, str(tally.told), str(len(tally.findings))
        )
    console.print(table)
    findings = [f"{tally.name}: {finding}" for tally in tallies for finding in tally.findings]
    for finding in findings:
        console.print(f"FINDING {finding}", markup=False, highlight=False, soft_wrap=True)
    summary = {
        "kills": sum(tally.kills for tally in tallies),
        "findings": findings,
        "seconds": round(seconds, 1),
        "seed": chosen.seed,
        "kinds": {tally.name: {"kills": tally.kills, "told": tally.told} for tally in tallies},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("jax", "numpy")},
        },
    }
    counts = f"{summary['kills']} kills, {len(findings)} findings"
    console.print(
        f"{counts}, {seconds:.0f} s, seed {chosen.seed}, {summary['versions']}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if chosen.json:
        chosen.json.write_text(json.dumps(summary, indent=1) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    # For the processes that are killed: to compile quickly, as in the tests.
    os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    os.environ["XLA_FLAGS"] = "--xla_cpu_use_fusion_emitters=false"
    sys.exit(main())
