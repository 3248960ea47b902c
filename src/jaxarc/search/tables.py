"""Tables: the color of an output cell is looked up by what some images say there.

An image is a cheap state of the search, or a feature of each cell, such as the size of its object. A table of two
images of one bit each with ``0 0 -> 0, 0 1 -> 3, 1 0 -> 3, 1 1 -> 0`` is their exclusive or in color 3.
"""

import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from jaxarc.search.features import COLORED, FEATURES, NUMBERS
from jaxarc.search.graph import OutputCells
from jaxarc.search.images import NUM_COLORS, hash_bytes
from jaxarc.search.interpreter import State
from jaxarc.search.program_layers import (
    UNFORESEEN_COST,
    Candidate,
    Chain,
    Layer,
    ProgramError,
    placed,
    read_chain,
    run,
    text_of,
)
from jaxarc.search.search_library import TableTask, faults, numbered_values
from jaxarc.search.words import Word

_COPY: Final = 10  # in a table, the color of the copied image
_KEEP: Final = 11  # a cell without a row, which keeps the color of the input if the table says so
_LARGEST_VALUE: Final = 255  # of a cell of an image that holds bytes
_COPIES: Final = " copy "
_ELSE: Final = ", else = input"

_UNKNOWN_COST: Final = 10  # of rows that only the test input has; twice that if it has no other
_LAST_COLOR: Final = _COPY - 1  # what lies beside the image has none, and may be copied by a cell at the edge
_LARGEST_TABLE: Final = 6_000
_KEPT: Final = 4  # rules of a task
_SAMPLE: Final = 60_000  # pairs of cells; the library keeps the hardest to tell apart
_ROWS_OF_ONE_COST: Final = 4  # rows of a table that cost as much as half a function
_FORESEEN: Final = 1500  # cells at which tables that need not fit are compared
_MOST_SOURCES: Final = 4  # of such a table
_BEAM: Final = 6  # sets of sources that are tried with one more
_NEAR: Final = 8  # sets of sources whose tables are made
_LARGEST_NEAR: Final = 1000  # rows
_CELLS_OF_COST: Final = 2.0  # of a source that must spare a cell
_STATES: Final = 300  # cheapest states that a rule may look at
_STATE_COST: Final = 3  # of such a state at most
_FEW_CELLS: Final = 16  # of an output, whose colors may depend on the place and a number of the input
_SAYING: Final = ("cell_feature", "number", "place")  # words whose images hold bytes
_FEATURE_WORDS: Final = tuple(Word("cell_feature", (name,)) for name in FEATURES)


@dataclass(frozen=True)
class TableLayer(Layer):
    """A layer whose colors are looked up in a table, by the values of some images at the cell.

    In ``table input | crop copy smear(rows) : 0 0 = 3, 0 1 = copy`` the second row takes the color of the cell that
    ``smear(rows)`` has there. With ``else = input`` at the end, a cell without a row keeps the color of the input.
    """

    sources: tuple[Chain, ...]
    table: tuple[tuple[tuple[int, ...], int], ...]  # values -> color, or that of the copied image
    copied: Chain | None = None  # of the image whose color is copied
    keeps_unknown: bool = False
    name = "table"

    def __str__(self) -> str:
        images = " | ".join(map(text_of, self.sources))
        copied = "" if self.copied is None else f"{_COPIES}{text_of(self.copied)}"
        rows = ", ".join(
            f"{' '.join(map(str, values))} = {'copy' if color == _COPY else color}" for values, color in self.table
        )
        return f"{self.name} {images}{copied} : {rows}{_ELSE * self.keeps_unknown}"

    @classmethod
    def parse(cls, text: str) -> "TableLayer":
        keeps_unknown = text.strip().endswith(_ELSE)
        images, _, rows = text.strip().removeprefix(cls.name).removesuffix(_ELSE).partition(":")
        images, _, copied = images.partition(_COPIES)
        sources = tuple(read_chain(words) for words in images.split("|"))
        table: dict[tuple[int, ...], int] = {}
        for row in rows.split(","):
            match = re.fullmatch(r"([0-9 ]+)=\s*([0-9]|copy)", row.strip())
            values = tuple(map(int, match[1].split())) if match else ()
            if match is None or (match[2] == "copy" and not copied):
                raise ProgramError(f"{row.strip()!r} is no row of a table; write 0 5 = 3, or 0 5 = copy")
            if len(values) != len(sources) or max(values) > _LARGEST_VALUE or values in table:
                raise ProgramError(
                    f"{row.strip()!r} is no row of a table of {len(sources)} images; write a value from 0 to "
                    f"{_LARGEST_VALUE} for each, and no row twice"
                )
            table[values] = _COPY if match[2] == "copy" else int(match[2])
        return cls(sources, tuple(table.items()), read_chain(copied) if copied else None, keeps_unknown)

    @property
    def chains(self) -> list[Chain]:
        return [*self.sources, self.copied or ()]

    def draw(self, start: State, size: tuple[int, int]) -> UInt8[np.ndarray, "h w"]:
        values = np.stack([placed(run(start, words), *size) for words in self.sources], -1)
        table = dict(self.table)
        colors = np.array([[table.get(tuple(cell), _KEEP) for cell in row] for row in values.tolist()], np.uint8)
        if self.keeps_unknown:
            colors = np.where(colors == _KEEP, placed(start.images, *size), colors)
        elif (colors == _KEEP).any():
            unknown = min(values[colors == _KEEP].tolist())
            raise ProgramError(f"the table of the program has no row for {' '.join(map(str, unknown))}")
        if self.copied is None:
            return colors
        colors = np.where(colors == _COPY, placed(run(start, self.copied), *size), colors)
        if colors.max() >= NUM_COLORS:
            raise ProgramError(
                f"the table of the program copies {colors.max()} from {text_of(self.copied)}, which is no color"
            )
        return colors

    def in_words(self) -> str:
        copied = "" if self.copied is None else f" Copied are colors of: {text_of(self.copied)}."
        sources = ", ".join(map(text_of, self.sources))
        return f"Look up each cell in a table of {len(self.table)} rows, by: {sources}.{copied}"


