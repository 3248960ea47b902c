"""Kill processes with SIGKILL, again and again, and compare what they leave with what an undisturbed one leaves."""

import collections
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from archive_server import Answer, ArchiveServer
from killable_training import prepare, start
from rich.progress import track

from campaign.faults.killed_work import (
    CheckpointSaving,
    Download,
    EvaluateCommand,
    PlayCommand,
    TraceRecording,
    TrainCommand,
    training_overrides,
    write_tasks,
)
from campaign.faults.victim import KillTime, Work, inspect, live
from campaign.summary import finish, parser_of
from jaxarc.datasets import load_tasks
from jaxarc.datasets.task_set import digest_of

SHARES: Final = {  # of 200 kills
    "download": 28,
    "traces record": 52,
    "checkpoint saving": 38,
    "training": 48,
    "play": 12,
    "evaluate": 22,
}
_CHAIN: Final = {"training": 6}  # kills of one piece of work before it may end; 1 of the others
_TRIES: Final = 10  # that may end before they are killed, beyond three for each kill


class Killing:
    """Kills a piece of work at random moments, and lets it end."""

    def __init__(self, work: Work, home: Path, chance: random.Random):
        """Do the work undisturbed, to know what it gives and how long it takes.

        Args:
            work: what is killed.
            home: an empty folder.
            chance: draws the moments.
        """
        self._work, self._home, self._chance, self._notes = work, home, chance, home / "notes"
        self.kills, self.findings = 0, list[str]()
        for number in range(2):  # the first fills caches of compiled programs
            folder = home / f"alone{number}"
            folder.mkdir(parents=True)
            self._alone = live(work, folder, self._notes)
            assert self._alone.code == 0, f"{work.name} fails undisturbed: {self._alone.output}"
        self._expected = inspect(work, folder, self._notes, self._alone.told, is_whole=True)

    def kill(self, kills: int) -> list[str]:
        """Kill so often, compare each time what there is in the end, and return what is wrong with it."""
        trials = 0
        while self.kills < kills:
            trials += 1
            assert trials <= 3 * kills + _TRIES, f"{self._work.name} always ends before it is killed"
            folder, told = self._home / f"killed{trials}", list[str]()
            folder.mkdir()
            for _ in range(min(_CHAIN.get(self._work.name, 1), kills - self.kills)):
                if not self._kill_once(folder, told):
                    break
            self._finish(folder, told)
            shutil.rmtree(folder)
        return self.findings

    def _kill_once(self, folder: Path, told: list[str]) -> bool:
        """Kill once, at a share of the time or of the file operations; return whether to go on with what is left."""
        share = self._chance.random()
        moment = KillTime(seconds=share * self._alone.seconds)
        if self._chance.random() < 0.5:
            moment = KillTime(operation=int(share * self._alone.operations))
        ending = live(self._work, folder, self._notes, moment)
        told += ending.told
        if ending.code == -signal.SIGKILL:
            self.kills += 1
            return self._look(f"killed {moment}", folder, told) is not None
        if ending.code != 0:
            self.findings.append(f"to be killed {moment}, it ended with {ending.code}: {ending.output[-2000:]}")
        elif len(told) == len(ending.told):  # it did all of it, and the machine is quicker now
            self._alone = self._alone._replace(seconds=min(self._alone.seconds, ending.seconds))
        return False

    def _finish(self, folder: Path, told: list[str]) -> None:
        last = live(self._work, folder, self._notes)
        if last.code != 0:
            self.findings.append(f"what was killed ends with {last.code}: {last.output[-2000:]}")
        elif (result := self._look("at the end", folder, told + last.told, is_whole=True)) is not None:
            for name in {**result, **self._expected}:
                here, wanted = result.get(name), self._expected.get(name)
                if here != wanted:
                    self.findings.append(f"{name} differs: {str(here)[:300]}, undisturbed {str(wanted)[:300]}")

    def _look(self, when: str, folder: Path, told: list[str], *, is_whole: bool = False) -> dict[str, object] | None:
        try:
            return inspect(self._work, folder, self._notes, told, is_whole=is_whole)
        except AssertionError as error:
            self.findings.append(f"{when}: {error}")
            return None


@contextmanager
def workshop(home: Path) -> Iterator[Callable[[str], Work]]:
    """Prepare what all kinds of work need in an empty folder, and give a function that makes one by its name."""
    tasks, tiny = write_tasks(home / "tasks", 8), write_tasks(home / "tiny", 3, side=2)
    with ArchiveServer(zip_of(tasks)) as server:
        server.answers = _Slow()
        kinds: dict[str, Callable[[], Work]] = {
            "download": lambda: Download(server.url, digest_of(load_tasks(str(tasks)))),
            "traces record": lambda: TraceRecording(tasks),
            "checkpoint saving": CheckpointSaving,
            "training": lambda: _training(home, tiny),
            "play": lambda: PlayCommand(tasks, home / "compiled"),
            "evaluate": lambda: EvaluateCommand(tasks, home / "compiled"),
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


def main() -> int:
    """Run the campaign."""
    parser = parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=200, help="in all (200)")
    parser.add_argument("--only", nargs="+", choices=list(SHARES), default=list(SHARES), help="some kinds")
    options, began = parser.parse_args(), time.monotonic()
    counts = {name: max(1, options.kills * SHARES[name] // sum(map(SHARES.get, options.only))) for name in options.only}
    findings = []
    with tempfile.TemporaryDirectory(prefix="jaxarc-kills-", ignore_cleanup_errors=True) as home:
        (Path(home) / "shared").mkdir()
        with workshop(Path(home) / "shared") as make:
            for name in track(counts, "killing"):
                killing = Killing(make(name), Path(home) / name, random.Random(f"{options.seed} {name}"))
                findings += [f"{name}: {found}" for found in killing.kill(counts[name])]
    return finish(options, began, {"kills": counts}, findings)


if __name__ == "__main__":
    # For the processes that are killed: to compile quickly.
    os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    sys.exit(main())
