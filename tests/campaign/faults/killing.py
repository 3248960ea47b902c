"""One kind of work, killed again and again, and what became of it."""

import collections
import random
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from campaign.faults.victim import Ending, Moment, Work, inspect, live

_CHAIN: Final = {"training": 6}  # kills of one piece of work before it may end; 1 of the others
_TRIES: Final = 10  # that may end before they are killed, beyond three for each kill


@dataclass
class Tally:
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
        self._notes, self.tally = home / "notes", Tally(work.name)
        for number in range(2):  # the first fills caches of compiled programs
            folder = home / f"alone{number}"
            folder.mkdir(parents=True)
            self._alone = live(work, folder, self._notes)
            assert self._alone.code == 0, f"{work.name} fails undisturbed: {self._alone.output}"
        self._expected = inspect(work, folder, self._notes, self._alone.told, is_whole=True)

    def kill(self, kills: int, on_kill: Callable[[], None] = lambda: None) -> Tally:
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

    def _moment(self, share: float) -> Moment:
        """Turn a share of the work into a moment: of its time, or of its file operations."""
        if self._chance.random() < 0.5:
            return Moment(operation=int(share * self._alone.operations))
        return Moment(seconds=share * self._alone.seconds)

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

    def _count(self, moment: Moment, share: float, ending: Ending) -> None:
        self.tally.kills += 1
        self.tally.by_operation += moment.operation is not None
        self.tally.moments[int(10 * share)] += 1
        self.tally.told += len(ending.told)

    def _find(self, finding: str) -> None:
        self.tally.findings.append(finding)
