"""Search the answers of many test inputs, in several processes or on several machines, within one budget of time.

A budget is spent in rounds: a short one for all test inputs, then one with all that is left for those without a sure
program, and so on, as some of these need less than they get. A search goes on where its last round ended, as far as
memory holds it.
"""

import contextlib
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from jaxarc.config import SearchConfig
from jaxarc.config.agent_training import MAX_COST, MAX_STATES
from jaxarc.jobs import Job, Outcome, Place, Processes, host_cores, host_memory, run
from jaxarc.search.search_library import search_library
from jaxarc.search.solve import Pair, SearchResult, TaskSearch, nothing_found, solve

_FIRST_SHARE: Final = 0.25  # of an equal share of the time, for each test input
_FIRST_SECONDS: Final = 0.3  # in which a first look is over; the first round is no shorter, if an equal share is not
_LEAST_SHARE: Final = 0.2  # of an equal share; with less, there is no further round
_HELD_SHARE: Final = 0.5  # of the free memory of the machine, for searches that are held until their next round
_SPARE_SHARE: Final = 0.25  # of it, which is left free: other programs, such as a second search, take some meanwhile


class Question(NamedTuple):
    """A test input with the demonstrations of its task; the answer is not among it."""

    task_id: str
    test_index: int
    train: tuple[Pair, ...]
    test_input: np.ndarray


def search_all(
    questions: Sequence[Question],
    config: SearchConfig,
    processes: int = 1,
    minutes: float | None = None,
) -> Iterator[tuple[Question, SearchResult]]:
    """Yield each question with its answers, as soon as it is done.

    A question whose process dies is asked again. If that one dies too, the answers are those of an earlier round, or
    there is none, and the ``fault`` of the result says so.

    Args:
        questions: of any tasks; with ``minutes`` their order has no meaning.
        config: limits of each question.
        processes: that work side by side; 1 works in this one.
        minutes: for all questions, each of which gets an equal share or more, unless it needs less; while time is left,
            costlier programs are tried where none is sure.

    Raises:
        ValueError: there is no process.
        NativeLibraryError: the library of the search is neither installed nor can it be built.
        JobsError: no process comes up.
    """
    if processes < 1:
        raise ValueError(f"processes must be at least 1, got {processes}")
    search_library()  # built, if need be, before the clock and the processes start
    with _places(processes) as do:
        if minutes is not None:
            config = replace(config, max_cost=MAX_COST, max_states=MAX_STATES)  # so that time and memory alone end it
            yield from _in_rounds(questions, config, processes, 60 * minutes, do)
            return
        for done in do([Job(solve, (one.train, one.test_input, config)) for one in questions]):
            question = questions[done.job]
            yield question, done.value or nothing_found(question.train, question.test_input, done.fault)


def search_at(
    questions: Sequence[Question],
    config: SearchConfig,
    place: Place,
    minutes: float | None,
    folder: Path,
    about: str,
) -> Iterator[tuple[Question, dict[str, Any]]]:
    """Yield each question with :meth:`SearchResult.as_dict`, as soon as it is done at a place.

    Without ``minutes`` the folder keeps each result, so that the same call goes on after a kill. With them, each of the
    shards on other machines gets a part of the questions, which their content decides, and searches it for this time;
    the folder keeps whole parts.

    Args:
        questions: of any tasks.
        config: limits of each question.
        place: where.
        minutes: for all questions, or for those of a shard, see :func:`search_all`.
        folder: of the results.
        about: the name of the tasks.

    Raises:
        NativeLibraryError: as :func:`search_all`.
        JobsError, OSError: as :func:`jaxarc.jobs.run`.
    """
    if minutes is not None and place.engine == "local":
        for question, result in search_all(questions, config, place.shards, minutes):
            yield question, result.as_dict()
        return
    search_library()  # built, if need be, before the clock and the processes start
    settings = {"the tasks": about, **asdict(config), "minutes": minutes}
    if minutes is None:
        parts = [[one] for one in questions]
    else:
        settings["shards"] = place.shards
        dealt = sorted(questions, key=_digest)
        parts = [dealt[start :: place.shards] for start in range(min(place.shards, len(dealt)))]
    jobs = [Job(_search_part, ([one[2:] for one in part], config, minutes, place.processes)) for part in parts]
    for done in run(jobs, place, folder=folder, about=settings):
        part = parts[done.job]
        found = done.value or [nothing_found(one.train, one.test_input, done.fault).as_dict() for one in part]
        yield from zip(part, found, strict=True)


def _search_part(
    part: Sequence[tuple[tuple[Pair, ...], np.ndarray]],
    config: SearchConfig,
    minutes: float | None,
    processes: int | None,
) -> list[dict[str, Any]]:
    if minutes is None:
        return [solve(train, test_input, config).as_dict() for train, test_input in part]
    questions = [Question("", index, *one) for index, one in enumerate(part)]
    found = search_all(questions, config, processes or host_cores(), minutes)
    return [result.as_dict() for _, result in sorted(found, key=lambda both: both[0].test_index)]


