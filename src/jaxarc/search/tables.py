"""Rules learned from the demonstrations: the color of an output cell is looked up by what some images say there.

An image is a cheap state of the search, or a feature of each cell, such as the size of its object. A table of two
images of one bit each with ``0 0 -> 0, 0 1 -> 3, 1 0 -> 3, 1 1 -> 0`` is their exclusive or in color 3.
"""

import math
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8, UInt64

from jaxarc.search.graph import StateGraph
from jaxarc.search.pieces import UNFORESEEN_COST, OutputCells, packed
from jaxarc.search.programs import COPY, TableLayer
from jaxarc.search.search_library import TableTask, faults
from jaxarc.search.sources import Cells, Source, different_cells, find_sources

_TRIED: Final = 200  # sets of sources for each that is copied from
_COPIED: Final = 24  # sources that a table may copy from: those that are right most often
_UNKNOWN_COST: Final = 10  # of rows that only the test input has; twice that if it has no other
_KEEP: Final = COPY + 1
_LAST_COLOR: Final = COPY - 1  # what lies beside the image has none, and may be copied by a cell at the edge
_LARGEST_TABLE: Final = 6_000
_FEW: Final = 8  # values of a source that three may stand together with
_KEPT: Final = 4  # rules of a task
_SAMPLE: Final = 60_000  # pairs of cells, of which the hardest to tell apart are kept
_HARDEST: Final = 2048
_ROWS_OF_ONE_COST: Final = 4  # rows of a table that cost as much as half a function
_FORESEEN: Final = 1500  # cells at which tables that need not fit are compared
_MOST_SOURCES: Final = 4  # of such a table
_BEAM: Final = 6  # sets of sources that are tried with one more
_NEAR: Final = 8  # sets of sources whose tables are made
_LARGEST_NEAR: Final = 1000  # rows
_CELLS_OF_COST: Final = 2.0  # of a source that must spare a cell


class TableRule(NamedTuple):
    """A table from the values of some images at a cell to its color."""

    layer: TableLayer
    cost: int
    fits: tuple[bool, ...]  # whether each demonstration comes out exactly
    share: float  # of the cells of all outputs that come out right
    answer: UInt8[np.ndarray, "h w"]


def learn_rules(graph: StateGraph, canvas: OutputCells, deadline: float, is_exact: bool = True) -> list[TableRule]:
    """Return rules that give the cells of the outputs; the best first.

    Args:
        graph: its cheap states are what a rule looks at.
        canvas: the outputs and the size of the answer.
        deadline: of ``time.monotonic``, after which nothing more is looked at.
        is_exact: whether a rule must give every cell; else it has the commonest color of each row.
    """
    sources = find_sources(graph, canvas, deadline)
    if not sources or time.monotonic() > deadline:
        return []
    cells = different_cells(sources, canvas)
    if time.monotonic() > deadline:
        return []
    if is_exact:
        tried = _exact_fits(sources, cells, deadline)
    else:
        tried = (_near_fit(chosen, cells, sources[0]) for chosen in _foreseeing(sources, cells, deadline))
    rules: dict[bytes, TableRule] = {}
    for fit in tried:
        if fit is not None:
            answer = fit.answer(slice(len(canvas.target), None))
            if answer.max() <= _LAST_COLOR and answer.tobytes() not in rules:
                rules[answer.tobytes()] = fit.rule(cells, answer.reshape(canvas.sizes[-1]))
        if len(rules) == _KEPT or time.monotonic() > deadline:
            break
    return list(rules.values())


