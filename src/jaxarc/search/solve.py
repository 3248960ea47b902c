"""Solve a task: search under each naming of its colors, stack pieces, rank the answers, keep those that differ."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations, islice, takewhile
from operator import methodcaller
from typing import Any, Final

import numpy as np
from jaxtyping import Int8

from jaxarc.config import SearchConfig
from jaxarc.search.descriptions import Described, describe
from jaxarc.search.graph import StateGraph
from jaxarc.search.growth import learn_growth
from jaxarc.search.guidance import Guide, expected_words, guide_of, likely_words
from jaxarc.search.object_rules import learn_object_rules
from jaxarc.search.orientations import ORIENTATIONS, turned, turned_back
from jaxarc.search.pieces import NO_STATE, Layer, OutputCells, Pieces, Stack
from jaxarc.search.products import find_products
from jaxarc.search.programs import (
    RECOLORS,
    GridProgram,
    LayerProgram,
    ProductLayer,
    ProgramError,
    ProgramLayer,
    RuleLayer,
    SizeRule,
    recoloring,
)
from jaxarc.search.search_library import search_library
from jaxarc.search.tables import learn_rules
from jaxarc.search.templates import learn_templates
from jaxarc.search.words import LARGEST, vocabulary
from jaxarc.tasks.raw_task import check_grid, check_pairs

Pair = tuple[np.ndarray, np.ndarray]
_STARTS: Final = 24  # first pieces from which stacks grow
_STARTS_WITHOUT: Final = 6  # of those with demonstrations left out
_SOME: Final = 30  # sets of demonstrations that are explained alone, if nothing explains all
_LAYERS: Final = 6
_TWICE: Final = 2  # answers that fit not all, from which the search begins again
_FIRST_COST: Final = 2  # after which it is first looked whether an answer is there
_SECOND_COST: Final = 4  # after which all namings are tried before anything dearer
_SURE_COST: Final = 16  # a program that costs more and fits is often wrong: other names are tried, too
_TURNED_COST: Final = 6  # of a program that turns each grid by its colors
_RANKED_COST: Final = 3  # at most, with colors named by rank
_STRAY_COST: Final = 20  # of an answer with a color that neither an output nor the test input has
_WORDS_SHARE: Final = 0.7  # of the time; the rest is for stacks
_GUIDED_SHARE: Final = 0.3  # of the time, for the search with the likeliest words
_COPIES: Final = 4  # of an image: in the table, while that grows, and in work on it
_MISSED_COST: Final = 25  # of a program that explains all demonstrations but one
_FEWEST: Final = 2  # demonstrations that say something without another one
_LEFT_OUT_SHARE: Final = 0.15  # of the time, for programs that explain all but one
_RULES: Final = 3  # of one kind that are answers
_RULES_SHARE: Final = 0.08  # of the time, for each kind and naming
_EXACT: Final = 6  # single pieces that are compared
DEFAULT: Final = SearchConfig()


@dataclass(frozen=True, eq=False)
class Found:
    """An answer with the program that made it."""

    answer: Int8[np.ndarray, "h w"]
    program: GridProgram | None  # None: the input itself, where nothing else is known
    fits: tuple[bool, ...]  # whether each demonstration comes out exactly, on a canvas of its output's size
    share: float  # of the cells of the outputs that come out right
    cost: int
    knows_sizes: bool = True  # else the program has the first output's size, as nothing explains the sizes of all

    @property
    def fits_all(self) -> bool:
        """Whether every demonstration comes out exactly."""
        return all(self.fits)


@dataclass(frozen=True)
class SearchResult:
    """The answers for one test input, the likeliest first, and what the search cost."""

    answers: tuple[Found, ...]
    found: tuple[Found, ...]  # all, also those whose answers are equal or beyond ``answers``; the likeliest first
    num_states: int  # different states that were kept
    num_applied: int  # states that words made, with those that were known
    is_cut: bool  # whether a limit was reached
    seconds: float
    expected: tuple[tuple[str, float], ...] = ()  # the words that guidance found likeliest, with their probabilities
    fault: str | None = None  # why there was no search: its process died


def solve(
    train: Sequence[tuple[Any, Any]],
    test_input: Any,
    config: SearchConfig = DEFAULT,
    *,
    on_progress: Callable[[int], None] = lambda applied: None,
) -> SearchResult:
    """Search programs that explain the demonstrations, and return different answers for a test input.

    Args:
        train: demonstrations, input and output each, as arrays or lists of rows.
        test_input: a grid; its output is neither needed nor seen.
        config: limits of cost, states and time, and how many answers.
        on_progress: called after each stage of the search with the number of words that were applied so far.

    Raises:
        TaskFormatError: there is no demonstration, or a grid breaks a rule of the format.
        GuidanceError: ``config.guidance`` is no weights.
        NativeLibraryError: the library of the search is neither installed nor can it be built.

    Warns:
        GuidanceWarning: the weights are of another vocabulary, so the search is unguided.
    """
    return TaskSearch(train, test_input, config).go_on(config.seconds, on_progress)


class TaskSearch:
    """The search of one test input: stages one after the other, which go on when more time is given.

    Arguments and errors are those of :func:`solve`; ``config.seconds`` is for the caller.
    """

    def __init__(self, train: Sequence[tuple[Any, Any]], test_input: Any, config: SearchConfig) -> None:
        self._train = check_pairs([(source, target) for source, target in train], "search", "train")
        self._test_input = check_grid(test_input, "search, test input")
        search_library()  # built, if need be, before the clock starts
        self._guide = guide_of(config.guidance)
        self._config = config
        self._clock = _Clock()
        self._found: list[Found] = []
        self._searches: dict[tuple[Any, ...], _Search] = {}
        self._expected: tuple[tuple[str, float], ...] = ()
        self.seconds = 0.0  # that it has had
        self._left = list(self._stages())

    @property
    def is_done(self) -> bool:
        """Whether more time would change nothing: a program is sure, or all stages are over."""
        return not self._left

    @property
    def num_bytes(self) -> int:
        """The memory that it takes, about."""
        return sum(search.graph.num_bytes for search in self._searches.values())

    def go_on(self, seconds: float, on_progress: Callable[[int], None] = lambda applied: None) -> SearchResult:
        """Search on for a time, and return what is found by then; ``on_progress`` is that of :func:`solve`."""
        clock = self._clock
        clock.start(seconds)
        for search in self._searches.values():
            search.begin()
        left = []
        for stage in self._left:
            clock.was_over = False
            stage(self)
            on_progress(sum(search.graph.num_applied for search in self._searches.values()))
            if _is_sure(self._found):
                left = []
                break
            if clock.was_over:
                left.append(stage)
        self._left = left
        found = sorted(self._found, key=_rank)
        answers = _different(found, self._train, self._test_input, self._config.answers)
        answers = answers or [_input_itself(self._train, self._test_input)]
        graphs = [search.graph for search in self._searches.values()]
        num_states, num_applied = sum(map(len, graphs)), sum(graph.num_applied for graph in graphs)
        is_cut = clock.is_over() or any(graph.is_cut for graph in graphs)
        self.seconds += clock.seconds_spent()
        return SearchResult(tuple(answers), tuple(found), num_states, num_applied, is_cut, self.seconds, self._expected)

    def _stages(self) -> Iterator[Callable[["TaskSearch"], None]]:
        # By name, as a search that its own stages hold would keep its memory until Python looks for circles.
        namings = [(recolor, "none") for recolor in _recolors(self._train, self._test_input)]
        turns = [("none", orient) for orient in _orients(self._train, self._test_input)]
        if self._guide is not None:
            yield methodcaller("_look_guided", self._guide)
        for naming in namings:
            yield methodcaller("_look", naming, _FIRST_COST, is_first=True)
            yield methodcaller("_look", naming, _SECOND_COST, is_last=True)
        for turn in turns:
            yield methodcaller("_look", turn, _FIRST_COST, is_first=True)
        yield methodcaller("_look_at_all_but_one")
        for turn in turns:
            yield methodcaller("_look", turn, _FIRST_COST + 1)
        for turn in turns:
            yield methodcaller("_look", turn, _SECOND_COST, is_last=True)
        for cost in range(_SECOND_COST + 1, self._config.max_cost + 1):
            for naming in namings:
                if naming != ("ranked", "none"):
                    yield methodcaller("_look", naming, cost, is_last=True)
        yield methodcaller("_look_twice")

    def _search(
        self,
        key: tuple[Any, ...],
        train: Sequence[Pair],
        test_input: np.ndarray,
        recolor: str = "none",
        orient: str = "none",
        **options: Any,
    ) -> "_Search":
        """Return the search of this name, a new one where there is none."""
        if key not in self._searches:
            given = (train, test_input, recolor, orient, self._config, self._clock)
            self._searches[key] = _Search(*given, **options)
        return self._searches[key]

    def _look(self, way: tuple[str, str], cost: int, *, is_first: bool = False, is_last: bool = False) -> None:
        """Add what states of a cost answer under a naming of the colors or from a side."""
        if self._searches and self._clock.is_over():
            return
        most = min(cost, self._config.max_cost, _RANKED_COST if way[0] == "ranked" else cost)
        has_grown = (*way, 2) in self._searches
        for room in (1, 2) if is_first else (2 if has_grown else 1,):
            # The answer may be larger than any other grid, and then no image has its size.
            search = self._search((*way, room), self._train, self._test_input, *way, room=room)
            if search.graph.is_cut and cost > _SECOND_COST:
                self._clock.was_over |= search.graph.is_late
                return
            self._found += search.answers(most, is_last)
            if search.knows_size or search.graph.frame >= LARGEST or _is_sure(self._found):
                return

    def _look_guided(self, guide: Guide) -> None:
        """Search with all words up to cost 2, and with the likeliest alone further; add what explains everything.

        The network sees what each word makes on the first level.
        """
        task = self._train, self._test_input
        most = self._config.max_cost
        search = self._search(("guided",), *task, share=_GUIDED_SHARE)
        self._found += _fitting(search.answers(min(_FIRST_COST, most), is_last=False))
        log_probs = guide.log_probs(describe(search.graph, self._train))
        self._expected = expected_words(log_probs)
        for recolor in _recolors(*task):
            if recolor == "ranked" or _is_sure(self._found):
                break
            search = self._search(("likely", recolor), *task, recolor, share=_GUIDED_SHARE, likely=log_probs)
            for cost in range(_FIRST_COST + 1, min(most, _SECOND_COST) + 1):
                self._found += [] if _is_sure(self._found) else _fitting(search.answers(cost, is_last=False))

    def _look_at_all_but_one(self) -> None:
        """Add what programs answer that explain all demonstrations but one, each of which is left out once.

        Its size or one of its functions may have no answer there, so that no state of the whole search has it.
        """
        until = self._clock.part(_LEFT_OUT_SHARE)
        places = range(len(self._train) if len(self._train) > _FEWEST else 0)
        for cost in (_FIRST_COST, _FIRST_COST + 1):
            for place in places:
                if self._clock.is_over(until) or cost > self._config.max_cost:
                    return
                shown = [pair for index, pair in enumerate(self._train) if index != place]
                search = self._search(("without", place), shown, self._test_input)
                for one in _fitting(search.answers(cost, is_last=False)):
                    fits = tuple(index != place for index in range(len(self._train)))
                    self._found.append(replace(one, fits=fits, share=0.0))

    def _look_twice(self) -> None:
        """Add what a second program makes of answers that may be nearly right."""
        for start in _starts(self._found):
            if self._clock.is_over() or _is_sure(self._found):
                return
            try:
                shown = [(_run(start, source), target) for source, target in self._train]
            except ProgramError:  # its frame is the largest, in which a function may have no answer
                continue
            search = self._search(("twice", str(start.program)), shown, start.answer, before=start)
            self._found += _fitting(search.answers(min(_FIRST_COST, self._config.max_cost), is_last=False))


class _Clock:
    """The time that a search is given, and whether something was left because it was over."""

    def __init__(self) -> None:
        self._total = 0.0  # of all parts
        self.start(0.0)

    def start(self, seconds: float) -> None:
        self._seconds = seconds
        self._total += seconds
        self._began = time.monotonic()
        self.was_over = False

    def until(self, share: float) -> float:
        """Return the end of a share of the time, from its beginning on."""
        return self._began + share * self._seconds

    def part(self, share: float) -> float:
        """Return the end, from now on, of a share of all the time that the search was ever given."""
        return min(time.monotonic() + share * self._total, self.until(1.0))

    def is_over(self, deadline: float | None = None) -> bool:
        """Whether a deadline, or that of everything, is over, which is remembered."""
        is_over = time.monotonic() > (self.until(1.0) if deadline is None else deadline)
        self.was_over |= is_over
        return is_over

    def seconds_spent(self) -> float:
        return time.monotonic() - self._began


def nothing_found(train: Sequence[Pair], test_input: np.ndarray, fault: str | None) -> SearchResult:
    """Return the result of a search that was not to be: its answer is the test input."""
    return SearchResult((_input_itself(train, test_input),), (), 0, 0, True, 0.0, fault=fault)


def _input_itself(train: Sequence[Pair], test_input: np.ndarray) -> Found:
    return Found(test_input.astype(np.int8), None, tuple(False for _ in train), 0.0, 0)


def described(train: Sequence[Pair], test_input: np.ndarray) -> Described:
    """Describe a task as :mod:`jaxarc.search.guidance` sees it, by a search of a cost of at most 2."""
    clock = _Clock()
    clock.start(DEFAULT.seconds)
    search = _Search(train, test_input, "none", "none", DEFAULT, clock)
    search.expand(_FIRST_COST)
    return describe(search.graph, train)


def _fitting(found: list[Found]) -> list[Found]:
    return [one for one in found if one.fits_all]


def _is_sure(found: list[Found]) -> bool:
    """Whether a program fits that costs so little that it is most likely right."""
    return any(one.fits_all and one.cost <= _SURE_COST for one in found)


def _starts(found: list[Found]) -> list[Found]:
    """Return answers that may be nearly right, as the grids of a second program: those with most right cells."""
    known: dict[bytes, Found] = {}
    for one in sorted(found, key=lambda one: (-one.share, one.cost)):
        if one.program is not None and (one.program.layers != (LayerProgram((), -1, True),)):
            known.setdefault(one.answer.tobytes(), one)
    return list(known.values())[:_TWICE]


def _run(found: Found, source: np.ndarray) -> np.ndarray:
    assert found.program is not None
    return found.program(source).astype(np.uint8)


def _recolors(train: Sequence[Pair], test_input: np.ndarray) -> list[str]:
    """Choose the namings that change a grid of the task, and are not the same as one before."""
    inputs = [*(pair[0] for pair in train), test_input]
    colors = [np.unique(grid) for grid in inputs]
    changes = {
        kind: any((recoloring(kind, grid)[here] != here).any() for grid, here in zip(inputs, colors, strict=True))
        for kind in RECOLORS
    }
    return [kind for kind in RECOLORS if kind == "none" or changes[kind]]


def _orients(train: Sequence[Pair], test_input: np.ndarray) -> list[str]:
    """Choose the orientations that turn a grid, and are not the same as one before."""
    grids = [*(source for source, _ in train), test_input]
    found: dict[tuple[int, ...], str] = {}
    for name, orientation in ORIENTATIONS.items():
        found.setdefault(tuple(orientation(grid) for grid in grids), name)
    return [name for symmetries, name in found.items() if len({*symmetries}) > 1 or name == "transpose"]


def _rank(found: Found) -> tuple[float, ...]:
    """Order by cost what explains all demonstrations, or all but one, and then by how many, and how much of them."""
    explained, count = sum(found.fits), len(found.fits)
    if explained == count or explained == count - 1 >= _FEWEST:
        return 0, found.cost + _MISSED_COST * (count - explained)
    return 1, -explained / max(count, 1), -found.share, found.cost


def _different(found: list[Found], train: Sequence[Pair], test_input: np.ndarray, count: int) -> list[Found]:
    """Keep the first of equal answers; what no output is like comes last: the input again, or one plain color."""
    changes = all(not np.array_equal(source, target) for source, target in train)
    colorful = all(len(np.unique(target)) > 1 for _, target in train)
    kept: dict[bytes, Found] = {}
    odd: dict[bytes, Found] = {}
    for one in found:
        is_same = changes and np.array_equal(one.answer, test_input)
        is_plain = colorful and len(np.unique(one.answer)) == 1
        key = bytes(one.answer.shape) + one.answer.tobytes()
        (odd if is_same or is_plain else kept).setdefault(key, one)
    ranked = [*kept.values(), *odd.values()]
    return ranked[:count]


class _Search:
    """The search of one test input under one naming of its colors."""

    def __init__(
        self,
        train: Sequence[Pair],
        test_input: np.ndarray,
        recolor: str,
        orient: str,
        config: SearchConfig,
        clock: _Clock,
        *,
        share: float = 1.0,  # of the time
        room: int = 1,  # sides of the largest grid that an image may have
        before: Found | None = None,  # what made the inputs
        likely: np.ndarray | None = None,  # log-probabilities of words, of which only the likeliest are tried
    ) -> None:
        self._clock = clock
        self._share = share
        self._before = before
        self._known_colors = {*_colors_of([test_input]), *_colors_of([target for _, target in train])}
        turn = ORIENTATIONS[orient]
        train = [(turned(source, turn(source)), turned(target, turn(source))) for source, target in train]
        self._symmetry = turn(test_input)
        test_input = turned(test_input, self._symmetry)
        names = [recoloring(recolor, source) for source, _ in train]
        self._outputs = [name[target] for name, (_, target) in zip(names, train, strict=True)]
        names.append(recoloring(recolor, test_input))
        self._inputs = [
            name[source] for name, source in zip(names, [*(pair[0] for pair in train), test_input], strict=True)
        ]
        self._original = np.argsort(names[-1]).astype(np.int8)
        self._recolor = recolor
        self._orient = orient
        self._sizes = config.sizes
        self.knows_size = False  # whether a rule gives the sizes of all outputs
        self._scales = _scales(self._inputs, self._outputs)
        self._colors = _colors_of(self._outputs)
        words = vocabulary(_colors_of(self._inputs), self._colors, self._scales, _larger(self._inputs, self._outputs))
        words = words if likely is None else likely_words(likely, words)
        height, width = self._inputs[-1].shape
        grown = [max(height * down, width * right) for down, right in self._scales]
        sides = [side for grid in (*self._inputs, *self._outputs) for side in grid.shape]
        frame = min(room * max(*sides, *grown, 3), LARGEST)
        max_images = config.megabytes * 10**6 // (_COPIES * frame**2)
        self.graph = StateGraph(self._inputs, frame, words, config.max_states, max_images)
        know_mirror_images = () if orient != "none" else (learn_growth, learn_templates)
        self._learners = (learn_object_rules, *know_mirror_images)
        self._everything = (True,) * len(self._outputs)
        self._parts: dict[tuple[Any, ...], list[Found]] = {}  # of the answers, which no more time would change
        self.begin()

    def begin(self) -> None:
        """Take the time that the clock has now."""
        self._deadline = self._clock.until(self._share)
        self.graph.is_late = False

    def expand(self, cost: int) -> None:
        """Make all states up to a cost."""
        self.graph.expand(cost, self._clock.until(_WORDS_SHARE * self._share))
        self._clock.was_over |= self.graph.is_late

    def answers(self, cost: int, is_last: bool) -> list[Found]:
        """Return what tables and stacks of states up to a cost answer; at last also tables that fit not all cells."""
        self.expand(cost)
        found = []
        rules = _size_rules(self.graph, self._inputs, self._outputs, self._scales)
        self.knows_size = bool(rules)
        first = self._outputs[0].shape
        rules = rules or [(first, SizeRule(first))]
        for guess, (size, rule) in enumerate(rules[: self._sizes]):
            if guess > 0 and self._clock.is_over(self._deadline):
                break
            canvas = OutputCells(self._outputs, size)
            is_deep = cost > _SECOND_COST  # tables and products look at cheaper states only
            at = (cost, is_last, size)
            if guess == 0 and not is_deep:
                found += self._part(("tables", *at), partial(self._tables, canvas, rule, is_exact=True))
            found += self._part(("stacks", *at), partial(self._stacks, canvas, rule, is_last))
            if not is_deep:
                found += self._part(("products", *at), partial(self._products, canvas, rule))
            if guess == 0 and cost <= _FIRST_COST and rule == SizeRule() and not _is_sure(found):
                for learn in self._learners:
                    deadline = min(self._clock.part(_RULES_SHARE * self._share), self._deadline)
                    found += self._part((learn.__name__, *at), partial(self._rules, learn, deadline), deadline)
            if guess == 0 and is_last and not is_deep and not any(one.fits_all for one in found):
                found += self._part(("near tables", *at), partial(self._tables, canvas, rule, is_exact=False))
        return found

    def _part(
        self, name: tuple[Any, ...], make: Callable[[], list[Found]], deadline: float | None = None
    ) -> list[Found]:
        """Return what a part of the answers is; what was made of the same states before its deadline is remembered."""
        key = (*name, len(self.graph))
        if key in self._parts:
            return self._parts[key]
        found = make()
        if not self._clock.is_over(deadline or self._deadline):
            self._parts[key] = found
        return found

    def _tables(self, canvas: OutputCells, rule: SizeRule, is_exact: bool) -> list[Found]:
        tables = learn_rules(self.graph, canvas, self._deadline, is_exact)
        return [self._found(one.answer, (one.layer,), rule, one.fits, one.share, one.cost) for one in tables]

    def _stacks(self, canvas: OutputCells, rule: SizeRule, is_last: bool) -> list[Found]:
        found = []
        for stack in _stacks(Pieces(self.graph, canvas, self._colors), is_last, self._deadline):
            layers = tuple(_layer(self.graph, layer) for layer in stack.layers)
            found.append(self._found(stack.answer, layers, rule, stack.fits, stack.share, stack.cost))
        return found

    def _products(self, canvas: OutputCells, rule: SizeRule) -> list[Found]:
        found = []
        for product in find_products(self.graph, canvas, self._deadline):
            words = (self.graph.program(product.coarse), self.graph.program(product.fine))
            layers = (ProductLayer(*words, product.has_coarse_colors),)
            found.append(self._found(product.answer, layers, rule, self._everything, 1.0, product.cost))
        return found

    def _rules(self, learn: Callable[..., list[tuple[Any, int]]], deadline: float) -> list[Found]:
        """Return what rules answer that draw on a whole grid; they take the input alone."""
        source = self._inputs[-1].astype(np.uint8)
        return [
            self._found(rule.drawn(source), (RuleLayer(rule),), SizeRule(), self._everything, 1.0, cost)
            for rule, cost in learn(self._inputs[:-1], self._outputs, source, deadline)[:_RULES]
        ]

    def _found(
        self,
        answer: np.ndarray,
        layers: tuple[ProgramLayer, ...],
        rule: SizeRule,
        fits: tuple[bool, ...],
        share: float,
        cost: int,
    ) -> Found:
        before = None
        cost += _TURNED_COST * (self._orient not in ("none", "transpose"))
        if self._before is not None:
            before = self._before.program
            cost += self._before.cost
        program = GridProgram(layers, rule, self._recolor, self._orient, before)
        if program.depends_on_frame:
            program = replace(program, frame=self.graph.frame)
        named = self._original[answer]
        if not self._known_colors.issuperset(named.ravel().tolist()):
            cost += _STRAY_COST
        return Found(turned_back(named, self._symmetry), program, fits, share, cost, self.knows_size)


def _layer(graph: StateGraph, layer: Layer) -> LayerProgram:
    words = () if layer.state == NO_STATE else graph.program(layer.state)
    return LayerProgram(words, layer.color, layer.is_solid, layer.is_placed)


def _stacks(pieces: Pieces, is_last: bool, deadline: float) -> list[Stack]:
    if time.monotonic() > deadline:
        return pieces.nearest(2)
    found = [pieces.stack([int(one)]) for one in pieces.exact()[:_EXACT]]
    everything = np.bitwise_or.reduce(pieces.pairs)
    found += pieces.stacks(everything, _STARTS, _LAYERS, deadline)
    if is_last and not any(all(stack.fits) for stack in found):
        sizes = reversed(range(1, len(pieces.pairs)))
        some = chain.from_iterable(combinations(pieces.pairs, size) for size in sizes)
        for chosen in takewhile(lambda _: time.monotonic() <= deadline, islice(some, _SOME)):
            found += pieces.stacks(np.bitwise_or.reduce(chosen), _STARTS_WITHOUT, _LAYERS, deadline)
    return found + pieces.nearest(2)


def _scales(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    """Return the one scale of all demonstrations, if it is a whole number."""
    found = set()
    for source, target in zip(inputs, outputs, strict=False):
        (down, more), (right, rest) = (
            divmod(big, small) for big, small in zip(target.shape, source.shape, strict=True)
        )
        found.add((down, right) if more == rest == 0 else None)
    if len(found) != 1 or None in found or (1, 1) in found:
        return []
    return [one for one in found if one is not None]


def _larger(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    """Return the one size of all outputs, if it is larger than that of each input."""
    sizes = {output.shape for output in outputs}
    height, width = outputs[0].shape
    can_grow = all(one.shape[0] <= height and one.shape[1] <= width and one.shape != (height, width) for one in inputs)
    return [(height, width)] if len(sizes) == 1 and can_grow else []


def _size_rules(
    graph: StateGraph,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[np.ndarray],
    scales: Sequence[tuple[int, int]],
) -> list[tuple[tuple[int, int], SizeRule]]:
    """Guess sizes of the answer, the likeliest first: as the input, fixed, a multiple, as a state of the search."""
    test = inputs[-1].shape
    sizes = [output.shape for output in outputs]
    rules: dict[tuple[int, int], SizeRule] = {}
    if all(source.shape == size for source, size in zip(inputs, sizes, strict=False)):
        rules[test] = SizeRule()
    elif len(set(sizes)) == 1:
        rules[sizes[0]] = SizeRule(sizes[0])
    for scale in scales:
        size = test[0] * scale[0], test[1] * scale[1]
        if max(size) <= LARGEST:
            rules.setdefault(size, SizeRule(scale=scale))
    states, numbers, costs = graph.image_states
    height, width = graph.sizes(numbers)
    fits = np.all((np.stack([height, width], 2)[:, :-1] == np.array(sizes)), axis=(1, 2))
    chosen = np.flatnonzero(fits)
    for index in chosen[np.argsort(costs[chosen], kind="stable")]:
        size = int(height[index, -1]), int(width[index, -1])
        if size not in rules:
            rules[size] = SizeRule(words=graph.program(int(states[index])))
    return list(rules.items())


def _colors_of(grids: Sequence[np.ndarray]) -> list[int]:
    return np.unique(np.concatenate([grid.ravel() for grid in grids])).tolist()
