"""Rules drawn at random: programs of one to four words, each with four pairs that it makes; no two do the same.

Inputs are those of given tasks, turned, mirrored and recolored. A rule is kept if its four outputs are grids of several
colors that differ from their inputs and from each other, and no program of one word makes them all, unless it is one.
Two programs are one rule if they do the same on 64 probe grids, whose hash is the rule's name.

Some functions, pairs of functions and arguments may be held out: rules with them are parts of their own, which training
never sees. As no two rules do the same, none of a part does what one of another part does.
"""

import functools
import hashlib
import io
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Bool, Int8, Int16, Int32, Int64, UInt8, UInt64

from jaxarc.errors import UsageError
from jaxarc.files import write_whole
from jaxarc.jobs import Job, JobsError, Processes
from jaxarc.search.graph import StateGraph
from jaxarc.search.images import NUM_COLORS
from jaxarc.search.pieces import ImageLayer
from jaxarc.search.program_layers import Chain
from jaxarc.search.programs import GridProgram, SizeRule
from jaxarc.search.search_library import call
from jaxarc.search.words import FUNCTIONS, LARGEST, Word, vocabulary

T = TypeVar("T")

NUM_PAIRS: Final = 4
_NUM_PROBES: Final = 64
_MOST_WORDS: Final = 4
_BATCH: Final = 1024  # rules that are tried with one key
_BATCHES: Final = 32  # of a job: about half a second
_JOBS: Final = 8  # of each process, until their results are put in order
_SUFFIX: Final = ".npz"  # of a file with the result of a job
_FRESH_SHARE: Final = 0.001  # of the rules that a job tries; with fewer new ones no more are drawn
_SCALES: Final = ((1, 2), (2, 1), (2, 2), (3, 3))
PARTS: Final = ("training", "arguments", "compositions", "words")
_HELD_FUNCTIONS: Final = 3  # of about 50 that take an image
_HELD_PAIRS: Final = 100  # of about 4,000
_HELD_WORDS: Final = 8  # of about 200 whose function has other arguments
_FEWEST_ARGUMENTS: Final = 4  # of a function of which one is held out


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


class HeldOut(NamedTuple):
    """What no rule of the training part has."""

    functions: frozenset[str] = frozenset()
    pairs: frozenset[tuple[str, str]] = frozenset()  # of functions, one right after the other
    words: frozenset[Word] = frozenset()  # functions with arguments; with others they are not held out

    @classmethod
    def choose(cls, seed: int) -> "HeldOut":
        """Choose by a seed, the same everywhere."""
        names = Counter(word.name for word in _words())
        of_images = [name for name in names if FUNCTIONS[name].of_images is not None]
        functions = frozenset(_drawn(seed, of_images, _HELD_FUNCTIONS))
        others = [name for name in names if name not in functions]
        pairs = _drawn(seed, list(itertools.product(others, others)), _HELD_PAIRS)
        some = [word for word in _words() if word.name in others and names[word.name] >= _FEWEST_ARGUMENTS]
        return cls(functions, frozenset(pairs), frozenset(_drawn(seed, some, _HELD_WORDS)))

    def part_of(self, words: Chain) -> str:
        """Return the part of a rule; no name if several kinds of what is held out are in it."""
        names = [word.name for word in words]
        has = {
            "arguments": not self.words.isdisjoint(words),
            "compositions": not self.pairs.isdisjoint(itertools.pairwise(names)),
            "words": not self.functions.isdisjoint(names),
        }
        found = [part for part, is_there in has.items() if is_there]
        return "training" if not found else found[0] if len(found) == 1 else ""


NOTHING: Final = HeldOut()


class DrawnRules(NamedTuple):
    """Rules, and the pairs that they make."""

    hashes: UInt64[np.ndarray, " R"]
    chains: Int16[np.ndarray, "R 5"]  # numbers of up to four words, -1 behind them; whether the answer is placed
    sizes: Int8[np.ndarray, "R 4 2 2"]  # height and width of the input and the output of each pair
    cells: UInt8[np.ndarray, " M"]  # of these grids one after the other

    @property
    def areas(self) -> Int64[np.ndarray, " R"]:
        """How many cells each rule has."""
        return self.sizes.prod(axis=-1, dtype=np.int64).sum(axis=(1, 2))

    def some(self, are_chosen: Bool[np.ndarray, " R"]) -> "DrawnRules":
        """Return some of the rules."""
        cells = self.cells[np.repeat(are_chosen, self.areas)]
        return DrawnRules(self.hashes[are_chosen], self.chains[are_chosen], self.sizes[are_chosen], cells)

    def words(self) -> list[Chain]:
        """Return the words of each rule."""
        words = _words()
        return [tuple(words[number] for number in chain[:-1] if number >= 0) for chain in self.chains.tolist()]

    def programs(self) -> list[str]:
        """Return the text of each rule, of a :class:`~jaxarc.search.GridProgram`."""
        texts = []
        for own, is_placed in zip(self.words(), self.chains[:, -1].tolist(), strict=True):
            size = SizeRule() if is_placed else SizeRule(words=own)
            texts.append(str(GridProgram((ImageLayer(own, is_placed=bool(is_placed)),), size)))
        return texts


