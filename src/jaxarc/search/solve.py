"""Solve a task: search under each naming of its colors, stack pieces, rank the answers, keep those that differ."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice
from typing import Any, Final

import numpy as np
from jaxtyping import Int8

from jaxarc.config import SearchConfig
from jaxarc.search.descriptions import Described, describe
from jaxarc.search.graph import Limits, StateGraph
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
        on_progress: called between two parts of the search with the number of words that were applied so far.

    Raises:
        TaskFormatError: there is no demonstration, or a grid breaks a rule of the format.
        GuidanceError: ``config.guidance`` is no weights.
        NativeLibraryError: the library of the search is neither installed nor can it be built.

    Warns:
        GuidanceWarning: the weights are of another vocabulary, so the search is unguided.
    """
    train = check_pairs([(source, target) for source, target in train], "search", "train")
    test_input = check_grid(test_input, "search, test input")
    search_library()  # built, if need be, before the clock starts
    guide = guide_of(config.guidance)
    began = time.monotonic()
    found: list[Found] = []
    searches: list[_Search] = []
    log_probs = None if guide is None else _guided(guide, train, test_input, config, began, found, searches)
    ways = _Ways(train, test_input, config, began, found, searches, on_progress)
    namings = [(recolor, "none") for recolor in _recolors(train, test_input)]
    turns = [("none", orient) for orient in _orients(train, test_input)]
    for naming in namings:
        ways.look([naming], _FIRST_COST, is_last=False)
        ways.look([naming], _SECOND_COST, is_last=True)
    ways.look(turns, _FIRST_COST, is_last=False)
    found += [] if _is_sure(found) else _all_but_one(train, test_input, config, began, searches)
    ways.look(turns, _FIRST_COST + 1, is_last=False)
    ways.look(turns, _SECOND_COST, is_last=True)
    for cost in range(_SECOND_COST + 1, config.max_cost + 1):
        ways.look([(recolor, orient) for recolor, orient in namings if recolor != "ranked"], cost, is_last=True)
    for start in _starts(found):
        if time.monotonic() - began > config.seconds or _is_sure(found):
            break
        try:
            shown = [(_run(start, source), target) for source, target in train]
        except ProgramError:  # its frame is the largest, in which a function may have no answer
            continue
        search = _Search(shown, start.answer, "none", "none", config, began, 1, start)
        searches.append(search)
        found += [one for one in search.answers(min(_FIRST_COST, config.max_cost), is_last=False) if one.fits_all]
    found.sort(key=_rank)
    answers = _different(found, train, test_input, config.answers)
    if not answers:
        answers = [Found(test_input.astype(np.int8), None, tuple(False for _ in train), 0.0, 0)]
    graphs = [search.graph for search in searches]
    num_states, num_applied = sum(map(len, graphs)), sum(graph.num_applied for graph in graphs)
    seconds = time.monotonic() - began
    is_cut = seconds > config.seconds or any(graph.is_cut for graph in graphs)
    expected = () if log_probs is None else expected_words(log_probs)
    return SearchResult(tuple(answers), tuple(found), num_states, num_applied, is_cut, seconds, expected)


def _all_but_one(
    train: Sequence[Pair], test_input: np.ndarray, config: SearchConfig, began: float, searches: list["_Search"]
) -> list[Found]:
    """Return what programs answer that explain all demonstrations but one, each of which is left out in turn.

    Its size or one of its functions may have no answer there, so that no state of the whole search has it.
    """
    found: list[Found] = []
    until = min(time.monotonic() + _LEFT_OUT_SHARE * config.seconds, began + config.seconds)
    places = range(len(train) if len(train) > _FEWEST else 0)
    shown = [[pair for index, pair in enumerate(train) if index != place] for place in places]
    own: list[_Search] = []
    for cost in (_FIRST_COST, _FIRST_COST + 1):
        for place in places:
            if time.monotonic() > until or cost > config.max_cost:
                return found
            if cost == _FIRST_COST:
                own.append(_Search(shown[place], test_input, "none", "none", config, began, 1))
                searches.append(own[place])
            for one in _fitting(own[place].answers(cost, is_last=False)):
                fits = tuple(index != place for index in range(len(train)))
                found.append(replace(one, fits=fits, share=0.0))
    return found


def described(train: Sequence[Pair], test_input: np.ndarray) -> Described:
    """Describe a task as :mod:`jaxarc.search.guidance` sees it, by a search of a cost of at most 2."""
    search = _Search(train, test_input, "none", "none", DEFAULT, time.monotonic(), 1)
    search.expand(_FIRST_COST)
    return describe(search.graph, train)


def _guided(
    guide: Guide,
    train: Sequence[Pair],
    test_input: np.ndarray,
    config: SearchConfig,
    began: float,
    found: list[Found],
    searches: list["_Search"],
) -> np.ndarray:
    """Search with all words up to cost 2, and with the likeliest alone further; add what explains all demonstrations.

    The network sees what each word makes on the first level. Returns the log-probabilities of the keys.
    """
    config = replace(config, seconds=_GUIDED_SHARE * config.seconds)
    search = _Search(train, test_input, "none", "none", config, began, 1)
    searches.append(search)
    found += _fitting(search.answers(min(_FIRST_COST, config.max_cost), is_last=False))
    log_probs = guide.log_probs(describe(search.graph, train))
    for recolor in _recolors(train, test_input):
        if recolor == "ranked" or _is_sure(found):
            break
        search = _Search(train, test_input, recolor, "none", config, began, 1, likely=log_probs)
        searches.append(search)
        for cost in range(_FIRST_COST + 1, min(config.max_cost, _SECOND_COST) + 1):
            found += [] if _is_sure(found) else _fitting(search.answers(cost, is_last=False))
    return log_probs


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


