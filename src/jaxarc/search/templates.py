"""Templates: an object of several colors is drawn again where some of its cells are, mirrored, turned or enlarged.

Of the template ``1 2 3`` and a cell ``1`` with a ``3`` two steps below it, ``by turns : keep`` draws the ``2`` between
them.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import UInt8

from jaxarc.search.graph import OutputCells
from jaxarc.search.growth import MIRRORS
from jaxarc.search.object_rules import Scene
from jaxarc.search.program_layers import Candidate, RuleLayer

SOURCES: Final = ("keep", "clear")
"""What is done with the templates themselves."""
_KINDS: Final = ("none", "left_right", "top_bottom", "flips", "turns", "all")
_MANY: Final = 400  # cells of templates times objects, with more of which a grid is a picture
_SCALES: Final = (1, 2, 3, 4)
_LEAST: Final = 2  # cells of a template that are there; one where all but one have the same color
_BASE_COST: Final = 4

Cells = dict[tuple[int, int], int]  # with their colors


@dataclass(frozen=True)
class Templates(RuleLayer):
    """The mirror images in which templates are drawn, and whether the templates stay."""

    mirrors: str
    source: str
    name = "templates"
    about = "Complete what has cells of a template, with mirror images"
    example = f"by one of {', '.join(MIRRORS)}, then one of {', '.join(SOURCES)}"

    @property
    def text(self) -> str:
        return f"by {self.mirrors} : {self.source}"

    @classmethod
    def parse(cls, text: str) -> "Templates":
        head, _, source = (part.strip() for part in text.strip().removeprefix(cls.name).partition(":"))
        mirrors = head.removeprefix("by ").strip()
        if mirrors not in MIRRORS or source not in SOURCES:
            raise cls.refusal(source if mirrors in MIRRORS else mirrors)
        return cls(mirrors, source)

    def drawn(self, grid: UInt8[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
        return self.made(grid, _placements(grid))

    def made(self, grid: np.ndarray, placements: "list[_Placement]") -> UInt8[np.ndarray, "h w"]:
        """Draw those of some placements that best cover the objects of the grid, each object once."""
        result = grid.astype(np.uint8)
        used: set[int] = set()
        for one in placements:
            if one.mirror in MIRRORS[self.mirrors] and used.isdisjoint(one.touched):
                used |= one.touched
                for place, color in one.cells.items():
                    result[place] = color
        if self.source == "clear":
            for place in {place for one in placements for place in one.template}:
                result[place] = 0
        return result


class _Placement(NamedTuple):
    """A template on a grid, where it covers other objects as a whole and else only color 0."""

    num_matched: int  # cells of the template that are there
    mirror: tuple[bool, int, int]
    touched: frozenset[int]  # objects that it covers
    cells: Cells
    template: frozenset[tuple[int, int]]  # cells of the grid


def _placements(grid: UInt8[np.ndarray, "h w"]) -> list[_Placement]:
    """Return all placements of all templates, those that match most cells of their template first."""
    scene = Scene(grid, "any")
    patches = [{place: int(grid[place]) for place in cells} for cells in scene.objects]
    templates = [index for index, patch in enumerate(patches) if len(set(patch.values())) > 1]
    if len(patches) * sum(len(patches[index]) for index in templates) > _MANY:
        return []
    found = [one for index in templates for one in _placements_of(scene, patches, index)]
    return sorted(found, key=lambda one: (-one.num_matched, -len(one.cells)))


def _placements_of(scene: Scene, patches: list[Cells], index: int) -> Iterator[_Placement]:
    """Yield the placements of one template: its cells by color are put on the first cell of each other object."""
    template = patches[index]
    others = [number for number in range(len(patches)) if number != index]
    for mirror in MIRRORS["all"]:
        turned = {_turned(place, mirror): color for place, color in template.items()}
        for scale in _SCALES:
            for number in others:
                (row, column), color = next(iter(patches[number].items()))
                for (top, left), own in turned.items():
                    if own == color:
                        at = (row - scale * top, column - scale * left)
                        one = _placed(scene, patches, index, turned, scale, at)
                        if one is not None:
                            yield one._replace(mirror=mirror)


def _turned(place: tuple[int, int], mirror: tuple[bool, int, int]) -> tuple[int, int]:
    row, column = place[::-1] if mirror[0] else place
    return mirror[1] * row, mirror[2] * column


def _placed(
    scene: Scene, patches: list[Cells], index: int, turned: Cells, scale: int, at: tuple[int, int]
) -> _Placement | None:
    """Put a template somewhere; None where it contradicts a cell, covers part of an object, or matches too little."""
    matched: Counter[int] = Counter()
    cells: Cells = {}
    for (row, column), color in turned.items():
        top, left = at[0] + scale * row, at[1] + scale * column
        for r in range(max(top, 0), min(top + scale, scene.height)):
            for c in range(max(left, 0), min(left + scale, scene.width)):
                there = scene.grid[r][c]
                if there not in (0, color):
                    return None
                if there:
                    matched[scene.labels[r][c] - 1] += 1
                cells[r, c] = color
    num_matched = matched.total() // scale**2
    is_part = index in matched or any(len(patches[number]) > count for number, count in matched.items())
    common = Counter(turned.values()).most_common(1)[0][1]
    if is_part or not min(_LEAST, len(turned) - common) <= num_matched < len(turned):
        return None
    return _Placement(num_matched, MIRRORS["none"][0], frozenset(matched), cells, frozenset(patches[index]))


def find_templates(canvas: OutputCells, deadline: float) -> list[Candidate]:
    """Return the rule that makes each input its output with fewest mirror images."""
    inputs = canvas.graph.inputs[:-1]
    placements: list[list[_Placement]] = []
    for grid in inputs:
        if time.monotonic() > deadline:
            return []
        placements.append(_placements(grid))
        if not placements[-1]:
            return []
    for extra, mirrors in enumerate(_KINDS):
        for source in SOURCES:
            rule = Templates(mirrors, source)
            if all(map(np.array_equal, map(rule.made, inputs, placements), canvas.outputs)):
                return canvas.ruled([(rule, _BASE_COST + extra)])
    return []