_Do: TypeAlias = Callable[[Sequence[Job]], Iterator[Outcome]]


@contextlib.contextmanager
def _places(processes: int) -> Iterator[_Do]:
    """Do jobs in this process, or in others; what is held in this one is let go at last."""
    if processes > 1:
        with Processes(processes) as workers:
            yield workers.run
        return
    try:
        yield lambda jobs: (Outcome(index, one.function(*one.arguments), None, 0) for index, one in enumerate(jobs))
    finally:
        _held.clear()


@dataclass(eq=False)
class _Asked:
    """A question, and how far its search is."""

    question: Question
    key: str
    result: SearchResult | None = None
    is_held: bool = False  # so that it goes on from there
    is_over: bool = False
    home: int | None = None  # the process that holds it

    @property
    def seconds(self) -> float:
        return 0.0 if self.result is None else self.result.seconds

    @property
    def lost(self) -> float:
        """The seconds that it has to search again."""
        return 0.0 if self.is_held else self.seconds


class _Turn(NamedTuple):
    """The time of a question in a round: less than planned where what came before took longer."""

    seconds: float
    lost: float  # which it gets too if nothing is held
    planned: float  # of this question and those after it in the round
    processes: int
    deadline: float  # of ``time.monotonic``, which is that of all processes

    def seconds_now(self, is_held: bool) -> float:
        left = max(self.deadline - time.monotonic(), 0.0)
        wanted = self.seconds + (0.0 if is_held else self.lost)
        return min(wanted * min(left * self.processes / max(self.planned, 1e-9), 1.0), left)


def _in_rounds(
    questions: Sequence[Question], config: SearchConfig, processes: int, seconds: float, do: _Do
) -> Iterator[tuple[Question, SearchResult]]:
    deadline = time.monotonic() + seconds
    equal = seconds * processes / max(len(questions), 1)
    asked = [_Asked(one, f"{_digest(one)} {index}") for index, one in enumerate(questions)]
    left = sorted(asked, key=lambda one: one.key)  # whatever their order in a file
    free = host_memory() or 0
    room = max(int(_HELD_SHARE * free) // processes, config.megabytes * 10**6)
    spare = int(_SPARE_SHARE * free)
    first = max(_FIRST_SHARE * equal, min(_FIRST_SECONDS, equal))
    for most in chain([first], repeat(math.inf)):
        left, share = _shares(left, (deadline - time.monotonic()) * processes, _LEAST_SHARE * equal)
        share = min(share, most)
        if not left:
            break
        plans = [share + one.lost for one in left]
        turns = [_Turn(share, one.seconds, sum(plans[place:]), processes, deadline) for place, one in enumerate(left)]
        jobs = [
            Job(_go_on, (one.key, one.question, config, turn, room, spare), home=one.home)
            for one, turn in zip(left, turns, strict=True)
        ]
        for done in do(jobs):
            one = left[done.job]
            if done.fault is not None:
                one.result = one.result or nothing_found(one.question.train, one.question.test_input, done.fault)
                one.is_over = True
            else:
                one.result, one.is_over, one.is_held = done.value
                one.home = done.worker if one.is_held else None
            if one.is_over and one.result is not None:
                yield one.question, one.result
        left = [one for one in left if not one.is_over]
    for one in asked:
        if not one.is_over and one.result is not None:
            yield one.question, one.result


def _shares(left: list[_Asked], seconds: float, least: float) -> tuple[list[_Asked], float]:
    """Return for which questions there is time in a further round, and how much for each beside what it has lost."""
    for some in (left, [one for one in left if one.is_held]):
        share = (seconds - sum(one.lost for one in some)) / max(len(some), 1)
        if share > least or (some and some[0].result is None):
            return some, max(share, 0.0)
    return [], 0.0


_held: dict[str, TaskSearch] = {}  # of this process


def _go_on(
    key: str, question: Question, config: SearchConfig, turn: _Turn, room: int, spare: int
) -> tuple[SearchResult, bool, bool]:
    """Search on; return what is found, whether more time would change nothing, and whether the search is held.

    A process holds searches as far as they take ``room`` bytes, and while the machine has ``spare`` bytes free.
    """
    search = _held.pop(key, None)
    seconds = turn.seconds_now(is_held=search is not None)
    search = search or TaskSearch(question.train, question.test_input, config)
    result = search.go_on(min(seconds, config.seconds - search.seconds))
    is_over = search.is_done or search.seconds >= config.seconds
    num_bytes = sum(one.num_bytes for one in _held.values()) + search.num_bytes
    free = host_memory()
    if not is_over and num_bytes <= room and (free is None or free >= spare):
        _held[key] = search
    return result, is_over, key in _held


def _digest(question: Question) -> str:
    grids = [*chain.from_iterable(question.train), question.test_input]
    return hashlib.sha256(repr([np.asarray(grid).tolist() for grid in grids]).encode()).hexdigest()
