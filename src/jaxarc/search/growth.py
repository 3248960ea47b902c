"""Rules that draw on: a cell takes a color by its neighbors, again and again until nothing changes.

``0 left x = x`` lets each color grow to the right over color 0: ``3 0 0 0`` becomes ``3 3 0 0``, then ``3 3 3 0``, then
``3 3 3 3``. With all mirror images it grows in four directions. A cell changes once at most.
"""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import UInt8

from jaxarc.search.graph import OutputCells
from jaxarc.search.marks import STEPS
from jaxarc.search.program_layers import UNFORESEEN_COST, Candidate, RuleLayer
from jaxarc.search.search_library import call

PLACES: Final = {**STEPS, **{f"{name}_2": (2 * down, 2 * right) for name, (down, right) in STEPS.items()}}
"""Name of a neighbor -> rows and columns to it."""
_EDGE, _SAME, _OTHER, _ANY = 10, 11, 12, 15  # besides colors: outside, color x, any color but 0 and x, not looked at
_TOKENS: Final = {**{str(color): color for color in range(10)}, "edge": _EDGE, "x": _SAME, "other": _OTHER}
_NAMES: Final = {token: name for name, token in _TOKENS.items()}
# Each mirror image as: rows and columns exchanged first, factors of both.
_MIRRORS: Final = (
    *((False, 1, 1), (False, -1, -1), (True, -1, 1), (True, 1, -1)),
    *((False, 1, -1), (False, -1, 1), (True, 1, 1), (True, -1, -1)),
)
MIRRORS: Final = {
    "all": _MIRRORS,
    "turns": _MIRRORS[:4],
    "flips": (*_MIRRORS[:2], *_MIRRORS[4:6]),
    "left_right": (_MIRRORS[0], _MIRRORS[4]),
    "top_bottom": (_MIRRORS[0], _MIRRORS[5]),
    "none": _MIRRORS[:1],
}
"""Name -> the mirror images for which rules stand, too."""
_BORDER: Final = 2
_ROOM: Final = 16  # rules
_BASE_COST: Final = 4
_SURE_COST: Final = 16  # of rules beside which no others are looked for


class GrowthRule(NamedTuple):
    """The color of a cell, what some neighbors must be, and the color that the cell takes."""

    own: int
    tests: tuple[tuple[str, int], ...]  # a name of PLACES with a color, or what else there may be
    color: int  # or _SAME

    def __str__(self) -> str:
        tests = " ".join(f"{place} {_NAMES[token]}" for place, token in self.tests)
        return f"{self.own} {tests} = {_NAMES[self.color]}"

    @classmethod
    def parse(cls, text: str) -> "GrowthRule | None":
        """Read a rule back from its text; None if it says none."""
        before, _, color = text.partition("=")
        own, *tests = before.split() or [""]
        if len(tests) % 2 or not tests or not re.fullmatch("[0-9]", own):
            return None
        pairs = tuple(zip(tests[::2], tests[1::2], strict=True))
        if not all(place in PLACES and token in _TOKENS for place, token in pairs):
            return None
        color = color.strip()
        has_same = any(token == "x" for _, token in pairs)
        if not re.fullmatch("[0-9]|x" if has_same else "[0-9]", color):
            return None
        return cls(int(own), tuple((place, _TOKENS[token]) for place, token in pairs), _TOKENS[color])