def find_tables(canvas: OutputCells, deadline: float) -> list[Candidate]:
    """Return tables that no demonstration contradicts, the cheapest first, each with another answer.

    After the deadline, of ``time.monotonic``, nothing more is looked at.
    """
    return _tables(canvas, deadline, _exact_fits)


def find_near_tables(canvas: OutputCells, deadline: float) -> list[Candidate]:
    """Return tables with the commonest color of each row: those that foresee most cells of a demonstration."""
    return _tables(canvas, deadline, _near_fits)


def _tables(
    canvas: OutputCells, deadline: float, fits: "Callable[[Sources, Cells, float], Iterator[_Fit]]"
) -> list[Candidate]:
    if "sources" not in canvas.known:
        sources = find_sources(canvas)
        if sources is None:
            return []
        canvas.known["sources"] = sources, different_cells(sources, canvas)
    sources, cells = canvas.known["sources"]
    if time.monotonic() > deadline:
        return []
    found: dict[bytes, Candidate] = {}
    for fit in fits(sources, cells, deadline):
        answer = fit.drawn(canvas.slices[-1])
        if answer.max() <= _LAST_COLOR and answer.tobytes() not in found:
            found[answer.tobytes()] = canvas.candidate((fit.layer(cells),), fit.cost, fit.drawn(slice(None)))
        if len(found) == _KEPT or time.monotonic() > deadline:
            break
    return list(found.values())


class Sources(NamedTuple):
    """What a table may look at: the value of each source at each cell of the outputs. Each one says something else."""

    words: list[Chain]
    values: UInt8[np.ndarray, "K M"]
    codes: UInt8[np.ndarray, "K M"]  # the values numbered from 0
    num_values: Int64[np.ndarray, " K"]
    costs: Int64[np.ndarray, " K"]
    have_colors: Bool[np.ndarray, " K"]

    @property
    def has_input(self) -> bool:
        """Whether the first one is the input, which then has the size of the output."""
        return not self.words[0]


def find_sources(canvas: OutputCells) -> Sources | None:
    """Return the images that a table may look at; the input comes first if it has the size. None if there is none."""
    graph = canvas.graph
    states, numbers, costs = graph.image_states
    cheap = np.flatnonzero(costs <= _STATE_COST)
    cheap = cheap[np.argsort(costs[cheap], kind="stable")]
    cheap = cheap[canvas.is_exact(numbers[cheap])][:_STATES]
    words = [graph.program(state) for state in states[cheap].tolist()]
    values, all_costs = [canvas.draw(numbers[cheap])], costs[cheap].tolist()
    if words:  # features of the input, if it has the size, or else of the cheapest state that has it
        values.append(graph.features(numbers[cheap[0]]))
        all_costs += [all_costs[0] + word.cost for word in _FEATURE_WORDS]
        words += [(*words[0], word) for word in _FEATURE_WORDS]
    sizes = set(canvas.sizes)
    if len(sizes) == 1 and math.prod(canvas.sizes[0]) <= _FEW_CELLS:  # a table of all cells for each number of an input
        start = graph.images(numbers[np.argmin(costs)], graph.frame)
        for word in (Word("place", (canvas.sizes[0][1],)), *(Word("number", (name,)) for name in NUMBERS)):
            values.append(canvas.draw(graph.add(word.of_images(start))[None]))
            all_costs.append(word.cost)
            words.append((word,))
    if not words:
        return None
    have_colors = np.array([not one or one[-1].name not in _SAYING or one[-1].arguments[0] in COLORED for one in words])
    cells = np.concatenate(values)
    codes, num_values, are_new = numbered_values(cells, have_colors)
    kept = np.flatnonzero(are_new)
    words = [words[place] for place in kept.tolist()]
    return Sources(words, cells[kept], codes[kept], num_values[kept], np.array(all_costs)[kept], have_colors[kept])


