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
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

from archive_server import Answer, ArchiveServer
from killable_training import prepare, start
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from campaign.faults.killed_work import (
    CheckpointSaving,
    Download,
    EvaluateCommand,
    HierarchicalCache,
    PlayCommand,
    ReplayCommand,
    TraceRecording,
    TrainCommand,
    training_overrides,
    write_tasks,
)
from campaign.faults.victim import Ending, KillTime, Work, inspect, live
from jaxarc.datasets import load_tasks
from jaxarc.datasets.task_set import digest_of

_CHAIN: Final = {"training": 6}  # kills of one piece of work before it may end; 1 of the others
_TRIES: Final = 10  # that may end before they are killed, beyond three for each kill


@dataclass
class KillCounts:
    """What became of one kind of work."""

    name: str
    kills: int = 0
    by_operation: int = 0  # of them right before a file operation
    moments: collections.Counter = field(default_factory=collections.Counter)  # by tenth of the work
    told: int = 0  # things that a killed process said to be saved
    findings: list[str] = field(default_factory=list)


class Killing:
    """Kills a piece of work at random moments, and lets it end."""

    def __init__(self, work: Work, home: Path, chance: random.Random):
        """Do the work undisturbed, to know what it gives and how long it takes.

        Args:
            work: what is killed.
            home: an empty folder.
            chance: draws the moments.
        """
        self._work, self._home, self._chance = work, home, chance
        self._notes, self.tally = home / "notes", KillCounts(work.name)
        for number in range(2):  # the first fills caches of compiled programs
            folder = home / f"alone{number}"
            folder.mkdir(parents=True)
            self._alone = live(work, folder, self._notes)
            assert self._alone.code == 0, f"{work.name} fails undisturbed: {self._alone.output}"
        self._expected = inspect(work, folder, self._notes, self._alone.told, is_whole=True)

    def kill(self, kills: int, on_kill: Callable[[], None] = lambda: None) -> KillCounts:
        """Kill so often, and compare each time what there is in the end.

        Args:
            kills: how often.
            on_kill: called after each.
        """
        trials = 0
        while self.tally.kills < kills:
            trials += 1
            assert trials <= 3 * kills + _TRIES, f"{self._work.name} always ends before it is killed"
            folder, told = self._home / f"killed{trials}", list[str]()
            folder.mkdir()
            for _ in range(min(_CHAIN.get(self._work.name, 1), kills - self.tally.kills)):
                if not self._kill_once(folder, told):
                    break
                on_kill()
            self._finish(folder, told)
            shutil.rmtree(folder)
        return self.tally

    def _kill_once(self, folder: Path, told: list[str]) -> bool:
        """Kill once, look at what is left, and return whether to go on with it."""
        share = self._chance.random()
        moment = self._moment(share)
        ending = live(self._work, folder, self._notes, moment)
        told += ending.told
        if ending.code == -signal.SIGKILL:
            self._count(moment, share, ending)
            return self._look(f"killed {moment}", folder, told) is not None
        if ending.code != 0:
            self._find(f"to be killed {moment}, it ended with {ending.code}: {ending.output[-2000:]}")
        elif not told or len(told) == len(ending.told):  # it did all of it, and the machine is quicker now
            self._alone = self._alone._replace(seconds=min(self._alone.seconds, ending.seconds))
        return False

    def _moment(self, share: float) -> KillTime:
        """Turn a share of the work into a moment: of its time, or of its file operations."""
        if self._chance.random() < 0.5:
            return KillTime(operation=int(share * self._alone.operations))
        return KillTime(seconds=share * self._alone.seconds)

    def _finish(self, folder: Path, told: list[str]) -> None:
        last = live(self._work, folder, self._notes)
        if last.code != 0:
            self._find(f"what was killed ends with {last.code}: {last.output[-2000:]}")
        elif (result := self._look("at the end", folder, told + last.told, is_whole=True)) is not None:
            names = [name for name in {**result, **self._expected} if result.get(name) != self._expected.get(name)]
            for name in names[:1]:
                told_of, wanted = (str(one.get(name))[:300] for one in (result, self._expected))
                self._find(f"{len(names)} parts of the result differ, first {name}: {told_of}, undisturbed {wanted}")

    def _look(self, when: str, folder: Path, told: list[str], *, is_whole: bool = False) -> dict[str, object] | None:
        try:
            return inspect(self._work, folder, self._notes, told, is_whole=is_whole)
        except AssertionError as error:
            self._find(f"{when}: {error}")
            return None

    def _count(self, moment: KillTime, share: float, ending: Ending) -> None:
        self.tally.kills += 1
        self.tally.by_operation += moment.operation is not None
        self.tally.moments[int(10 * share)] += 1
        self.tally.told += len(ending.told)

    def _find(self, finding: str) -> None:
        self.tally.findings.append(finding)


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
            "play": lambda: PlayCommand(tasks, home / "compiled"),
            "evaluate": lambda: EvaluateCommand(tasks, home / "compiled"),
            "replay": lambda: ReplayCommand(tasks, traces_of(home, tasks), home / "compiled"),
        }
        yield lambda name: kinds[name]()


def _training(home: Path, tasks: Path) -> TrainCommand:
    """Compile what is trained."""
    process = start(prepare, home / "compiled.pickle", training_overrides(tasks))
    process.join()
    assert process.exitcode == 0, "what is trained does not compile"
    return TrainCommand(tasks, home / "compiled.pickle")


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


def _report(tallies: list[KillCounts], chosen: argparse.Namespace, seconds: float, console: Console) -> int:
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
