"""The words of a program: every function of the search by name, with what it costs, and how it acts on numbered images.

A state is ``int[P, L]``: for each of P inputs a list of at most L images, by number, -1 where a list has ended. A word
turns S states into S states; -1 in the first place of a list says that there is no answer.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
from jaxtyping import Int64

from jaxarc.errors import UsageError
from jaxarc.search import functions as f
from jaxarc.search import lists, marks, moves, symmetry
from jaxarc.search.features import cell_feature, number, place
from jaxarc.search.images import Images, hash_bytes, hash_cells

States = Int64[np.ndarray, "S P L"]

_IMAGE: Final[dict[str, Callable[..., Images]]] = {
    function.__name__: function
    for function in (
        *(f.keep_color, f.drop_color, f.paint, f.keep_commonest, f.keep_rarest, f.drop_commonest),
        *(f.crop, f.crop_to_color, f.crop_to_ground, f.peel, f.surround, f.box, f.invert, f.fill_ground),
        *(f.to_origin, f.to_center, f.move, f.shift, f.trail, f.pad, f.pad_to, f.rigid, f.half, f.downscale),
        *(f.upscale, f.upscale_by_colors, f.tile, f.mirror_tile),
        *(f.drop_empty_lines, f.drop_repeated_lines, f.one_cell, f.kronecker, f.colors_by_count, f.bars),
        *(f.exchange_colors, marks.smear, marks.smear_dotted, marks.connect, marks.fill_enclosed, marks.enclosed),
        *(marks.interior, marks.rim, marks.frame, marks.drop_single_cells, marks.keep_single_cells, moves.gravity),
        *(f.step, marks.outline, marks.bar_of_objects, marks.summary_of_parts, marks.corner),
        *(marks.zigzag, moves.attract, moves.fall, moves.gather, marks.extend, moves.stamp, marks.denoise),
        *(
            marks.spread,
            symmetry.complete_symmetry,
            symmetry.complete_around,
            symmetry.behind,
            symmetry.continue_pattern,
            symmetry.unit,
        ),
        *(cell_feature, number, place),
    )
}
_GROWING: Final = {  # functions whose images may be larger: they need the whole frame
    *("surround", "upscale", "upscale_by_colors", "tile", "mirror_tile", "kronecker", "colors_by_count", "bars"),
    *("bar_of_objects", "number", "place", "pad", "pad_to"),
}
_LIST: Final = {
    "split": "Split into a list of",
    "pick": "Take the image of the list with the",
    "order": "Sort the list by the",
    "keep": "Keep the images of the list with the",
    "stack": "Put the images of the list upon one another at their places, on top the",
    "join": "Put the images of the list in a line of",
    "odd": "Take the image of the list which by this is alone or common:",
    "compare": "Combine the two images of the list cell by cell:",
    "item": "Take the image of the list with the number",
}
_TO_LIST: Final = ("split", "order", "keep")
# Functions that are slow, or many, are dear; to enlarge the image does little by itself.
_COSTS: Final = {
    **dict.fromkeys(_LIST, 1),
    **dict.fromkeys(("continue_pattern", "fall", "gather", "stamp", "denoise", "trail", "smear_dotted"), 3),
    "pad": 1,
    "pad_to": 1,
}
_IMAGE_COST: Final = 2


class WordError(UsageError, ValueError):
    """A text is no word of a program."""


@dataclass(frozen=True)
class Word:
    """A function of the search with its arguments, such as ``smear(cross)``."""

    name: str
    arguments: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})" if self.arguments else self.name

    @property
    def cost(self) -> int:
        """What the word adds to the cost of a program."""
        return _COSTS.get(self.name, _IMAGE_COST)

    def makes_list(self, is_list: bool) -> bool | None:
        """Return whether its result is a list, of a state that is one or is none; None where it takes no such state.

        An image word takes an image, or each image of a list.
        """
        if self.name not in _LIST:
            return is_list
        if is_list == (self.name == "split"):
            return None
        return self.name in _TO_LIST

    @property
    def in_words(self) -> str:
        """Say in a sentence what the word does."""
        said = _LIST.get(self.name) or (_IMAGE[self.name].__doc__ or "").partition("\n")[0].rstrip(".")
        arguments = " ".join(map(str, self.arguments)).replace("_", " ")
        return f"{said}{'' if self.name in _LIST else ':'} {arguments}" if arguments else said

    @classmethod
    def parse(cls, text: str) -> "Word":
        """Read a word back from its text.

        Raises:
            WordError: there is no such function.
        """
        match = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", text)
        if match is None or match[1] not in (*_IMAGE, *_LIST):
            known = ", ".join((*_IMAGE, *_LIST))
            raise WordError(f"{text.strip()!r} is no function of the search; the functions are {known}")
        parts = [part.strip() for part in (match[2] or "").split(",") if part.strip()]
        return cls(match[1], tuple(int(part) if re.fullmatch(r"-?\d+", part) else part for part in parts))


def image_function(word: Word) -> Callable[[Images], Images]:
    """Return what an image word does, in NumPy."""
    function = _IMAGE[word.name]
    return lambda images: function(images, *word.arguments)


class Table(Protocol):
    """All images of a search, each once, by number."""

    frame: int

    def __len__(self) -> int: ...
    def add(self, images: Images) -> Int64[np.ndarray, " N"]: ...
    def images(self, numbers: Any, frame: int | None = None) -> Images: ...
    def sizes(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
    def by_frame(self, numbers: np.ndarray) -> Iterator[tuple[np.ndarray, Images]]: ...


@dataclass
class Machine:
    """Applies words to states, and remembers what it has computed for each image."""

    table: Table
    _results: dict[Word, np.ndarray] = field(default_factory=dict)  # word -> number of the result by image; -2 unknown
    _features: dict[str, np.ndarray] = field(default_factory=dict)  # feature -> value by image; or _UNKNOWN

    def apply(self, word: Word, states: States, numbers: Int64[np.ndarray, " N"] | None = None) -> States:
        """Return the states after a word; -1 first in a list where it has no answer.

        Args:
            word: a function with its arguments.
            states: of the parents.
            numbers: the different images of the states, where they are known.
        """
        if word.name in _IMAGE:
            return self._mapped(word, states, np.unique(states) if numbers is None else numbers)
        if word.name == "split":
            return self._split(str(word.arguments[0]), states[:, :, 0])
        lists_of = states.reshape(-1, states.shape[2])
        found = self._of_lists(word, lists_of)
        return found.reshape(*states.shape[:2], -1)

    def _mapped(self, word: Word, states: States, numbers: Int64[np.ndarray, " N"]) -> States:
        known = _grown(self._results.get(word), len(self.table), -2)
        numbers = numbers[numbers >= 0]
        new = numbers[known[numbers] == -2]
        if len(new):
            function = _IMAGE[word.name]
            if word.name in _GROWING:
                known[new] = self.table.add(function(self.table.images(new), *word.arguments))
            else:
                for places, images in self.table.by_frame(new):
                    known[new[places]] = self.table.add(function(images, *word.arguments))
        self._results[word] = known
        return np.where(states >= 0, known[states], -1)

    def _split(self, name: str, states: Int64[np.ndarray, "S P"]) -> States:
        numbers, inverse = np.unique(states, return_inverse=True)
        real = numbers[numbers >= 0]
        rows = np.full((len(numbers), lists.LENGTH), -1, np.int64)
        for places, images in self.table.by_frame(real):
            parts, owner = lists.SPLITS[name](images)
            place = np.arange(len(owner)) - np.searchsorted(owner, owner)
            few = place < lists.LENGTH
            owner = (len(numbers) - len(real)) + places[owner[few]]
            rows[owner, place[few]] = self.table.add(parts.take(few))
        return rows[inverse.reshape(states.shape)]

    def values(self, feature: str, numbers: np.ndarray) -> np.ndarray:
        """Return a feature of images by number; of -1, any value."""
        values = _grown(self._features.get(feature), len(self.table), _UNKNOWN)
        wanted = np.zeros(len(self.table), np.bool_)
        wanted[numbers[numbers >= 0]] = True
        new = np.flatnonzero(wanted & (values[: len(wanted)] == _UNKNOWN))
        if len(new):
            for places, images in self.table.by_frame(new):
                found = _keys(images, feature) if feature in _KEYS else lists.FEATURES[feature](images)
                values[new[places]] = found
        self._features[feature] = values
        return values[numbers]

    def _of_lists(self, word: Word, rows: Int64[np.ndarray, "N L"]) -> Int64[np.ndarray, "N K"]:
        name, arguments = word.name, word.arguments
        if name in ("pick", "order", "keep"):
            values = self.values(str(arguments[1]), rows)
            if name == "pick":
                return lists.pick(values, rows, arguments[0] == "most")[:, None]
            if name == "order":
                return lists.ordered(values, rows, arguments[0] == "most")
            return lists.kept(values, rows, str(arguments[0]))
        if name == "odd":
            return lists.odd_one(self.values(str(arguments[1]), rows), rows, arguments[0] == "common")[:, None]
        if name == "item":
            return rows[:, [int(arguments[0])]]
        if name == "compare":
            return self._compared(str(arguments[0]), rows)
        unique, inverse = _unique_rows(rows)
        owner, place = np.nonzero(unique >= 0)
        images = self.table.images(unique[owner, place])
        if name == "stack":
            made = lists.stacked(images, owner, len(unique), arguments[0] == "first")
        else:
            made = lists.joined(images, owner, len(unique), 1 if arguments[0] == "rows" else 2)
        return self.table.add(made)[inverse][:, None]

    def _compared(self, kind: str, rows: Int64[np.ndarray, "N L"]) -> Int64[np.ndarray, "N 1"]:
        two = (rows >= 0).sum(1) == 2
        result = np.full(len(rows), -1, np.int64)
        unique, inverse = _unique_rows(rows[two, :2])
        pair = self.table.images(unique[:, 0]), self.table.images(unique[:, 1])
        result[two] = self.table.add(lists.combined(*pair, kind))[inverse]
        return result[:, None]


_UNKNOWN: Final = np.iinfo(np.int64).min


def _grown(values: np.ndarray | None, size: int, fill: int) -> Int64[np.ndarray, " N"]:
    """Return an array with room for one value of each image; it doubles, so that it is seldom copied."""
    if values is not None and len(values) >= size:
        return values
    grown = np.full(2 * size, fill, np.int64)
    if values is not None:
        grown[: len(values)] = values
    return grown


def _unique_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hashes = hash_bytes(np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.shape[1] * rows.itemsize))
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    return rows[first], inverse


_KEYS: Final = ("picture", "shape", "size", "color")


def _keys(images: Images, kind: str) -> np.ndarray:
    """Return a number that is equal for images of one picture, shape (any color), size or color."""
    if kind == "color":
        return f.common_color(images)
    size = images.height.astype(np.int64) * 32 + images.width
    if kind == "size":
        return size
    cells = images.cells if kind == "picture" else (images.cells != 0).astype(np.uint8)
    return hash_cells(cells).astype(np.int64) ^ size


def vocabulary(
    colors_in: Iterable[int],
    colors_out: Iterable[int],
    scales: Iterable[tuple[int, int]],
    fixed: Iterable[tuple[int, int]],
) -> list[Word]:
    """Return all words for a task.

    Args:
        colors_in: colors of the inputs.
        colors_out: colors of the outputs.
        scales: how many times the outputs are as high and as wide as the inputs, where that is a whole number.
        fixed: the size of all outputs, where it is one and larger than that of the inputs.
    """
    words = [Word(name) for name in _IMAGE if name not in _WITH_ARGUMENTS]
    seen, made = sorted(set(colors_in) - {0}), sorted(set(colors_out) - {0})
    for name in ("keep_color", "drop_color", "crop_to_color"):
        words += [Word(name, (color,)) for color in seen]
    words += [Word("behind", (color,)) for color in (0, *seen)]
    words += [Word("paint", (color,)) for color in made]
    words += [Word(name, step) for name in ("move", "trail") for step in marks.STEPS.values()]
    words += [Word("shift", marks.STEPS[name]) for name in moves.GRAVITY]
    words += [Word("outline", (diagonal,)) for diagonal in (0, 1)]
    for name, choices in _CHOICES.items():
        words += [Word(name, (choice,)) for choice in choices]
    for scale in dict.fromkeys([*scales, (1, 2), (2, 1), (2, 2), (3, 3)]):
        if scale != (1, 1):
            words += [Word("upscale", scale), Word("tile", scale), Word("mirror_tile", scale)]
    words += [Word("pad", scale) for scale in scales if scale != (1, 1)]
    words += [Word("pad_to", size) for size in fixed]
    words += [Word("split", (name,)) for name in lists.SPLITS]
    words += [Word("pick", (which, name)) for name in lists.FEATURES for which in ("most", "least")]
    words += [Word("odd", (which, name)) for name in _KEYS for which in ("alone", "common")]
    words += [Word("stack", (which,)) for which in ("first", "last")]
    words += [Word("join", (which,)) for which in ("rows", "columns")]
    words += [Word("compare", (kind,)) for kind in lists.LOGIC]
    words += [Word("item", (index,)) for index in (0, 1, 2)]
    words += [Word("keep", (which, name)) for name in _KEEP_BY for which in _KEPT]
    words += [Word("order", (which, name)) for name in ("cells", "row", "column") for which in ("most", "least")]
    return words


_KEEP_BY: Final = ("cells", "area", "colors", "symmetry", "regions")
_KEPT: Final = ("most", "least", "not_most", "not_least")
_CHOICES: Final[dict[str, Iterable[Any]]] = {
    "rigid": f.RIGID,
    "half": f.HALVES,
    "step": ("down", "right"),
    "smear": marks.RAYS,
    "smear_dotted": marks.DOTTED,
    "connect": marks.CONNECTIONS,
    "gravity": moves.GRAVITY,
    "fall": moves.GRAVITY,
    "extend": marks.EXTENSIONS,
    "complete_around": ("all", "both"),
    "complete_symmetry": symmetry.SYMMETRIES,
}
_WITH_ARGUMENTS: Final = {
    *_CHOICES,
    *("cell_feature", "number", "place"),
    *(
        "keep_color",
        "drop_color",
        "crop_to_color",
        "behind",
        "paint",
        "move",
        "shift",
        "trail",
        "pad",
        "pad_to",
        "outline",
        "upscale",
        "tile",
        "mirror_tile",
    ),
}
