"""The words of a program: one table of all functions, with the arguments that each takes, what it costs and does.

The table is what a text is checked by, what the search tries, and what ``jaxarc search --functions`` lists.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from jaxarc.errors import UsageError
from jaxarc.search import functions as f
from jaxarc.search import lists, marks, symmetry
from jaxarc.search.features import FEATURES, NUMBERS, cell_feature, number, place
from jaxarc.search.images import Images

_MANY: Final = 20  # names, which a message does not list
LARGEST: Final = 30  # rows and columns of an image of a program
Argument: TypeAlias = str | int


class WordError(UsageError, ValueError):
    """A text is no word of a program."""


class Choice(NamedTuple):
    """An argument that is one of some names."""

    names: tuple[str, ...]

    def read(self, text: str) -> Argument | None:
        """Return the argument that a text says; None if it says none."""
        return text if text in self.names else None

    def __str__(self) -> str:
        many = len(self.names) > _MANY
        return f"{len(self.names)} names such as {self.names[0]}" if many else " | ".join(self.names)

    def about(self, text: str) -> str:
        """Say which texts are an argument, and which one is most like this one."""
        near = difflib.get_close_matches(text, self.names, n=1)
        if near and len(self.names) > _MANY:
            return f"did you mean {near[0]!r}?"
        return f"choose one of {', '.join(self.names)}" + (f"; did you mean {near[0]!r}?" if near else "")


class Number(NamedTuple):
    """An argument that is a whole number."""

    name: str
    low: int
    high: int

    def read(self, text: str) -> Argument | None:
        """Return the argument that a text says; None if it says none."""
        value = int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else self.low - 1
        return value if self.low <= value <= self.high else None

    def __str__(self) -> str:
        return f"{self.name} {self.low}..{self.high}"

    def about(self, text: str) -> str:
        """Say which texts are an argument."""
        return f"write {self.name}, a whole number from {self.low} to {self.high}"


class Task(NamedTuple):
    """What of a task decides which words are tried."""

    colors_in: list[int]  # of the inputs, without 0
    colors_out: list[int]  # of the outputs, without 0
    scales: list[tuple[int, int]]  # how often the outputs are as high and as wide as the inputs, where that is whole
    fixed: list[tuple[int, int]]  # the size of all outputs, where it is one and larger than that of the inputs


Given: TypeAlias = tuple[Argument, ...]


class Function(NamedTuple):
    """What the words of one name take, cost and do."""

    about: str
    takes: tuple[Choice | Number, ...] = ()
    tried: Callable[[Task], Iterable[Given]] = lambda _: [()]  # the arguments with which the search tries it
    cost: int = 1  # what it adds to the cost of a program
    of_images: Callable[..., Images] | None = None  # None: it takes a list, or makes one
    can_grow: bool = False  # whether its images may be larger than those that it is given


def _image(
    function: Callable[..., Images],
    *takes: Choice | Number,
    tried: Callable[[Task], Iterable[Given]] = lambda _: [()],
    cost: int = 2,
    can_grow: bool = False,
) -> dict[str, Function]:
    """Return the row of a function that takes an image, or each image of a list."""
    about = (function.__doc__ or "").partition("\n")[0].rstrip(".")
    return {function.__name__: Function(about, takes, tried, cost, function, can_grow)}


def _each(names: Iterable[str]) -> Callable[[Task], Iterable[Given]]:
    return lambda _: [(name,) for name in names]


def _never(_: Task) -> Iterable[Given]:
    return ()


_COLOR: Final = Number("color", 0, 9)
_STEP: Final = (Number("down", -LARGEST, LARGEST), Number("right", -LARGEST, LARGEST))
_SIZE: Final = (Number("rows", 1, LARGEST), Number("columns", 1, LARGEST))
_TIMES: Final = (Number("times down", 1, LARGEST), Number("times right", 1, LARGEST))
_RAYS: Final = Choice(tuple(marks.RAYS))
_WAY: Final = Choice(marks.GRAVITY)
_MOST: Final = Choice(("most", "least"))
_LIST_FEATURE: Final = Choice(tuple(lists.FEATURES))
_KEPT: Final = ("most", "least", "not_most", "not_least")
_KEEP_BY: Final = ("cells", "area", "colors", "symmetry", "regions")
_SCALED: Final = ("upscale", "tile", "mirror_tile")  # tried in turn, with one scale after the other

FUNCTIONS: Final[dict[str, Function]] = {
    **_image(f.keep_commonest),
    **_image(f.keep_rarest),
    **_image(f.drop_commonest),
    **_image(f.crop),
    **_image(f.peel),
    **_image(f.surround, can_grow=True),
    **_image(f.box),
    **_image(f.invert),
    **_image(f.fill_ground),
    **_image(f.to_origin),
    **_image(f.to_center),
    **_image(f.downscale),
    **_image(f.upscale_by_colors, can_grow=True),
    **_image(f.drop_empty_lines),
    **_image(f.drop_repeated_lines),
    **_image(f.kronecker, can_grow=True),
    **_image(f.colors_by_count, can_grow=True),
    **_image(f.bars, can_grow=True),
    **_image(f.exchange_colors),
    **_image(marks.fill_enclosed),
    **_image(marks.enclosed),
    **_image(marks.interior),
    **_image(marks.rim),
    **_image(marks.frame),
    **_image(marks.drop_single_cells),
    **_image(marks.keep_single_cells),
    **_image(marks.summary_of_parts),
    **_image(marks.corner),
    **_image(marks.zigzag),
    **_image(marks.attract),
    **_image(symmetry.continue_pattern, cost=3),
    **_image(symmetry.unit),
    **_image(f.keep_color, _COLOR, tried=lambda task: [(color,) for color in task.colors_in]),
    **_image(f.drop_color, _COLOR, tried=lambda task: [(color,) for color in task.colors_in]),
    **_image(f.crop_to_color, _COLOR, tried=lambda task: [(color,) for color in task.colors_in]),
    **_image(symmetry.behind, _COLOR, tried=lambda task: [(color,) for color in (0, *task.colors_in)]),
    **_image(f.paint, _COLOR, tried=lambda task: [(color,) for color in task.colors_out]),
    **_image(f.move, *_STEP, tried=lambda _: marks.STEPS.values()),
    **_image(f.trail, *_STEP, tried=lambda _: marks.STEPS.values(), cost=3),
    **_image(f.shift, *_STEP, tried=lambda _: [marks.STEPS[way] for way in marks.GRAVITY]),
    **_image(marks.outline, Number("diagonal", 0, 1), tried=lambda _: [(0,), (1,)]),
    **_image(f.rigid, Choice(f.RIGID), tried=_each(f.RIGID)),
    **_image(f.half, Choice(f.HALVES), tried=_each(f.HALVES)),
    **_image(marks.smear, _RAYS, tried=_each(marks.RAYS)),
    **_image(marks.smear_dotted, _RAYS, tried=_each(marks.DOTTED), cost=3),
    **_image(marks.connect, Choice(marks.CONNECTIONS), tried=_each(marks.CONNECTIONS)),
    **_image(marks.gravity, _WAY, tried=_each(marks.GRAVITY)),
    **_image(symmetry.continue_lines, _WAY, tried=_each(marks.GRAVITY)),
    **_image(marks.extend, _RAYS, tried=_each(marks.EXTENSIONS)),
    **_image(symmetry.complete_around, Choice(tuple(symmetry.SYMMETRIES)), tried=_each(("all", "both"))),
    **_image(symmetry.complete_symmetry, Choice(tuple(symmetry.SYMMETRIES)), tried=_each(symmetry.SYMMETRIES)),
    **_image(f.upscale, *_TIMES, tried=_never, can_grow=True),  # the search tries these three together
    **_image(f.tile, *_TIMES, tried=_never, can_grow=True),
    **_image(f.mirror_tile, *_TIMES, tried=_never, can_grow=True),
    # To enlarge the image does little by itself.
    **_image(f.pad, *_TIMES, tried=lambda task: [one for one in task.scales if one != (1, 1)], cost=1, can_grow=True),
    **_image(f.pad_to, *_SIZE, tried=lambda task: task.fixed, cost=1, can_grow=True),
    "split": Function("Split into a list of", (Choice(tuple(lists.SPLITS)),), _each(lists.SPLITS)),
    "pick": Function(
        "Take the image of the list with the",
        (_MOST, _LIST_FEATURE),
        lambda _: [(which, name) for name in lists.FEATURES for which in _MOST.names],
    ),
    "odd": Function(
        "Take the image of the list which by this is alone or common:",
        (Choice(("alone", "common")), Choice(tuple(lists.KEYS))),
        lambda _: [(which, name) for name in lists.KEYS for which in ("alone", "common")],
    ),
    "stack": Function(
        "Put the images of the list upon one another at their places, on top the",
        (Choice(("first", "last")),),
        _each(("first", "last")),
    ),
    "join": Function(
        "Put the images of the list in a line of", (Choice(("rows", "columns")),), _each(("rows", "columns"))
    ),
    "compare": Function("Combine the two images of the list cell by cell:", (Choice(lists.LOGIC),), _each(lists.LOGIC)),
    "item": Function(
        "Take the image of the list with the number",
        (Number("number", 0, lists.LENGTH - 1),),
        lambda _: [(0,), (1,), (2,)],
    ),
    "keep": Function(
        "Keep the images of the list with the",
        (Choice(_KEPT), _LIST_FEATURE),
        lambda _: [(which, name) for name in _KEEP_BY for which in _KEPT],
    ),
    "order": Function(
        "Sort the list by the",
        (_MOST, _LIST_FEATURE),
        lambda _: [(which, name) for name in ("cells", "row", "column") for which in _MOST.names],
    ),
    # What tables look at; their images hold bytes and no colors.
    **_image(cell_feature, Choice(tuple(FEATURES)), tried=_never),
    **_image(number, Choice(tuple(NUMBERS)), tried=_never, can_grow=True),
    **_image(place, Number("width", 1, LARGEST), tried=_never, can_grow=True),
}
"""Name -> what it takes, costs and does; in the order in which the search tries words of one cost."""
TO_LIST: Final = ("split", "order", "keep")


@dataclass(frozen=True)
class Word:
    """A function of the search with its arguments, such as ``smear(cross)``.

    Raises:
        WordError: there is no such function, or it takes no such arguments.
    """

    name: str
    arguments: Given = ()

    def __post_init__(self) -> None:
        if self.name not in FUNCTIONS:
            near = difflib.get_close_matches(self.name, FUNCTIONS, n=1)
            known = f"did you mean {near[0]!r}?" if near else f"the functions are {', '.join(FUNCTIONS)}"
            raise WordError(f"{self.name!r} is no function of the search; {known}")
        takes = FUNCTIONS[self.name].takes
        if len(self.arguments) != len(takes):
            wanted = f"{self.name}({', '.join(map(str, takes))})" if takes else self.name
            raise WordError(f"{self} has {len(self.arguments)} of {len(takes)} arguments; write {wanted}")
        for given, argument in zip(self.arguments, takes, strict=True):
            if argument.read(str(given)) != given:
                raise WordError(f"{self}: {given!r} is no argument of {self.name}; {argument.about(str(given))}")

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})" if self.arguments else self.name

    @property
    def cost(self) -> int:
        """What the word adds to the cost of a program."""
        return FUNCTIONS[self.name].cost

    def makes_list(self, is_list: bool) -> bool | None:
        """Return whether its result is a list, of a state that is one or is none; None where it takes no such state.

        An image word takes an image, or each image of a list.
        """
        if FUNCTIONS[self.name].of_images is not None:
            return is_list
        if is_list == (self.name == "split"):
            return None
        return self.name in TO_LIST

    def of_images(self, images: Images) -> Images:
        """Return what an image word makes of each image, in NumPy."""
        function = FUNCTIONS[self.name].of_images
        assert function is not None
        return function(images, *self.arguments)

    @property
    def in_words(self) -> str:
        """Say in a sentence what the word does."""
        about, _, _, _, of_images, _ = FUNCTIONS[self.name]
        arguments = " ".join(map(str, self.arguments)).replace("_", " ")
        return f"{about}{'' if of_images is None else ':'} {arguments}" if arguments else about

    @classmethod
    def parse(cls, text: str) -> "Word":
        """Read a word back from its text.

        Raises:
            WordError: there is no such function, or it takes no such arguments.
        """
        match = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", text)
        if match is None:
            raise WordError(f"{text.strip()!r} is no function of the search; write one such as crop or smear(cross)")
        parts = [part.strip() for part in match[2].split(",")] if match[2] else []
        takes = FUNCTIONS[match[1]].takes if match[1] in FUNCTIONS else ()
        if len(parts) != len(takes):
            return cls(match[1], tuple(parts))
        read = [argument.read(part) for part, argument in zip(parts, takes, strict=True)]
        return cls(match[1], tuple(part if one is None else one for part, one in zip(parts, read, strict=True)))


NEW_ALONE: Final = (Word("split", ("frames",)), Word("split", ("windows",)))
"""Words whose only part is not the image itself, so that a list of one is an image."""


def parse_words(text: str) -> tuple[Word, ...]:
    """Read a chain of words, such as ``split(objects) > pick(most, cells)``, which begins and ends with an image.

    Raises:
        WordError: a word is none, or it takes a list where an image is, or the other way round.
    """
    words = tuple(map(Word.parse, text.split(">")))
    *kinds, last = kinds_of(words)
    for word, before, after in zip(words, kinds, [*kinds[1:], last], strict=True):
        if before and not after:
            needs = "a list and gets an image; make one before, such as split(objects)"
            if word.name == "split":
                needs = "an image and gets a list; take one of it before, such as pick(most, cells)"
            raise WordError(f"{text.strip()!r:.200}: {word} needs {needs}")
    if False not in last:
        raise WordError(f"{text.strip()!r:.200} ends with a list; take one image of it, such as pick(most, cells)")
    return words


@lru_cache(maxsize=4096)  # of programs that have the same words
def kinds_of(words: tuple[Word, ...]) -> tuple[set[bool], ...]:
    """Say before each word and at the end what there may be: a list (True) or an image; nothing after a wrong word."""
    kinds = [{False}]
    for word in words:
        made = {word.makes_list(is_list) for is_list in kinds[-1]}
        kinds.append({one for one in made if one is not None} | ({False} if word in NEW_ALONE and made else set()))
    return tuple(kinds)


def vocabulary(
    colors_in: Iterable[int],
    colors_out: Iterable[int],
    scales: Iterable[tuple[int, int]],
    fixed: Iterable[tuple[int, int]],
) -> list[Word]:
    """Return all words for a task; see :class:`Task`."""
    task = Task(sorted({*colors_in} - {0}), sorted({*colors_out} - {0}), list(scales), list(fixed))
    words = []
    for name, function in FUNCTIONS.items():
        words += [Word(name, tuple(given)) for given in function.tried(task)]
        if name == _SCALED[-1]:
            all_scales = dict.fromkeys([*task.scales, (1, 2), (2, 1), (2, 2), (3, 3)])
            words += [Word(one, scale) for scale in all_scales if scale != (1, 1) for one in _SCALED]
    return words


def function_rows() -> Iterator[str]:
    """Yield the rows of a table in Markdown: each function, what its arguments may be, its cost, and what it does."""
    yield from ("| Function | Arguments | Cost | What it does |", "|---|---|---|---|")
    for name, (about, takes, _, cost, _, _) in FUNCTIONS.items():
        arguments = "; ".join(str(one).replace(" | ", ", ") for one in takes)
        yield f"| `{name}` | {arguments} | {cost} | {about.rstrip(':')} |".replace("|  |", "| |")