class _Fit(NamedTuple):
    """Sources with their table."""

    cost: int
    chosen: tuple[Source, ...]
    copied: Source | None
    colors: UInt8[np.ndarray, " N"]  # of each row of the table; COPY: that of the copied source; _KEEP: of the input
    own: Source

    def answer(self, cells: np.ndarray | slice) -> UInt8[np.ndarray, " M"]:
        """Return the colors of some cells."""
        colors = self.colors[_codes(self.chosen, cells)]
        colors = np.where(colors == _KEEP, self.own.values[cells], colors)
        return colors if self.copied is None else np.where(colors == COPY, self.copied.values[cells], colors)

    def rule(self, cells: Cells, answer: UInt8[np.ndarray, "h w"]) -> TableRule:
        """Return the table with the rows that the demonstrations have."""
        at = cells.demonstrated
        keys, first = np.unique(np.stack([one.values[at] for one in self.chosen], 1), axis=0, return_index=True)
        colors = self.colors[_codes(self.chosen, at[first])]
        table = tuple((tuple(key), color) for key, color in zip(keys.tolist(), colors.tolist(), strict=True))
        copied = None if self.copied is None else self.copied.words
        keeps_unknown = bool((self.colors == _KEEP).any())
        right = self.answer(at) == cells.colors
        wrong = np.bincount(cells.pairs, ~right, cells.num_pairs)
        share = float((cells.counts * right).sum() / cells.counts.sum())
        sources = tuple(one.words for one in self.chosen)
        layer = TableLayer(sources, table, copied, keeps_unknown)
        return TableRule(layer, self.cost, tuple((wrong == 0).tolist()), share, answer)


class _Separation(NamedTuple):
    """Pairs of cells of different colors, and which sources tell them apart.

    A bit says that a source is equal at both cells of a pair. Sources tell every pair apart where no bit is left by
    ``and``: of four pairs, ``1100`` and ``0011`` do together, ``1100`` and ``0110`` leave the second pair. A pair whose
    cells both have the color of a copied source needs no source that separates it.
    """

    first: Int64[np.ndarray, " T"]  # cells
    second: Int64[np.ndarray, " T"]
    codes: UInt8[np.ndarray, "K D"]  # of the sources at all cells
    bits: UInt64[np.ndarray, "K W"]
    few: Bool[np.ndarray, " K"]  # whether a source has few values, so that three may stand together
    copied: list[int]  # sources that a table may copy from: those that are right most often


def _separation(sources: list[Source], cells: Cells) -> _Separation | None:
    """Sample pairs of cells, and keep the hardest to tell apart; None where all cells have one color."""
    random = np.random.default_rng(0)
    first, second = random.integers(0, len(cells.demonstrated), (2, _SAMPLE))
    differ = cells.colors[first] != cells.colors[second]
    first, second = first[differ], second[differ]
    if not len(first):
        return None
    codes = np.stack([one.codes[cells.demonstrated] for one in sources]).astype(np.uint8)
    rows = np.ascontiguousarray(codes.T)
    equal = rows[first] == rows[second]
    hardest = np.argsort(-equal.sum(1), kind="stable")[:_HARDEST]
    few = np.array([one.num_values <= _FEW for one in sources])
    few[0] = False
    shown = np.stack([one.values[cells.demonstrated] for one in sources])
    shares = (shown == cells.colors) @ cells.counts
    copied = np.argsort(-shares, kind="stable")[:_COPIED].tolist()
    bits = packed(np.ascontiguousarray(equal[hardest].T))
    return _Separation(first[hardest], second[hardest], codes, bits, few, copied)


def _exact_fits(sources: list[Source], cells: Cells, deadline: float) -> Iterator["_Fit | None"]:
    """Yield tables that no cell contradicts, the cheapest first."""
    pairs = _separation(sources, cells)
    if pairs is None or time.monotonic() > deadline:
        return
    found: list[tuple[int, tuple[Source, ...], Source | None]] = []
    for cost, chosen, copied in _right_tables(sources, cells, pairs):
        found.append((cost, tuple(sources[index] for index in chosen), copied))
        if time.monotonic() > deadline:
            break
    for _, chosen, copied in sorted(found, key=lambda one: one[0]):
        yield _fit(chosen, copied, cells, sources[0])