def draw_rules(
    scenes: Scenes,
    counts: Mapping[str, int],
    canvas: int,
    seed: int,
    processes: int = 1,
    held_out: HeldOut = NOTHING,
    folder: Path | None = None,
) -> Iterator[dict[str, DrawnRules]]:
    """Yield different rules by their parts, the same for a seed whatever the number of processes.

    Args:
        scenes: inputs with sides up to the canvas.
        counts: how many rules of each of :data:`PARTS`.
        canvas: the largest side of an output, 1..30.
        seed: 0..2**31 - 1.
        processes: that work side by side.
        held_out: what only rules of other parts than the first have.
        folder: of these scenes, this canvas and this seed. Keeps what is drawn; what it has is not drawn again.

    Raises:
        TooFewRulesError: hardly any rule is new. Says how many there are.
        OSError: the folder cannot be written.
        ValueError: an input is larger than the canvas.
        NativeLibraryError: the library of the search is neither installed nor can it be built.
        JobsError: no process comes up.
    """
    if scenes.sizes.max() > canvas:
        raise ValueError(f"an input has a side of {scenes.sizes.max()}, and the canvas is {canvas}; leave it out")
    seen: set[int] = set()
    left = Counter(counts)
    for new in _new_rules((scenes, canvas, seed), seen, processes, folder):
        parts = np.array([held_out.part_of(words) for words in new.words()])
        found = {}
        for part in PARTS:
            is_there = parts == part
            found[part] = new.some(is_there & (np.cumsum(is_there) <= left[part]))
            left[part] -= len(found[part].hashes)
        yield found
        if not any(left.values()):
            return
        if len(new.hashes) < _FRESH_SHARE * _BATCH * _BATCHES:
            missing = ", ".join(f"{count:,} of {part}" for part, count in left.items() if count)
            raise TooFewRulesError(f"after {len(seen):,} rules hardly any is new, {missing} are missing; ask for fewer")


def draw_batches(scenes: Scenes, canvas: int, seed: int, first: int, count: int = 1) -> DrawnRules:
    """Draw and try rules with the keys of some batches; two may do the same."""
    words = _words()
    functions = np.unique([word.name for word in words], return_inverse=True)[1].astype(np.int32)
    graph = StateGraph([], LARGEST, words, 0)
    most = count * _BATCH
    hashes = np.empty(most, np.uint64)
    chains, sizes = np.empty((most, _MOST_WORDS + 1), np.int32), np.empty((most, NUM_PAIRS, 2, 2), np.int32)
    cells = np.empty(sizes.size // 2 * canvas**2, np.uint8)
    found = call(
        *("rules", graph.address, functions, canvas, _NUM_PROBES, len(scenes.members) - 1, *scenes),
        *((seed << 32) + first, count, _BATCH, hashes, chains, sizes, cells),
    )
    drawn = DrawnRules(hashes[:found], chains[:found].astype(np.int16), sizes[:found].astype(np.int8), cells)
    return drawn._replace(cells=cells[: drawn.areas.sum()])


def _draw(scenes: Scenes, canvas: int, seed: int, job: int) -> DrawnRules:
    """Do one job: some batches, and what is different in them."""
    drawn = draw_batches(scenes, canvas, seed, job * _BATCHES, _BATCHES)
    return drawn.some(_are_new(drawn.hashes, set()))


def _are_new(hashes: UInt64[np.ndarray, " R"], seen: set[int]) -> Bool[np.ndarray, " R"]:
    """Say which hashes were not seen, each at its first place, and add them."""
    are_new = np.empty(len(hashes), np.bool_)
    for place, number in enumerate(hashes.tolist()):
        are_new[place] = number not in seen
        seen.add(number)
    return are_new


def _new_rules(
    given: tuple[Scenes, int, int], seen: set[int], processes: int, folder: Path | None
) -> Iterator[DrawnRules]:
    """Yield what each job draws that no job before it drew; what the folder has is read."""
    kept = 0
    while folder is not None and (new := _read(folder / f"{kept}{_SUFFIX}")) is not None:
        seen.update(new.hashes.tolist())
        yield new
        kept += 1
    for job, drawn in enumerate(_in_order(given, kept, processes), start=kept):
        new = drawn.some(_are_new(drawn.hashes, seen))
        if folder is not None:
            packed = io.BytesIO()
            np.savez(packed, **new._asdict())
            write_whole(folder / f"{job}{_SUFFIX}", packed.getvalue(), flush=False)
        yield new


def _read(path: Path) -> DrawnRules | None:
    """Read what a job drew; None where there is no file, or one that a crash of the machine has cut."""
    with suppress(FileNotFoundError, BadZipFile, EOFError, KeyError, ValueError), path.open("rb") as file:
        arrays = np.load(file, allow_pickle=False)
        return DrawnRules(*(arrays[name] for name in DrawnRules._fields))
    return None


def _in_order(given: tuple[Scenes, int, int], first: int, processes: int) -> Iterator[DrawnRules]:
    """Yield what jobs draw, from one on, without end, in their order."""
    if processes == 1:
        yield from (_draw(*given, job) for job in itertools.count(first))
    with Processes(processes) as workers:
        for begin in itertools.count(first, processes * _JOBS):
            done: dict[int, DrawnRules] = {}
            following = 0
            for outcome in workers.run([Job(_draw, (*given, begin + place)) for place in range(processes * _JOBS)]):
                if outcome.fault is not None:
                    raise JobsError(f"rules are not drawn: {outcome.fault}")
                done[outcome.job] = outcome.value
                while following in done:
                    yield done.pop(following)
                    following += 1


@functools.cache
def _words() -> list[Word]:
    """Return all words with all arguments that a search tries, those of a function together."""
    return sorted(vocabulary(range(NUM_COLORS), range(NUM_COLORS), _SCALES, ()), key=lambda word: word.name)


def _drawn(seed: int, things: Iterable[T], count: int) -> list[T]:
    """Return some things, in an order that a seed and their texts decide."""
    return sorted(things, key=lambda one: hashlib.sha256(f"{seed} {one}".encode()).digest())[:count]
