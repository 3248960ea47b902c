"""Rules drawn at random: programs of one to four words, each with four pairs that it makes, and no function twice.

Inputs are those of given tasks, turned, mirrored and recolored. A rule is kept if its four outputs are grids of several
colors that differ from their inputs and from each other, and no program of one word makes them all, unless it is one.
Two programs are one rule if they do the same on 64 probe grids, whose hash is the rule's name.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int32, Int64, UInt8, UInt64

from jaxarc.errors import UsageError
from jaxarc.jobs import Job, JobsError, Processes
from jaxarc.search.graph import StateGraph
from jaxarc.search.images import NUM_COLORS
from jaxarc.search.pieces import ImageLayer
from jaxarc.search.programs import GridProgram, SizeRule
from jaxarc.search.search_library import call
from jaxarc.search.words import LARGEST, Word, vocabulary

NUM_PAIRS: Final = 4
_NUM_PROBES: Final = 64
_MOST_WORDS: Final = 4
_BATCH: Final = 1024  # rules that are tried with one graph, whose images then leave
_BATCHES: Final = 8  # of a job: about a second
_JOBS: Final = 8  # of each process, until their results are put in order
_FRESH_SHARE: Final = 0.001  # of the rules that a job tries; with fewer new ones no more are drawn
_SCALES: Final = ((1, 2), (2, 1), (2, 2), (3, 3))


class TooFewRulesError(UsageError, ValueError):
    """There are fewer different rules than asked for, or no input from which a rule could start."""


class Scenes(NamedTuple):
    """Inputs of tasks, one after the other."""

    members: Int32[np.ndarray, " T+1"]  # task t has the grids members[t] .. members[t + 1] - 1
    sizes: Int32[np.ndarray, "N 2"]
    first: Int64[np.ndarray, " N"]  # the first cell of each grid
    cells: UInt8[np.ndarray, " M"]

    @classmethod
    def of(cls, tasks: Sequence[Sequence[np.ndarray]]) -> "Scenes":
        """Lay out the grids of each task.

        Raises:
            TooFewRulesError: no task has a grid.
        """
        tasks = [grids for grids in tasks if grids]
        if not tasks:
            raise TooFewRulesError("no input fits the canvas; make it larger")
        grids = [grid for of_task in tasks for grid in of_task]
        areas = [grid.size for grid in grids]
        return cls(
            members=np.cumsum([0, *map(len, tasks)], dtype=np.int32),
            sizes=np.array([grid.shape for grid in grids], np.int32),
            first=np.cumsum([0, *areas[:-1]], dtype=np.int64),
            cells=np.concatenate(grids, axis=None).astype(np.uint8),
        )


class DrawnRules(NamedTuple):
    """Rules, and the pairs that they make."""

    hashes: UInt64[np.ndarray, " R"]
    programs: list[str]  # R texts of :class:`~jaxarc.search.GridProgram`
    sizes: Int32[np.ndarray, "R 4 2 2"]  # height and width of the input and the output of each pair
    cells: list[UInt8[np.ndarray, " M"]]  # R rows: the cells of these grids one after the other


def draw_rules(scenes: Scenes, count: int, canvas: int, seed: int, processes: int = 1) -> Iterator[DrawnRules]:
    """Yield different rules, ``count`` in all, the same for a seed whatever the number of processes.

    Args:
        scenes: inputs with sides up to the canvas.
        count: at least 1.
        canvas: the largest side of an output, 1..30.
        seed: 0..2**31 - 1.
        processes: that work side by side.

    Raises:
        TooFewRulesError: after ``count`` or fewer rules hardly any is new. Says how many there are.
        NativeLibraryError: the library of the search is neither installed nor can it be built.
        JobsError: no process comes up.
    """
    known: set[int] = set()
    for drawn in _in_order(scenes, canvas, seed, processes):
        fresh = []
        for place, name in enumerate(drawn.hashes.tolist()):
            if name not in known and len(known) < count:
                known.add(name)
                fresh.append(place)
        yield _some(drawn, fresh)
        if len(known) == count:
            return
        if len(fresh) < _FRESH_SHARE * _BATCH * _BATCHES:
            raise TooFewRulesError(f"after {len(known):,} of {count:,} rules hardly any is new; ask for fewer")


def draw_batch(scenes: Scenes, canvas: int, seed: int, batch: int) -> DrawnRules:
    """Draw and try one batch of rules; a function may come twice."""
    words = _words()
    functions = np.unique([word.name for word in words], return_inverse=True)[1].astype(np.int32)
    graph = StateGraph([], LARGEST, words, 0, 0)
    numbers, hashes = np.empty(_BATCH, np.int64), np.empty(_BATCH, np.uint64)
    chains, sizes = np.empty((_BATCH, _MOST_WORDS + 1), np.int32), np.empty((_BATCH, NUM_PAIRS, 2, 2), np.int32)
    cells = np.empty(sizes.size // 2 * canvas**2, np.uint8)
    num_tasks = len(scenes.members) - 1
    count = call(
        *("rules", graph.address, functions, canvas, _NUM_PROBES, num_tasks, *scenes, (seed << 32) + batch, _BATCH),
        *(numbers, hashes, chains, sizes, cells),
    )
    areas = sizes[:count].prod(-1).sum((1, 2))
    programs = [_text(chain, bool(is_placed)) for *chain, is_placed in chains[:count].tolist()]
    return DrawnRules(hashes[:count], programs, sizes[:count], np.split(cells, np.cumsum(areas))[:-1])


def _draw(scenes: Scenes, canvas: int, seed: int, job: int) -> DrawnRules:
    """Do one job: some batches."""
    return _joined([draw_batch(scenes, canvas, seed, job * _BATCHES + batch) for batch in range(_BATCHES)])


def _in_order(scenes: Scenes, canvas: int, seed: int, processes: int) -> Iterator[DrawnRules]:
    """Yield what jobs draw, without end, in their order."""
    if processes == 1:
        yield from (_draw(scenes, canvas, seed, job) for job in itertools.count())
    with Processes(processes) as workers:
        for first in itertools.count(step=processes * _JOBS):
            jobs = [Job(_draw, (scenes, canvas, seed, first + place)) for place in range(processes * _JOBS)]
            done: dict[int, DrawnRules] = {}
            following = 0
            for outcome in workers.run(jobs):
                if outcome.fault is not None:
                    raise JobsError(f"rules are not drawn: {outcome.fault}")
                done[outcome.job] = outcome.value
                while following in done:
                    yield done.pop(following)
                    following += 1


def _some(rules: DrawnRules, places: list[int]) -> DrawnRules:
    return DrawnRules(
        hashes=rules.hashes[places],
        programs=[rules.programs[place] for place in places],
        sizes=rules.sizes[places],
        cells=[rules.cells[place] for place in places],
    )


def _joined(parts: list[DrawnRules]) -> DrawnRules:
    return DrawnRules(
        hashes=np.concatenate([part.hashes for part in parts]),
        programs=[text for part in parts for text in part.programs],
        sizes=np.concatenate([part.sizes for part in parts]),
        cells=[row for part in parts for row in part.cells],
    )


@functools.cache
def _words() -> list[Word]:
    """Return all words with all arguments that a search tries, those of a function together."""
    return sorted(vocabulary(range(NUM_COLORS), range(NUM_COLORS), _SCALES, ()), key=lambda word: word.name)


def _text(numbers: list[int], is_placed: bool) -> str:
    words = tuple(_words()[number] for number in numbers if number >= 0)
    size = SizeRule() if is_placed else SizeRule(words=words)
    return str(GridProgram((ImageLayer(words, is_placed=is_placed),), size))