def _right_tables(
    sources: list[Source], cells: Cells, pairs: _Separation
) -> Iterator[tuple[int, tuple[int, ...], Source | None]]:
    """Yield cost, sources and what is copied of the tables that are right."""
    values = {
        "bits": pairs.bits,
        "allowed": np.full(pairs.bits.shape[1], ~np.uint64(0)),
        "are_few": pairs.few,
        "codes": pairs.codes,
        "asked_codes": np.stack([one.codes[cells.asked] for one in sources]).astype(np.uint8),
        "num_values": np.array([one.num_values for one in sources]),
        "costs": np.array([one.cost for one in sources]),
        "colors": cells.colors.astype(np.uint8),
        "pairs": cells.pairs.astype(np.uint8),
        "num_sources": len(sources),
        "words": pairs.bits.shape[1],
        "count": len(cells.demonstrated),
        "num_asked": len(cells.asked),
        "most_rows": _LARGEST_TABLE,
        "tried": _TRIED,
        "keeps_unknown": not sources[0].words,
        "unknown_cost": _UNKNOWN_COST,
        "unforeseen_cost": UNFORESEEN_COST,
        "rows_of_one_cost": _ROWS_OF_ONE_COST,
    }
    task = TableTask()
    task.set(**values)
    yield from ((cost, chosen, None) for cost, chosen in task.right_tables())
    for copied, both in _copied(sources, cells, pairs):
        given = {"allowed": ~both, "copied": copied.values[cells.demonstrated], "base_cost": copied.cost + 2}
        task.set(**given)
        yield from ((cost, chosen, copied) for cost, chosen in task.right_tables())


def _copied(
    sources: list[Source], cells: Cells, pairs: _Separation
) -> Iterator[tuple[Source, UInt64[np.ndarray, " W"]]]:
    """Yield what a table may copy from, with the pairs that then need no other source."""
    for index in pairs.copied:
        is_right = sources[index].values[cells.demonstrated] == cells.colors
        both = packed((is_right[pairs.first] & is_right[pairs.second])[None])[0]
        if sources[index].has_colors and both.any():
            yield sources[index], both


def _fit(chosen: tuple[Source, ...], copied: Source | None, cells: Cells, own: Source) -> _Fit | None:
    """Return the table of some sources; None if a demonstration contradicts it.

    A row that only the test input has keeps the color of the input, if that has the size. A demonstration with a row
    that no other has makes the table dear: without that demonstration, it would not foresee it.
    """
    count = math.prod(one.num_values for one in chosen)
    if not 2 <= count <= _LARGEST_TABLE:
        return None
    keys = _codes(chosen, cells.demonstrated)
    seen = np.zeros((count, 10), np.bool_)
    seen[keys, cells.colors] = True
    num_colors = seen.sum(1)
    colors = seen.argmax(1).astype(np.uint8)
    cost = sum(one.cost for one in chosen) + 2 * (len(chosen) - 1)
    if copied is None:
        is_right = num_colors.max() == 1
    else:
        colors[num_colors > 1] = COPY
        is_right = not ((colors[keys] == COPY) & (copied.values[cells.demonstrated] != cells.colors)).any()
        is_right &= (num_colors > 1).any()
        cost += copied.cost + 2
    if not is_right:
        return None
    is_known = (num_colors > 0)[_codes(chosen, cells.asked)]
    if not is_known.all():
        if own.words:
            return None
        colors[num_colors == 0] = _KEEP
        cost += _UNKNOWN_COST + int(_UNKNOWN_COST * (1 - is_known.mean()))
    shown = np.zeros((count, cells.num_pairs), np.bool_)
    shown[keys, cells.pairs] = True
    unforeseen = int(shown[shown.sum(1) == 1].any(0).sum())
    cost += int((num_colors > 0).sum()) // _ROWS_OF_ONE_COST + UNFORESEEN_COST * unforeseen
    return _Fit(cost, chosen, copied, colors, own)


