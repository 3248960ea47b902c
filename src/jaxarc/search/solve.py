"""Solve a task in stages: make states, let finders make candidates of them, rank the answers, keep those that differ.

A search has one graph of states for each view of the task: under a naming of its colors, or from a side.
:meth:`TaskSearch._stages` says which states are made when, and :meth:`_View.answers` who is asked then.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
from jaxtyping import Int8

from jaxarc.config import SearchConfig
from jaxarc.search.graph import OutputCells, StateGraph
from jaxarc.search.growth import find_growth
from jaxarc.search.limits import LIMITS
from jaxarc.search.object_rules import find_object_rules
from jaxarc.search.orientations import ORIENTATIONS, turned, turned_back
from jaxarc.search.pieces import ImageLayer, find_last_stacks, find_products, find_stacks
from jaxarc.search.program_layers import Candidate
from jaxarc.search.programs import RECOLORS, GridProgram, ProgramError, SizeRule, recoloring
from jaxarc.search.search_library import search_library
from jaxarc.search.tables import find_near_tables, find_tables
from jaxarc.search.templates import find_templates
from jaxarc.search.words import LARGEST, vocabulary
from jaxarc.tasks.raw_task import check_grid, check_pairs

Pair = tuple[np.ndarray, np.ndarray]
Finder = Callable[[OutputCells, float], list[Candidate]]  # what it makes of the states, until a deadline
RULE_FINDERS: Final[tuple[Finder, ...]] = (find_object_rules, find_growth, find_templates)
"""They take the input alone, so the states do not matter; each has a share of the time for itself."""
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
    found: tuple[Found, ...]  # all, also those whose answers are equal or beyond ``answers``; the best program first
    num_states: int  # different states that were kept
    num_applied: int  # states that words made, with those that were known
    is_cut: bool  # whether a limit was reached
    seconds: float
    fault: str | None = None  # why there was no search: its process died

    def as_dict(self) -> dict[str, Any]:
        """Return it as values of JSON, without what is beyond the answers."""
        return {
            "states": self.num_states,
            "seconds": round(self.seconds, 2),
            "states_applied": self.num_applied,
            "at_a_limit": self.is_cut,
            "fault": self.fault,
            "answers": [
                {
                    "program": None if found.program is None else str(found.program),
                    "fits": list(found.fits),
                    "share": found.share,
                    "cost": found.cost,
                    "knows_sizes": found.knows_sizes,
                    "grid": found.answer.tolist(),
                }
                for found in self.answers
            ],
        }


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
        NativeLibraryError: the library of the search is neither installed nor can it be built.
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
        self._config = config
        self._clock = _Clock()
        self._found: list[Found] = []
        self._views: dict[tuple[Any, ...], _View] = {}
        self.seconds = 0.0  # that it has had
        self._left = list(self._stages())  # what is to be done

    @property
    def is_done(self) -> bool:
        """Whether more time would change nothing: a program is sure, or all stages are over."""
        return not self._left

    @property
    def num_bytes(self) -> int:
        """The memory that it takes, about."""
        return sum(view.graph.num_bytes for view in self._views.values())

    def go_on(self, seconds: float, on_progress: Callable[[int], None] = lambda applied: None) -> SearchResult:
        """Search on for a time, and return what is found by then; ``on_progress`` is that of :func:`solve`."""
        clock = self._clock
        clock.start(seconds)
        for view in self._views.values():
            view.begin()
        left = []
        for stage in self._left:
            clock.was_over = False
            stage(self)
            on_progress(sum(view.graph.num_applied for view in self._views.values()))
            if _is_sure(self._found):
                left = []
                break
            if clock.was_over:
                left.append(stage)
        self._left = left
        found = sorted(self._found, key=_rank)
        answers = likeliest(found, self._train, self._test_input, self._config.answers)
        answers = answers or [_input_itself(self._train, self._test_input)]
        graphs = [view.graph for view in self._views.values()]
        num_states, num_applied = sum(map(len, graphs)), sum(graph.num_applied for graph in graphs)
        is_cut = clock.is_over() or any(graph.is_full or graph.is_late for graph in graphs)
        self.seconds += time.monotonic() - clock.began
        return SearchResult(tuple(answers), tuple(found), num_states, num_applied, is_cut, self.seconds)

    def _stages(self) -> Iterator[Callable[["TaskSearch"], None]]:
        """Yield what is done one after the other, until a program is sure.

        They take the search as an argument, as one that its own stages hold would keep its memory until Python looks
        for circles.
        """
        cls, limits = TaskSearch, LIMITS
        inputs = [*(source for source, _ in self._train), self._test_input]
        namings, sides = _recolors(inputs), _orients(inputs)
        # What is cheap in any view comes before what costs more in one: a cheap program that fits is most often right.
        for naming in namings:
            yield partial(cls._look, cost=limits.first_cost, recolor=naming, is_first=True)
            yield partial(cls._look, cost=limits.second_cost, recolor=naming, is_last=True)
        for side in sides:
            yield partial(cls._look, cost=limits.first_cost, orient=side, is_first=True)
        # A program that misses a demonstration is less likely than a simple one from a side, and more than a long one.
        yield cls._look_at_all_but_one
        for side in sides:
            yield partial(cls._look, cost=limits.first_cost + 1, orient=side)
        for side in sides:
            yield partial(cls._look, cost=limits.second_cost, orient=side, is_last=True)
        yield cls._look_twice
        for cost in range(limits.second_cost + 1, self._config.max_cost + 1):
            for naming in namings:
                if naming != "ranked":
                    yield partial(cls._look, cost=cost, recolor=naming, is_last=True)

    def _view(self, key: tuple[Any, ...], train: Sequence[Pair], test_input: np.ndarray, **options: Any) -> "_View":
        """Return the view of a task that has this name, a new one where there is none, with the memory that is left."""
        if key not in self._views:
            self._views[key] = _View(train, test_input, self._config, self._clock, **options)
        graph, room = self._views[key].graph, self._config.megabytes * 10**6
        graph.max_bytes = max(room - self.num_bytes + graph.num_bytes, round(LIMITS.view_share * room))
        return self._views[key]

    def _look(
        self,
        cost: int,
        *,
        recolor: str = "none",
        orient: str = "none",
        is_first: bool = False,
        is_last: bool = False,
    ) -> None:
        """Add what states of a cost answer under a naming of the colors or from a side."""
        if self._views and self._clock.is_over():
            return
        most = min(cost, self._config.max_cost, LIMITS.ranked_cost if recolor == "ranked" else cost)
        has_grown = (recolor, orient, 2) in self._views
        for room in (1, 2) if is_first else (2 if has_grown else 1,):
            # The answer may be larger than any other grid, and then no image has its size.
            task = self._train, self._test_input
            view = self._view((recolor, orient, room), *task, recolor=recolor, orient=orient, room=room)
            if cost > LIMITS.second_cost and (view.graph.is_full or view.graph.is_late):
                self._clock.was_over |= view.graph.is_late
                return
            self._found += view.answers(most, is_last)
            if view.knows_size or view.graph.frame >= LARGEST or _is_sure(self._found):
                return

    def _look_at_all_but_one(self) -> None:
        """Add what programs answer that explain all demonstrations but one, each of which is left out once.

        Its size or one of its functions may have no answer there, so that no state of the whole search has it.
        """
        until = self._clock.part(LIMITS.left_out_share)
        places = range(len(self._train) if len(self._train) > LIMITS.fewest_explained else 0)
        for cost in (LIMITS.first_cost, LIMITS.first_cost + 1):
            for place in places:
                if self._clock.is_over(until) or cost > self._config.max_cost:
                    return
                shown = [pair for index, pair in enumerate(self._train) if index != place]
                view = self._view(("without", place), shown, self._test_input)
                fits = tuple(index != place for index in range(len(self._train)))
                for found in _fitting(view.answers(cost, is_last=False)):
                    self._found.append(replace(found, fits=fits, share=0.0))

    def _look_twice(self) -> None:
        """Add what a second program makes of answers that may be nearly right."""
        for start in _starts(self._found):
            if self._clock.is_over() or _is_sure(self._found):
                return
            try:
                shown = [(_run(start, source), target) for source, target in self._train]
            except ProgramError:  # its frame is the largest, in which a function may have no answer
                continue
            view = self._view(("twice", str(start.program)), shown, start.answer, before=start)
            self._found += _fitting(view.answers(min(LIMITS.first_cost, self._config.max_cost), is_last=False))


class _Clock:
    """The time that a search is given, and whether something was left because it was over."""

    def __init__(self) -> None:
        self._total = 0.0  # of all parts
        self.start(0.0)

    def start(self, seconds: float) -> None:
        self._seconds = seconds
        self._total += seconds
        self.began = time.monotonic()
        self.was_over = False

    def until(self, share: float) -> float:
        """Return the end of a share of the time, from its beginning on."""
        return self.began + share * self._seconds

    def part(self, share: float) -> float:
        """Return the end, from now on, of a share of all the time that the search was ever given."""
        return min(time.monotonic() + share * self._total, self.until(1.0))

    def is_over(self, deadline: float | None = None) -> bool:
        """Whether a deadline, or that of everything, is over, which is remembered."""
        is_over = time.monotonic() > (self.until(1.0) if deadline is None else deadline)
        self.was_over |= is_over
        return is_over


def nothing_found(train: Sequence[Pair], test_input: np.ndarray, fault: str | None) -> SearchResult:
    """Return the result of a search that was not to be: its answer is the test input."""
    return SearchResult((_input_itself(train, test_input),), (), 0, 0, True, 0.0, fault=fault)


def _input_itself(train: Sequence[Pair], test_input: np.ndarray) -> Found:
    return Found(test_input.astype(np.int8), None, tuple(False for _ in train), 0.0, 0)


def _fitting(found: list[Found]) -> list[Found]:
    return [one for one in found if one.fits_all]


def _is_sure(found: list[Found]) -> bool:
    """Whether a program fits that costs so little that it is most likely right."""
    return any(one.fits_all and one.cost <= LIMITS.sure_cost for one in found)


def _starts(found: list[Found]) -> list[Found]:
    """Return answers that may be nearly right, as the grids of a second program: those with most right cells."""
    known: dict[bytes, Found] = {}
    for one in sorted(found, key=lambda one: (-one.share, one.cost)):
        if one.program is not None and one.program.layers != (ImageLayer((), -1, True),):
            known.setdefault(one.answer.tobytes(), one)
    return list(known.values())[: LIMITS.second_programs]


def _run(found: Found, source: np.ndarray) -> np.ndarray:
    assert found.program is not None
    return found.program(source).astype(np.uint8)


def _recolors(inputs: Sequence[np.ndarray]) -> list[str]:
    """Choose the namings that change a grid of the task."""
    changes = lambda kind: any((recoloring(kind, grid)[grid] != grid).any() for grid in inputs)
    return [kind for kind in RECOLORS if kind == "none" or changes(kind)]


def _orients(inputs: Sequence[np.ndarray]) -> list[str]:
    """Choose the orientations that turn a grid, and are not the same as one before."""
    found: dict[tuple[int, ...], str] = {}
    for name, orientation in ORIENTATIONS.items():
        found.setdefault(tuple(orientation(grid) for grid in inputs), name)
    return [name for symmetries, name in found.items() if len({*symmetries}) > 1 or name == "transpose"]


def _rank(found: Found) -> tuple[float, ...]:
    """Order by cost what explains all demonstrations, or all but one, and then by how many, and how much of them."""
    explained, count = sum(found.fits), len(found.fits)
    if explained == count or explained == count - 1 >= LIMITS.fewest_explained:
        return 0, found.cost + LIMITS.missed_cost * (count - explained)
    return 1, -explained / max(count, 1), -found.share, found.cost


def likeliest(found: list[Found], train: Sequence[Pair], test_input: np.ndarray, count: int) -> list[Found]:
    """Return the likeliest different answers, each with the first program in ``found`` that makes it, the best.

    What no output is like comes last: the input again, or one plain color.
    """
    changes = all(not np.array_equal(source, target) for source, target in train)
    colorful = all(len(np.unique(target)) > 1 for _, target in train)
    by_answer: dict[bytes, list[Found]] = {}
    for one in found:
        by_answer.setdefault(bytes(one.answer.shape) + one.answer.tobytes(), []).append(one)

    is_same = lambda one: changes and np.array_equal(one.answer, test_input)
    is_plain = lambda one: colorful and len(np.unique(one.answer)) == 1
    order = lambda same: (is_same(same[0]) or is_plain(same[0]), *_by_votes(same))
    return [same[0] for same in sorted(by_answer.values(), key=order)[:count]]


def _by_votes(same: list[Found]) -> tuple[float, ...]:
    """Order an answer by the votes of all programs that make it, which are ``same``, the best one first.

    A program that costs 6 more has half a vote, and two programs of a view vote, as those of one view are much alike.
    An answer that programs of cost 12 make in two views has 2 * 1/4 votes, more than one of cost 8 with 0.4.
    """
    group, *rest = _rank(same[0])
    if group > 0:
        return group, *rest
    voters: dict[tuple[Any, ...], set[GridProgram]] = {}
    votes = 0.0
    for one in same:
        group, cost, *_ = _rank(one)
        if group > 0 or one.program is None:
            break
        view = one.program.recolor, one.program.orient, one.program.before is None
        of_view = voters.setdefault(view, set())
        if len(of_view) < LIMITS.voters and one.program not in of_view:
            of_view.add(one.program)
            votes += 0.5 ** (cost / LIMITS.halving_cost)
    return 0, -votes


class _View:
    """A view of a task: the graph of its states under one naming of the colors, from one side."""

    def __init__(
        self,
        train: Sequence[Pair],
        test_input: np.ndarray,
        config: SearchConfig,
        clock: _Clock,
        *,
        recolor: str = "none",
        orient: str = "none",
        room: int = 1,  # sides of the largest grid that an image may have
        before: Found | None = None,  # what made the inputs
    ) -> None:
        self._clock = clock
        self._before = before
        self._recolor = recolor
        self._orient = orient
        self._max_sizes = config.sizes
        self._known_colors = {*_colors_of([test_input]), *_colors_of([target for _, target in train])}
        self.knows_size = False  # whether a rule gives the sizes of all outputs

        def seen(grid: np.ndarray, source: np.ndarray) -> np.ndarray:  # turned and named as its input says
            symmetry = ORIENTATIONS[orient](source)
            return recoloring(recolor, turned(source, symmetry))[turned(grid, symmetry)]

        self._pairs = [(seen(source, source), seen(target, source)) for source, target in train]
        self._asked = seen(test_input, test_input)
        self._symmetry = ORIENTATIONS[orient](test_input)
        self._original = np.argsort(recoloring(recolor, turned(test_input, self._symmetry))).astype(np.int8)

        inputs = [*(source for source, _ in self._pairs), self._asked]
        outputs = [target for _, target in self._pairs]
        self._keeps_sizes = all(source.shape == target.shape for source, target in self._pairs)
        self._scales = _scales(self._pairs)
        words = vocabulary(_colors_of(inputs), _colors_of(outputs), self._scales, _larger(inputs, outputs))
        height, width = self._asked.shape
        grown = [max(height * down, width * right) for down, right in self._scales]
        sides = [side for grid in (*inputs, *outputs) for side in grid.shape]
        frame = min(room * max(*sides, *grown, 3), LARGEST)
        self.graph = StateGraph(inputs, frame, words, config.max_states)
        self._answered: dict[tuple[Any, ...], list[Found]] = {}  # by finders, which no more time would change
        self.begin()

    def begin(self) -> None:
        """Take the time that the clock has now."""
        self._deadline = self._clock.until(1.0)
        self.graph.is_late = False

    def expand(self, cost: int) -> None:
        """Make all states up to a cost."""
        self.graph.expand(cost, self._clock.until(LIMITS.words_share))
        self._clock.was_over |= self.graph.is_late

    def answers(self, cost: int, is_last: bool) -> list[Found]:
        """Make the states up to a cost, guess the size of the answer, and return what the finders make of them.

        ``is_last`` says that no more states come soon, so that what explains some demonstrations is looked for, too.
        """
        self.expand(cost)
        sizes = self._guessed_sizes()
        self.knows_size = bool(sizes)
        first = self._pairs[0][1].shape
        found: list[Found] = []
        for guess, (size, rule) in enumerate((sizes or [(first, SizeRule(first))])[: self._max_sizes]):
            if guess > 0 and self._clock.is_over(self._deadline):
                break
            canvas = OutputCells(self.graph, [target for _, target in self._pairs], size)
            for find in self._finders(guess == 0, rule, cost, is_last, found):
                deadline = self._deadline
                if find in RULE_FINDERS:
                    deadline = min(self._clock.part(LIMITS.rules_share), deadline)
                key = (find, cost, is_last, size, len(self.graph))
                answers = self._answered.get(key)
                if answers is None:
                    answers = [self._found(one, rule) for one in find(canvas, deadline)]
                    if not self._clock.is_over(deadline):
                        self._answered[key] = answers
                found += answers
        return found

    def _finders(
        self, is_first: bool, rule: SizeRule, cost: int, is_last: bool, found: list[Found]
    ) -> Iterator[Finder]:
        """Yield whom to ask, by what the ones before have found; only stacks look at all states and all sizes."""
        is_cheap = cost <= LIMITS.second_cost
        if is_first and is_cheap:
            yield find_tables
        yield find_last_stacks if is_last else find_stacks
        if is_cheap:
            yield find_products
        if is_first and cost <= LIMITS.first_cost and rule == SizeRule() and not _is_sure(found):
            # Rules that draw on and templates have their mirror images, so that no side shows them more.
            yield from RULE_FINDERS if self._orient == "none" else (find_object_rules,)
        if is_first and is_cheap and is_last and not _fitting(found):
            yield find_near_tables

    def _found(self, one: Candidate, rule: SizeRule) -> Found:
        """Return a candidate in the colors and from the side of the task, with what that costs."""
        cost = one.cost + LIMITS.turned_cost * (self._orient not in ("none", "transpose"))
        cost += LIMITS.odd_size_cost * (self._keeps_sizes and rule.words != ())
        before = None
        if self._before is not None:
            before = self._before.program
            cost += self._before.cost
        program = GridProgram(one.layers, rule, self._recolor, self._orient, before)
        if program.depends_on_frame:
            program = replace(program, frame=self.graph.frame)
        named = self._original[one.answer]
        if not self._known_colors.issuperset(named.ravel().tolist()):
            cost += LIMITS.stray_cost
        return Found(turned_back(named, self._symmetry), program, one.fits, one.share, cost, self.knows_size)

    def _guessed_sizes(self) -> list[tuple[tuple[int, int], SizeRule]]:
        """Guess sizes of the answer, the likeliest first: as the input, fixed, a multiple, as a state of the search."""
        height, width = self._asked.shape
        sizes = [target.shape for _, target in self._pairs]
        rules: dict[tuple[int, int], SizeRule] = {}
        if self._keeps_sizes:
            rules[height, width] = SizeRule()
        elif len(set(sizes)) == 1:
            rules[sizes[0]] = SizeRule(sizes[0])
        for down, right in self._scales:
            if max(height * down, width * right) <= LARGEST:
                rules.setdefault((height * down, width * right), SizeRule(scale=(down, right)))
        states, numbers, costs = self.graph.image_states
        heights, widths = self.graph.sizes(numbers)
        fits = np.all((np.stack([heights, widths], 2)[:, :-1] == np.array(sizes)), axis=(1, 2))
        chosen = np.flatnonzero(fits)
        chosen = chosen[np.argsort(costs[chosen], kind="stable")]
        _, first = np.unique(heights[chosen, -1] * (LARGEST + 1) + widths[chosen, -1], return_index=True)
        for index in chosen[np.sort(first)].tolist():
            size = int(heights[index, -1]), int(widths[index, -1])
            if size not in rules:
                rules[size] = SizeRule(words=self.graph.program(int(states[index])))
        return list(rules.items())


def _scales(pairs: Sequence[Pair]) -> list[tuple[int, int]]:
    """Return the one scale of all demonstrations, if it is a whole number."""
    found = set()
    for source, target in pairs:
        (down, more), (right, rest) = map(divmod, target.shape, source.shape)
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


def _colors_of(grids: Sequence[np.ndarray]) -> list[int]:
    return np.unique(np.concatenate([grid.ravel() for grid in grids])).tolist()
