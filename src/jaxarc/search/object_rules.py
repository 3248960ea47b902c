"""Rules of objects: a feature of an object chooses its action, such as a move until it meets another one.

``one_color by commonest : 2 = meet 8, 8 = stay`` moves each object of color 2 straight to one of color 8.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import UInt8

from jaxarc.search.features import FEATURES as CELL_FEATURES
from jaxarc.search.graph import OutputCells
from jaxarc.search.images import images_of
from jaxarc.search.marks import RAYS, STEPS
from jaxarc.search.objects import object_labels, object_values
from jaxarc.search.program_layers import UNFORESEEN_COST, Candidate, RuleLayer

KINDS: Final = ("one_color", "any", "one_color_4")
_BY: Final = (
    *("commonest", "size", "is_most", "is_least", "rank", "same_shape", "holes", "height", "width", "is_wide"),
    *("is_square", "is_full", "is_symmetric", "at_edge", "colors", "marker", "beside"),
)
FEATURES: Final = ("all", *_BY)
"""What a rule looks at: nothing, or a feature of objects."""
_MANY: Final = 24  # objects of a grid, with more of which it is a picture
_BASE_COST: Final = 4
_UNKNOWN_COST: Final = 10  # of an object of the test input whose value no demonstration has
_STRAIGHT: Final = tuple(STEPS)[:4]
_ROWS: Final = {name: row for row, name in enumerate(CELL_FEATURES)}

Patch = dict[tuple[int, int], int]  # cells with their colors


class Scene:
    """The objects of a grid: the cells of each, and the object of each cell from 1 on.

    ``said`` are all features of the cells, as the library returns them; without it NumPy finds them.
    """

    def __init__(self, grid: UInt8[np.ndarray, "h w"], kind: str, said: np.ndarray | None = None) -> None:
        self.grid: list[list[int]] = grid.tolist()
        self.height, self.width = grid.shape
        self._images = images_of([grid.astype(np.uint8)], max(grid.shape))
        labels, count = object_labels(self._images, kind)
        self._kind = kind
        self._said = said
        self.labels: list[list[int]] = labels[0, : self.height, : self.width].tolist()
        self.objects: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for row, own in enumerate(self.labels):
            for column, label in enumerate(own):
                if label > 0:
                    self.objects[label - 1].append((row, column))
        self._gaps: dict[tuple[int, tuple[int, int]], tuple[int, int]] = {}
        self._ways: dict[int, list[tuple[int, int, tuple[int, int]]]] = {}
        self.largest = max(range(count), key=lambda one: len(self.objects[one]), default=-1) + 1

    def values(self, feature: str) -> list[int]:
        """Return a feature of each object."""
        if feature == "all":
            return [1] * len(self.objects)
        if feature == "size":  # which may be more than a byte holds
            return [len(cells) for cells in self.objects]
        if self._said is None:
            values = object_values(self._images, self._kind, feature)[0]
        else:
            values = self._said[_ROWS[f"{self._kind}_{feature}"]].reshape(self.height, self.width)
        return [int(values[cells[0]]) for cells in self.objects]

    def patch(self, cells: Sequence[tuple[int, int]], down: int = 0, right: int = 0) -> Patch | None:
        """Return cells moved; None if one leaves the grid."""
        found = {(row + down, column + right): self.grid[row][column] for row, column in cells}
        fits = down == right == 0 or all(0 <= row < self.height and 0 <= column < self.width for row, column in found)
        return found if fits else None

    def gap(self, index: int, step: tuple[int, int]) -> tuple[int, int]:
        """Return how far an object can move, and the object that stops it; 0 for the edge."""
        if (index, step) in self._gaps:  # actions ask for the same ones
            return self._gaps[index, step]
        best, hit = 2 * max(self.height, self.width), 0
        for row, column in self.objects[index]:
            count, found = 0, 0
            while count <= best:
                row, column = row + step[0], column + step[1]
                if not (0 <= row < self.height and 0 <= column < self.width):
                    break
                found = self.labels[row][column]
                if found not in (0, index + 1):
                    break
                count, found = count + 1, 0
            if count < best or (count == best and found):
                best, hit = count, found
        self._gaps[index, step] = best, hit
        return best, hit

    def ways(self, index: int) -> list[tuple[int, int, tuple[int, int]]]:
        """Return the objects that one meets straight ahead, the nearest first: the gap, the object, and the step."""
        if index not in self._ways:
            found = [(*self.gap(index, STEPS[way]), STEPS[way]) for way in _STRAIGHT]
            self._ways[index] = sorted(one for one in found if one[1] > 0)
        return self._ways[index]


def _slide(scene: Scene, index: int, way: str) -> Patch | None:
    count, _ = scene.gap(index, STEPS[way])
    return scene.patch(scene.objects[index], STEPS[way][0] * count, STEPS[way][1] * count)


def _step(scene: Scene, index: int, way: str) -> Patch | None:
    rows, columns = zip(*scene.objects[index], strict=True)
    height, width = max(rows) - min(rows) + 1, max(columns) - min(columns) + 1
    return scene.patch(scene.objects[index], STEPS[way][0] * height, STEPS[way][1] * width)


def _shift(scene: Scene, index: int, way: str) -> Patch | None:
    return scene.patch(scene.objects[index], *STEPS[way])


def _target(scene: Scene, index: int, to: str) -> tuple[int, int, tuple[int, int]] | None:
    """Return the nearest object, the largest one, or the nearest one of a color that one meets straight ahead."""
    for way in scene.ways(index):
        row, column = scene.objects[way[1] - 1][0]
        if to == "nearest" or (way[1] == scene.largest if to == "largest" else scene.grid[row][column] == int(to)):
            return way
    return None


def _meet(scene: Scene, index: int, to: str) -> Patch | None:
    found = _target(scene, index, to)
    return found and scene.patch(scene.objects[index], found[2][0] * found[0], found[2][1] * found[0])


def _link(scene: Scene, index: int, to: str) -> Patch | None:
    """Draw a line from each cell that sees the target at the same gap."""
    found = _target(scene, index, to)
    if found is None:
        return scene.patch(scene.objects[index])
    count, label, (down, right) = found
    patch = scene.patch(scene.objects[index]) or {}
    for row, column in scene.objects[index]:
        line = [(row + down * k, column + right * k) for k in range(1, count + 1)]
        end = row + down * (count + 1), column + right * (count + 1)
        if 0 <= end[0] < scene.height and 0 <= end[1] < scene.width and scene.labels[end[0]][end[1]] == label:
            patch.update(dict.fromkeys(line, scene.grid[row][column]))
    return patch


def _beam(scene: Scene, index: int, rays: str) -> Patch | None:
    """Draw rays over color 0 from all cells of an object."""
    patch = scene.patch(scene.objects[index]) or {}
    for row, column in scene.objects[index]:
        for way in RAYS[rays]:
            (down, right), color = STEPS[way], scene.grid[row][column]
            r, c = row + down, column + right
            while 0 <= r < scene.height and 0 <= c < scene.width and scene.grid[r][c] == 0:
                patch.setdefault((r, c), color)
                r, c = r + down, c + right
    return patch


def _flipped(scene: Scene, index: int, rows: bool, columns: bool) -> Patch:
    cells = scene.objects[index]
    all_rows, all_columns = zip(*cells, strict=True)
    rows_sum, columns_sum = min(all_rows) + max(all_rows), min(all_columns) + max(all_columns)
    return {
        (rows_sum - row if rows else row, columns_sum - column if columns else column): scene.grid[row][column]
        for row, column in cells
    }


def _flip(scene: Scene, index: int, way: str) -> Patch | None:
    return _flipped(scene, index, way != "columns", way != "rows")


def _beside(scene: Scene, index: int, way: str, is_mirrored: bool) -> Patch | None:
    """Add a copy beside an object, as far as the grid goes."""
    cells = scene.objects[index]
    patch = scene.patch(cells) or {}
    copy = _flipped(scene, index, way in ("up", "down"), way in ("left", "right")) if is_mirrored else dict(patch)
    rows, columns = zip(*cells, strict=True)
    down = STEPS[way][0] * (max(rows) - min(rows) + 1)
    right = STEPS[way][1] * (max(columns) - min(columns) + 1)
    for (row, column), color in copy.items():
        if 0 <= row + down < scene.height and 0 <= column + right < scene.width:
            patch.setdefault((row + down, column + right), color)
    return patch


def _box(scene: Scene, index: int, _: str) -> Patch | None:
    rows, columns = zip(*scene.objects[index], strict=True)
    patch = scene.patch(scene.objects[index]) or {}
    color = max(set(patch.values()), key=[*patch.values()].count)
    for row in range(min(rows), max(rows) + 1):
        for column in range(min(columns), max(columns) + 1):
            patch.setdefault((row, column), color)
    return patch


_TARGETS: Final = ("nearest", "largest", *(str(color) for color in range(1, 10)))
_ALL_RAYS: Final = ("up", "down", "left", "right", "rows", "columns", "cross", "diagonals")
_ACTIONS: Final[dict[str, tuple[Callable[[Scene, int, str], Patch | None], tuple[str, ...]]]] = {
    "stay": (lambda scene, index, _: scene.patch(scene.objects[index]), ("",)),
    "clear": (lambda scene, index, _: {}, ("",)),
    "slide": (_slide, _STRAIGHT),
    "meet": (_meet, _TARGETS),
    "step": (_step, tuple(STEPS)),
    "shift": (_shift, tuple(STEPS)),
    "link": (_link, _TARGETS),
    "beam": (_beam, _ALL_RAYS),
    "flip": (_flip, ("rows", "columns", "both")),
    "mirror": (lambda scene, index, way: _beside(scene, index, way, True), _STRAIGHT),
    "copy": (lambda scene, index, way: _beside(scene, index, way, False), _STRAIGHT),
    "box": (_box, ("",)),
}
_BY_NAME: Final = {  # what draws an object, or returns None where it has no answer, and what it is given
    f"{name} {given}".strip(): (act, given) for name, (act, all_given) in _ACTIONS.items() for given in all_given
}
ACTIONS: Final = tuple(_BY_NAME)
"""Names of actions; of those that explain as much, the first one is taken."""


@dataclass(frozen=True)
class ObjectRule(RuleLayer):
    """A partition into objects, a feature, and the action for each of its values; other objects stay."""

    kind: str
    feature: str
    actions: tuple[tuple[int, str], ...]
    name = "objects"
    about = "The action of each object"
    example = f"one of {', '.join(KINDS)} by one of {', '.join(FEATURES)}, then 1 = and one of {', '.join(ACTIONS)}"

    @property
    def text(self) -> str:
        return f"{self.kind} by {self.feature} : {', '.join(f'{value} = {action}' for value, action in self.actions)}"

    @classmethod
    def parse(cls, text: str) -> "ObjectRule":
        head, _, rows = text.strip().removeprefix(cls.name).partition(":")
        kind, _, feature = (part.strip() for part in head.partition(" by "))
        if kind not in KINDS or feature not in FEATURES:
            raise cls.refusal(head.strip())
        actions = {}
        for row in rows.split(","):
            value, _, action = (part.strip() for part in row.partition("="))
            if not re.fullmatch("[0-9]{1,3}", value) or action not in ACTIONS or int(value) in actions:
                raise cls.refusal(row.strip())
            actions[int(value)] = action
        return cls(kind, feature, tuple(actions.items()))

    def drawn(self, grid: UInt8[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
        return self.made(Scene(grid, self.kind))

    def made(self, scene: Scene) -> UInt8[np.ndarray, "h w"]:
        """Draw the action of each object on color 0."""
        actions = dict(self.actions)
        result = np.zeros((scene.height, scene.width), np.uint8)
        for index, value in enumerate(scene.values(self.feature)):
            act, given = _BY_NAME[actions.get(value, "stay")]
            patch = act(scene, index, given)
            patch = scene.patch(scene.objects[index]) if patch is None else patch  # it stays
            for place, color in (patch or {}).items():
                result[place] = color
        return result


def find_object_rules(canvas: OutputCells, deadline: float) -> list[Candidate]:
    """Return rules that make each input its output, the cheapest first.

    After the deadline, of ``time.monotonic``, nothing more is looked at.
    """
    graph = canvas.graph
    ends = np.cumsum([grid.size for grid in graph.inputs])
    said = np.split(graph.features(graph.image_states[1][0]), ends[:-1], 1)  # the first state is that of the inputs
    found = []
    known: dict[tuple[int, str], list[dict[str, int]]] = {}  # kinds often make the same objects
    for kind in KINDS:
        if time.monotonic() > deadline:
            break
        *shown, asked = (Scene(grid, kind, own) for grid, own in zip(graph.inputs, said, strict=True))
        if not all(0 < len(scene.objects) <= _MANY for scene in (*shown, asked)):
            continue
        explained = []
        for index, (scene, target) in enumerate(zip(shown, canvas.outputs, strict=True)):
            key = index, str(scene.labels)
            if key not in known:
                known[key] = list(_explained(scene, target.tolist(), deadline))
            explained.append(known[key])
            if sum(max(right.values()) for right in explained[-1]) < np.count_nonzero(target):
                break  # no actions can draw this output
        else:
            for feature in FEATURES:
                if time.monotonic() > deadline:
                    break
                values = [scene.values(feature) for scene in shown]
                rule = _rule(kind, feature, list(zip(explained, values, strict=True)))
                if rule is not None and all(map(np.array_equal, map(rule.made, shown), canvas.outputs)):
                    found.append((rule, _cost(rule, [*map(set, values)], set(asked.values(feature)))))
    return canvas.ruled(found)


def _cost(rule: ObjectRule, shown: Sequence[set[int]], asked: set[int]) -> int:
    """Charge a demonstration with a value that no other one has, and a value that only the test input has."""
    owners = [index for index in range(len(shown)) if shown[index] - set().union(*shown[:index], *shown[index + 1 :])]
    cost = _BASE_COST + 2 * len(rule.actions) + UNFORESEEN_COST * len(owners) * (len(shown) > 1)
    return cost + 2 * (rule.feature != "all") + _UNKNOWN_COST * (not asked <= set().union(*shown))


def _explained(scene: Scene, target: list[list[int]], deadline: float) -> Iterator[dict[str, int]]:
    """Yield for each object the actions that draw no wrong cell, with the number of cells that they draw."""
    for index in range(len(scene.objects)):
        if time.monotonic() > deadline:
            return
        right = {}
        for action, (act, given) in _BY_NAME.items():
            patch = act(scene, index, given)
            if patch is not None and all(target[row][column] == color for (row, column), color in patch.items()):
                right[action] = len(patch)
        yield right


def _rule(kind: str, feature: str, scenes: list[tuple[list[dict[str, int]], list[int]]]) -> ObjectRule | None:
    """Return the action for each value that explains most; None if they all stay."""
    chosen: dict[int, str] = {}
    for value in sorted(set().union(*(values for _, values in scenes))):
        own = [
            right
            for explained, values in scenes
            for right, number in zip(explained, values, strict=True)
            if number == value
        ]
        totals = {action: sum(one[action] for one in own) for action in own[0] if all(action in one for one in own)}
        chosen[value] = max(totals, key=totals.__getitem__)  # of equals the first
    if set(chosen.values()) == {"stay"}:
        return None
    return ObjectRule(kind, feature, tuple(chosen.items()))