@dataclass(frozen=True)
class Growth(RuleLayer):
    """Rules with the mirror images for which they stand, such as quarter turns in ``grow by turns : 0 up x = x``."""

    mirrors: str
    rules: tuple[GrowthRule, ...]
    name = "grow"
    about = "Draw on, with mirror images"
    example = f"by one of {', '.join(MIRRORS)}, then 0 left x = x, or 0 up 2 left edge = 3"

    @property
    def text(self) -> str:
        return f"by {self.mirrors} : {', '.join(map(str, self.rules))}"

    @classmethod
    def parse(cls, text: str) -> "Growth":
        head, _, rows = text.strip().removeprefix(cls.name).partition(":")
        mirrors = head.strip().removeprefix("by ").strip()
        if mirrors not in MIRRORS:
            raise cls.refusal(mirrors)
        rules = []
        for row in rows.split(","):
            rule = GrowthRule.parse(row)
            if rule is None:
                raise cls.refusal(row.strip())
            rules.append(rule)
        return cls(mirrors, tuple(rules))

    def drawn(self, grid: UInt8[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
        return grown(grid, self.rules, self.mirrors)


def grown(grid: UInt8[np.ndarray, "h w"], rules: Sequence[GrowthRule], mirrors: str) -> UInt8[np.ndarray, "h w"]:
    """Apply rules until nothing changes: the first one that fits, and of its mirror images the first one."""
    padded = np.pad(grid, _BORDER, constant_values=_EDGE)
    inside = padded[_BORDER:-_BORDER, _BORDER:-_BORDER]
    height, width = grid.shape
    is_done = np.zeros(grid.shape, np.bool_)

    def seen(place: str, mirror: tuple[bool, int, int]) -> np.ndarray:
        down, right = PLACES[place][::-1] if mirror[0] else PLACES[place]
        top, left = _BORDER + down * mirror[1], _BORDER + right * mirror[2]
        return padded[top : top + height, left : left + width]

    while True:
        colors = np.full(grid.shape, _ANY, np.uint8)
        for rule in rules:
            is_open = (inside == rule.own) & ~is_done & (colors == _ANY)
            for mirror in MIRRORS[mirrors] if is_open.any() else ():
                fits = is_open.copy()
                same = np.zeros(grid.shape, np.uint8)
                for place, token in sorted(rule.tests, key=lambda test: test[1] != _SAME):
                    found = seen(place, mirror)
                    is_color = (found != 0) & (found != _EDGE)
                    if token == _SAME:
                        fits &= is_color & ((same == 0) | (found == same))
                        same = found.copy()
                    else:
                        fits &= is_color & (found != same) if token == _OTHER else found == token
                color = same if rule.color == _SAME else np.full(grid.shape, rule.color, np.uint8)
                fits &= color != rule.own
                colors[fits] = color[fits]
                is_open &= ~fits
        changes = colors != _ANY
        if not changes.any():
            return inside.copy()
        inside[changes] = colors[changes]
        is_done |= changes


def find_growth(canvas: OutputCells, deadline: float) -> list[Candidate]:
    """Return rules that make each input its output, the cheapest first.

    A demonstration that the rules of all others do not explain makes rules dear. After the deadline, of
    ``time.monotonic``, none are looked for any more.
    """
    return canvas.ruled(list(_explaining(canvas.graph.inputs[:-1], canvas.outputs, deadline)))


def _explaining(
    inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], deadline: float
) -> Iterator[tuple[Growth, int]]:
    """Yield the rules with their costs."""
    is_sure = False
    for num_places in (len(STEPS), len(PLACES)):  # near neighbors first, and others if these explain too little
        for mirrors in MIRRORS:
            rules = () if time.monotonic() > deadline else _learned(inputs, outputs, mirrors, num_places)
            if not rules:
                continue
            unforeseen = 0
            for left_out in range(len(inputs)):
                if time.monotonic() > deadline:
                    return
                rest = [index for index in range(len(inputs)) if index != left_out]
                others = _learned([inputs[one] for one in rest], [outputs[one] for one in rest], mirrors, num_places)
                unforeseen += not np.array_equal(grown(inputs[left_out], others, mirrors), outputs[left_out])
            cost = _BASE_COST + sum(1 + len(rule.tests) for rule in rules) + UNFORESEEN_COST * unforeseen
            is_sure |= cost <= _SURE_COST
            yield Growth(mirrors, rules), cost
        if is_sure:
            break


def _learned(
    inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], mirrors: str, num_places: int
) -> tuple[GrowthRule, ...]:
    """Return the rules that the library finds by the first of the places; none if there are none."""
    if not inputs:
        return ()
    sizes = np.array([grid.shape for grid in inputs], np.int32)
    before, after = (np.concatenate([grid.ravel() for grid in grids]).astype(np.uint8) for grids in (inputs, outputs))
    found = np.empty((_ROOM, 3), np.uint64)
    count = call("growth", len(inputs), sizes, before, after, list(MIRRORS).index(mirrors), num_places, found)
    rules = []
    for places, own, color in found[:count].tolist():
        tokens = [(name, places >> 4 * place & 15) for place, name in enumerate(PLACES)]
        rules.append(GrowthRule(own, tuple(test for test in tokens if test[1] != _ANY), color))
    return tuple(rules)