class _Ways:
    """The searches of one test input under all namings of its colors, and from all sides."""

    def __init__(
        self,
        train: Sequence[Pair],
        test_input: np.ndarray,
        config: SearchConfig,
        began: float,
        found: list[Found],
        searches: list["_Search"],
        on_progress: Callable[[int], None],
    ) -> None:
        self._on_progress = on_progress
        self._train, self._test_input, self._config, self._began = train, test_input, config, began
        self._found, self._searches = found, searches
        self._own: dict[tuple[str, str], _Search] = {}

    def look(self, ways: list[tuple[str, str]], cost: int, is_last: bool) -> None:
        """Add what states of a cost answer, each way, until a program is sure or the time is over."""
        for recolor, orient in ways:
            if _is_sure(self._found) or (self._searches and time.monotonic() - self._began > self._config.seconds):
                return
            most = min(cost, self._config.max_cost, _RANKED_COST if recolor == "ranked" else cost)
            for room in (1, 2):  # the answer may be larger than any other grid, and then no image has its size
                is_new = room > 1 or (recolor, orient) not in self._own
                if is_new:
                    search = _Search(self._train, self._test_input, recolor, orient, self._config, self._began, room)
                    self._searches.append(search)
                    self._own[recolor, orient] = search
                search = self._own[recolor, orient]
                if search.graph.is_cut and cost > _SECOND_COST:
                    break
                self._found += search.answers(most, is_last)
                self._on_progress(sum(one.graph.num_applied for one in self._searches))
                can_grow = is_new and search.graph.frame < LARGEST
                if search.knows_size or not can_grow or _is_sure(self._found):
                    break


class _Search:
    """The search of one test input under one naming of its colors."""

    def __init__(
        self,
        train: Sequence[Pair],
        test_input: np.ndarray,
        recolor: str,
        orient: str,
        config: SearchConfig,
        began: float,
        room: int,  # sides of the largest grid that an image may have
        before: Found | None = None,  # what made the inputs
        likely: np.ndarray | None = None,  # log-probabilities of words, of which only the likeliest are tried
    ) -> None:
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
        self._seconds = config.seconds
        self._deadline = began + config.seconds
        limits = Limits(config.max_states, max_images, deadline=began + _WORDS_SHARE * config.seconds)
        self.graph = StateGraph(self._inputs, frame, words, limits)

    def expand(self, cost: int) -> None:
        """Make all states up to a cost."""
        while self.graph.cost < cost:
            self.graph.expand()

    def answers(self, cost: int, is_last: bool) -> list[Found]:
        """Return what tables and stacks of states up to a cost answer; at last also tables that fit not all cells."""
        self.expand(cost)
        found = []
        rules = _size_rules(self.graph, self._inputs, self._outputs, self._scales)
        self.knows_size = bool(rules)
        first = self._outputs[0].shape
        rules = rules or [(first, SizeRule(first))]
        for guess, (size, rule) in enumerate(rules[: self._sizes]):
            canvas = OutputCells(self._outputs, size)
            is_deep = cost > _SECOND_COST  # tables and products look at cheaper states only
            if guess == 0 and not is_deep:
                found += self._tables(canvas, rule, is_exact=True)
            stacks = _stacks(Pieces(self.graph, canvas, self._colors), is_last, self._deadline)
            for stack in stacks:
                layers = tuple(_layer(self.graph, layer) for layer in stack.layers)
                found.append(self._found(stack.answer, layers, rule, stack.fits, stack.share, stack.cost))
            for product in [] if is_deep else find_products(self.graph, canvas):
                words = (self.graph.program(product.coarse), self.graph.program(product.fine))
                layers = (ProductLayer(*words, product.has_coarse_colors),)
                everything = (True,) * len(self._outputs)
                found.append(self._found(product.answer, layers, rule, everything, 1.0, product.cost))
            if guess == 0 and cost <= _FIRST_COST and rule == SizeRule() and not _is_sure(found):
                found += self._rules()
            if guess == 0 and is_last and not is_deep and not any(one.fits_all for one in found):
                found += self._tables(canvas, rule, is_exact=False)
        return found

    def _tables(self, canvas: OutputCells, rule: SizeRule, is_exact: bool) -> list[Found]:
        tables = learn_rules(self.graph, canvas, self._deadline, is_exact)
        return [self._found(one.answer, (one.layer,), rule, one.fits, one.share, one.cost) for one in tables]

    def _rules(self) -> list[Found]:
        """Return what rules answer that draw on a whole grid; they take the input alone."""
        source, everything = self._inputs[-1].astype(np.uint8), (True,) * len(self._outputs)
        found = []
        know_mirror_images = () if self._orient != "none" else (learn_growth, learn_templates)
        for learn in (learn_object_rules, *know_mirror_images):
            deadline = min(time.monotonic() + _RULES_SHARE * self._seconds, self._deadline)
            for rule, cost in learn(self._inputs[:-1], self._outputs, source, deadline)[:_RULES]:
                found.append(self._found(rule.drawn(source), (RuleLayer(rule),), SizeRule(), everything, 1.0, cost))
        return found

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
    found = [pieces.stack([int(one)]) for one in pieces.exact()[:_EXACT]]
    everything = np.bitwise_or.reduce(pieces.pairs)
    found += pieces.stacks(everything, _STARTS, _LAYERS, deadline)
    if is_last and not any(all(stack.fits) for stack in found):
        sizes = reversed(range(1, len(pieces.pairs)))
        some = chain.from_iterable(combinations(pieces.pairs, size) for size in sizes)
        for chosen in islice(some, _SOME):
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