def _foreseeing(sources: list[Source], cells: Cells, deadline: float) -> list[tuple[Source, ...]]:
    """Return sources whose tables, made of all demonstrations but one, foresee most cells of that one.

    A beam: of single sources those that foresee most, of these with one more, and so on.
    """
    sample = np.arange(len(cells.demonstrated))
    if len(sample) > _FORESEEN:
        sample = np.random.default_rng(0).choice(sample, _FORESEEN, replace=False)
    votes = _Votes(
        np.stack([one.codes[cells.demonstrated[sample]] for one in sources]).astype(np.uint8),
        np.array([one.num_values for one in sources]),
        np.unique(cells.colors, return_inverse=True)[1][sample],
        cells.pairs[sample],
        cells.counts[sample].astype(np.float64),
        _is_copied(sources[0], cells)[sample],
    )
    costs = np.array([one.cost for one in sources]) / _CELLS_OF_COST
    beam: list[tuple[int, ...]] = [()]
    found: dict[tuple[int, ...], float] = {}
    for _ in range(_MOST_SOURCES):
        new: dict[tuple[int, ...], float] = {}
        for chosen in beam:
            if time.monotonic() > deadline:
                return []
            faults = votes.faults(chosen) + costs + costs[list(chosen)].sum()
            for index in np.argsort(faults, kind="stable")[:_BEAM].tolist():
                if index not in chosen and np.isfinite(faults[index]):
                    new[tuple(sorted((*chosen, index)))] = float(faults[index])
        beam = sorted(new, key=new.__getitem__)[:_BEAM]
        found.update((chosen, new[chosen]) for chosen in beam)
    return [tuple(sources[index] for index in chosen) for chosen in sorted(found, key=found.__getitem__)[:_NEAR]]


class _Votes(NamedTuple):
    """Cells of the demonstrations, of which the tables of all others foresee those of each one."""

    codes: UInt8[np.ndarray, "K D"]  # of each source
    num_values: Int64[np.ndarray, " K"]
    colors: Int64[np.ndarray, " D"]  # numbered from 0
    pairs: Int64[np.ndarray, " D"]
    weights: Float64[np.ndarray, " D"]
    is_copied: Bool[np.ndarray, " D"]  # whether the color is that of the input

    def faults(self, chosen: tuple[int, ...]) -> Float64[np.ndarray, " K"]:
        """Return how many cells a table of some sources and one more does not foresee, for each one more.

        A row votes for a color, or for that of the input, and counts what its demonstration did not vote for. With
        votes ``2 0`` of one demonstration and ``1 3`` of another, the first foresees one cell of the second, and the
        second none of the first.
        """
        rows = np.zeros(len(self.colors), np.int64)
        for index in chosen:
            rows = np.unique(rows * self.num_values[index] + self.codes[index], return_inverse=True)[1]
        return faults(
            self.codes, self.num_values, rows, self.colors, self.pairs, self.weights, self.is_copied, _LARGEST_NEAR
        )


def _is_copied(own: Source, cells: Cells) -> Bool[np.ndarray, " D"]:
    """Whether the output has the color of the input at a cell; nowhere if the sizes differ."""
    return (own.values[cells.demonstrated] == cells.colors) & (not own.words)


def _near_fit(chosen: tuple[Source, ...], cells: Cells, own: Source) -> _Fit | None:
    """Return the table with the commonest color of each row, or with that of the input where it is as common."""
    count = math.prod(one.num_values for one in chosen)
    if count > _LARGEST_TABLE:
        return None
    keys = _codes(chosen, cells.demonstrated)
    votes = np.bincount(keys * 10 + cells.colors, cells.counts, count * 10).reshape(count, 10)
    copies = np.bincount(keys, cells.counts * _is_copied(own, cells), count)
    colors = np.where(copies >= votes.max(1), COPY, votes.argmax(1)).astype(np.uint8)
    is_known = np.asarray(votes.any(1))
    colors[~is_known] = 0 if own.words else _KEEP
    if own.words and not is_known[_codes(chosen, cells.asked)].all():
        return None
    shown = np.zeros((count, cells.num_pairs), np.bool_)
    shown[keys, cells.pairs] = True
    unforeseen = int(shown[shown.sum(1) == 1].any(0).sum())
    cost = sum(one.cost for one in chosen) + 2 * (len(chosen) - 1) + int(is_known.sum()) // _ROWS_OF_ONE_COST
    cost += UNFORESEEN_COST * unforeseen
    return _Fit(cost, chosen, None if own.words else own, colors, own)


def _codes(chosen: tuple[Source, ...], cells: np.ndarray | slice) -> Int64[np.ndarray, " M"]:
    """Number the values of some sources together: with counts 3 and 4, the values 2 and 1 are number 9."""
    codes = chosen[0].codes[cells]
    for one in chosen[1:]:
        codes = codes * one.num_values + one.codes[cells]
    return codes