class Cells(NamedTuple):
    """Cells that differ in a source, in their color or their demonstration: a rule right on these is right on all."""

    demonstrated: Int64[np.ndarray, " D"]
    colors: Int64[np.ndarray, " D"]
    pairs: Int64[np.ndarray, " D"]  # their demonstrations
    counts: Int64[np.ndarray, " D"]  # how many cells each stands for
    asked: Int64[np.ndarray, " A"]  # of the test input


def different_cells(sources: Sources, canvas: OutputCells) -> Cells:
    """Join the cells that look the same to all sources and have the same color in the output, and count them."""
    size = len(canvas.target)
    pairs = np.repeat(np.arange(len(canvas.outputs)), [pair.stop - pair.start for pair in canvas.slices[:-1]])
    demonstrated = np.concatenate([sources.codes[:, :size], canvas.target[None], pairs[None].astype(np.uint8)])
    _, first, counts = np.unique(hash_bytes(demonstrated.T), return_index=True, return_counts=True)
    _, asked = np.unique(hash_bytes(sources.codes[:, size:].T), return_index=True)
    return Cells(first, canvas.target[first].astype(np.int64), pairs[first], counts, size + asked)


class _Fit(NamedTuple):
    """Sources with their table."""

    cost: int
    sources: Sources
    chosen: tuple[int, ...]
    copied: int | None
    colors: UInt8[np.ndarray, " N"]  # of each row of the table; _COPY: that of the copied source; _KEEP: of the input

    def drawn(self, cells: np.ndarray | slice) -> UInt8[np.ndarray, " M"]:
        """Return the colors of some cells."""
        colors = self.colors[_codes(self.sources, self.chosen, cells)]
        colors = np.where(colors == _KEEP, self.sources.values[0, cells], colors)
        if self.copied is None:
            return colors
        return np.where(colors == _COPY, self.sources.values[self.copied, cells], colors)

    def layer(self, cells: Cells) -> TableLayer:
        """Return the table with the rows that the demonstrations have."""
        words, at = self.sources.words, cells.demonstrated
        values = np.stack([self.sources.values[one, at] for one in self.chosen], 1)
        keys, first = np.unique(values, axis=0, return_index=True)
        colors = self.colors[_codes(self.sources, self.chosen, at[first])]
        table = tuple((tuple(key), color) for key, color in zip(keys.tolist(), colors.tolist(), strict=True))
        copied = None if self.copied is None else words[self.copied]
        return TableLayer(tuple(words[one] for one in self.chosen), table, copied, bool((self.colors == _KEEP).any()))


def _table_task(sources: Sources, cells: Cells) -> TableTask:
    """Return what tables of these cells cost; a row that only the test input has keeps the color of the input.

    A demonstration with a row that no other has makes a table dear: without it, the table would not foresee it.
    """
    task = TableTask()
    task.set(
        values=sources.values.take(cells.demonstrated, 1),
        codes=sources.codes.take(cells.demonstrated, 1),
        asked_codes=sources.codes.take(cells.asked, 1),
        num_values=sources.num_values,
        costs=sources.costs,
        have_colors=sources.have_colors,
        colors=cells.colors.astype(np.uint8),
        pairs=cells.pairs.astype(np.uint8),
        counts=cells.counts,
        num_sources=len(sources.words),
        count=len(cells.demonstrated),
        num_asked=len(cells.asked),
        most_rows=_LARGEST_TABLE,
        keeps_unknown=sources.has_input,
        unknown_cost=_UNKNOWN_COST,
        unforeseen_cost=UNFORESEEN_COST,
        rows_of_one_cost=_ROWS_OF_ONE_COST,
    )
    return task


def _exact_fits(sources: Sources, cells: Cells, deadline: float) -> Iterator[_Fit]:
    """Yield tables that no cell contradicts, the cheapest first."""
    sample = np.random.default_rng(0).integers(0, len(cells.demonstrated), (2, _SAMPLE))
    tables = _table_task(sources, cells).right_tables(sample, deadline - time.monotonic())
    for row in np.argsort(tables[:, -1], kind="stable").tolist():
        *places, copied, cost = tables[row].tolist()
        chosen = tuple(place for place in places if place >= 0)
        seen = np.zeros((math.prod(sources.num_values[place] for place in chosen), NUM_COLORS), np.bool_)
        seen[_codes(sources, chosen, cells.demonstrated), cells.colors] = True
        num_colors = seen.sum(1)
        colors = seen.argmax(1).astype(np.uint8)
        if copied >= 0:
            colors[num_colors > 1] = _COPY
        if not num_colors[_codes(sources, chosen, cells.asked)].all():
            colors[num_colors == 0] = _KEEP
        yield _Fit(cost, sources, chosen, copied if copied >= 0 else None, colors)


def _foreseeing(sources: Sources, cells: Cells, deadline: float) -> list[tuple[int, ...]]:
    """Return sets of sources whose tables, made of all demonstrations but one, foresee most cells of that one.

    A beam: of single sources those that foresee most, of these with one more, and so on.
    """
    sample = np.arange(len(cells.demonstrated))
    if len(sample) > _FORESEEN:
        sample = np.random.default_rng(0).choice(sample, _FORESEEN, replace=False)
    codes = sources.codes.take(cells.demonstrated[sample], 1)
    votes = (
        np.unique(cells.colors, return_inverse=True)[1][sample],  # the colors, numbered from 0
        cells.pairs[sample],
        cells.counts[sample].astype(np.float64),
        _is_copied(sources, cells)[sample],
    )
    costs = sources.costs / _CELLS_OF_COST
    beam: list[tuple[int, ...]] = [()]
    found: dict[tuple[int, ...], float] = {}
    for _ in range(_MOST_SOURCES):
        new: dict[tuple[int, ...], float] = {}
        for chosen in beam:
            if time.monotonic() > deadline:
                return []
            rows = np.zeros(len(sample), np.int64)
            for index in chosen:
                rows = np.unique(rows * sources.num_values[index] + codes[index], return_inverse=True)[1]
            missed = faults(codes, sources.num_values, rows, *votes, _LARGEST_NEAR) + costs + costs[list(chosen)].sum()
            for index in np.argsort(missed, kind="stable")[:_BEAM].tolist():
                if index not in chosen and np.isfinite(missed[index]):
                    new[tuple(sorted((*chosen, index)))] = float(missed[index])
        beam = sorted(new, key=new.__getitem__)[:_BEAM]
        found.update((chosen, new[chosen]) for chosen in beam)
    return sorted(found, key=found.__getitem__)[:_NEAR]


def _is_copied(sources: Sources, cells: Cells) -> Bool[np.ndarray, " D"]:
    """Whether the output has the color of the input at a cell; nowhere if the sizes differ."""
    return (sources.values[0, cells.demonstrated] == cells.colors) & sources.has_input


def _near_fits(sources: Sources, cells: Cells, deadline: float) -> Iterator[_Fit]:
    """Yield tables with the commonest color of each row, or with that of the input where it is as common."""
    task = _table_task(sources, cells)
    task.set(keeps_unknown=True, unknown_cost=0)
    for chosen in _foreseeing(sources, cells, deadline):
        count = math.prod(sources.num_values[place] for place in chosen)
        if count > _LARGEST_TABLE:
            continue
        keys = _codes(sources, chosen, cells.demonstrated)
        votes = np.bincount(keys * NUM_COLORS + cells.colors, cells.counts, count * NUM_COLORS)
        votes = votes.reshape(count, NUM_COLORS)
        copies = np.bincount(keys, cells.counts * _is_copied(sources, cells), count)
        colors = np.where(copies >= votes.max(1), _COPY, votes.argmax(1)).astype(np.uint8)
        is_known = np.asarray(votes.any(1))
        if not sources.has_input and not is_known[_codes(sources, chosen, cells.asked)].all():
            continue
        colors[~is_known] = _KEEP if sources.has_input else 0
        yield _Fit(task.cost(chosen), sources, chosen, 0 if sources.has_input else None, colors)


def _codes(sources: Sources, chosen: tuple[int, ...], cells: np.ndarray | slice) -> Int64[np.ndarray, " M"]:
    """Number the values of some sources together: with counts 3 and 4, the values 2 and 1 are number 9."""
    codes = sources.codes[chosen[0], cells].astype(np.int64)
    for one in chosen[1:]:
        codes = codes * sources.num_values[one] + sources.codes[one, cells]
    return codes
