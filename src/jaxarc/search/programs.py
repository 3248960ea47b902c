"""Programs as objects: what was found, in a text that can be read back, and that runs on an unseen grid."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from jaxtyping import Int8, Int64, UInt8

from jaxarc.errors import UsageError
from jaxarc.search.functions import NUM_COLORS
from jaxarc.search.growth import Growth
from jaxarc.search.images import Images, images_of
from jaxarc.search.interpreter import State, apply, state_of
from jaxarc.search.object_rules import ObjectRule
from jaxarc.search.orientations import ORIENTATIONS, turned, turned_back
from jaxarc.search.products import multiplied
from jaxarc.search.templates import Templates
from jaxarc.search.words import FUNCTIONS, LARGEST, Number, Word, WordError, kinds_of, parse_words
from jaxarc.tasks.raw_task import check_grid

_THEN: Final = " > "
_OVER: Final = " + "
_SOLID: Final = "solid "
_PLACED: Final = "placed "
_TABLE: Final = "table "
_PRODUCT: Final = "product "
_BY: Final = " by "
_SHAPE: Final = "shape of "
_NO_WORD: Final = "input"
_AFTER: Final = " => "
_ORIENT: Final = "orient "
_FRAME: Final = "frame "
_COPIED: Final = " copy "
_ELSE: Final = ", else = input"
_UNKNOWN: Final = 11
_LARGEST_VALUE: Final = 255  # of a cell of an image that holds bytes
Rule: TypeAlias = Growth | ObjectRule | Templates
RULES: Final[dict[str, type[Rule]]] = {"grow": Growth, "objects": ObjectRule, "templates": Templates}
"""Name of a form -> its rules, which draw on a whole grid."""
_IN_WORDS: Final = {
    "grow": "Draw on, with mirror images",
    "objects": "The action of each object",
    "templates": "Complete what has cells of a template, with mirror images",
}
COPY: Final = 10
"""In a table, the color of the copied image."""
RECOLORS: Final = ("none", "ground", "ranked")
"""Leave all colors; exchange the commonest with 0; name all but 0 by how common they are, the commonest 1."""


class ProgramError(UsageError, ValueError):
    """A text is no program, or a program has no answer for a grid."""


@dataclass(frozen=True)
class LayerProgram:
    """One layer of the answer: words from the input to an image, or a plain color."""

    words: tuple[Word, ...]
    color: int = -1  # of a plain layer; -1: words make it
    is_solid: bool = False  # covers all cells; else those that are not 0
    is_placed: bool = False  # stands at its position also where it has the size of the answer; else as it is there

    @property
    def chains(self) -> list[tuple[Word, ...]]:
        """The words of each image that it is made of."""
        return [self.words]

    def __str__(self) -> str:
        chain = f"color {self.color}" if self.color >= 0 else _text(self.words)
        return _SOLID * self.is_solid + _PLACED * self.is_placed + chain

    @classmethod
    def parse(cls, text: str) -> "LayerProgram":
        """Read a layer back from its text."""
        text = text.strip()
        is_solid = text.startswith(_SOLID)
        text = text.removeprefix(_SOLID).strip()
        if text.startswith("color "):
            color = re.fullmatch(r"color +([0-9])", text)
            if color is None:
                raise ProgramError(f"{text!r:.200} is no plain layer; write a color from 0 to 9, such as color 3")
            return cls((), int(color[1]), is_solid)
        is_placed = text.startswith(_PLACED)
        return cls(_words(text.removeprefix(_PLACED)), -1, is_solid, is_placed)


@dataclass(frozen=True)
class TableLayer:
    """A layer whose colors are looked up in a table, by the values of some images at the cell.

    In ``table input | crop copy smear(rows) : 0 0 = 3, 0 1 = copy`` the second row takes the color of the cell that
    ``smear(rows)`` has there. With ``else = input`` at the end, a cell without a row keeps the color of the input.
    """

    sources: tuple[tuple[Word, ...], ...]
    table: tuple[tuple[tuple[int, ...], int], ...]  # values -> color, or COPY
    copied: tuple[Word, ...] | None = None  # of the image whose color is copied
    keeps_unknown: bool = False
    is_solid: Final = True

    @property
    def chains(self) -> list[tuple[Word, ...]]:
        """The words of each image that it is made of."""
        return [*self.sources, self.copied or ()]

    def __str__(self) -> str:
        images = " | ".join(map(_text, self.sources))
        copied = "" if self.copied is None else f"{_COPIED}{_text(self.copied)}"
        rows = ", ".join(
            f"{' '.join(map(str, values))} = {'copy' if color == COPY else color}" for values, color in self.table
        )
        return f"{_TABLE}{images}{copied} : {rows}{_ELSE * self.keeps_unknown}"

    @classmethod
    def parse(cls, text: str) -> "TableLayer":
        """Read a layer back from its text."""
        keeps_unknown = text.strip().endswith(_ELSE)
        images, _, rows = text.strip().removeprefix(_TABLE).removesuffix(_ELSE).partition(":")
        images, _, copied = images.partition(_COPIED)
        sources = tuple(_words(words) for words in images.split("|"))
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
            table[values] = COPY if match[2] == "copy" else int(match[2])
        return cls(sources, tuple(table.items()), _words(copied) if copied else None, keeps_unknown)


@dataclass(frozen=True)
class RuleLayer:
    """A layer that a rule draws on the whole grid.

    ``grow by turns : 0 up x = x`` draws on, ``objects any by all : 1 = clear`` gives each object an action, and
    ``templates by all : keep`` completes what is drawn in part.
    """

    rule: Rule
    is_solid: Final = True
    chains: Final = ()

    @property
    def name(self) -> str:
        """The name of the form."""
        return next(name for name, form in RULES.items() if isinstance(self.rule, form))

    def __str__(self) -> str:
        return f"{self.name} {self.rule}"

    @classmethod
    def parse(cls, text: str) -> "RuleLayer":
        """Read a layer back from its text."""
        name, _, rest = text.strip().partition(" ")
        rule = RULES[name].parse(rest)
        if isinstance(rule, str):
            raise ProgramError(f"{rule!r:.200} is no rule of {name}; write {RULES[name].example()}")
        return cls(rule)


@dataclass(frozen=True)
class ProductLayer:
    """A layer that is the outer product of two images, see :mod:`jaxarc.search.products`.

    In ``product input by shape of keep_color(2)`` the copies have the colors of ``input``.
    """

    coarse: tuple[Word, ...]
    fine: tuple[Word, ...]
    has_coarse_colors: bool
    is_solid: Final = True

    @property
    def chains(self) -> list[tuple[Word, ...]]:
        """The words of each image that it is made of."""
        return [self.coarse, self.fine]

    def __str__(self) -> str:
        return f"{_PRODUCT}{_text(self.coarse)}{_BY}{_SHAPE * self.has_coarse_colors}{_text(self.fine)}"

    @classmethod
    def parse(cls, text: str) -> "ProductLayer":
        """Read a layer back from its text."""
        coarse, by, fine = text.strip().removeprefix(_PRODUCT).partition(_BY)
        if not by:
            raise ProgramError(f"{text.strip()!r} is no product; write product input by crop")
        return cls(_words(coarse), _words(fine.removeprefix(_SHAPE)), fine.startswith(_SHAPE))


ProgramLayer: TypeAlias = LayerProgram | TableLayer | ProductLayer | RuleLayer


@dataclass(frozen=True)
class SizeRule:
    """The size of an answer: fixed, or a multiple of the size of an image that words make."""

    fixed: tuple[int, int] | None = None
    words: tuple[Word, ...] = ()
    scale: tuple[int, int] = (1, 1)

    def __str__(self) -> str:
        if self.fixed is not None:
            return "{}x{}".format(*self.fixed)
        chain = _text(self.words)
        return chain if self.scale == (1, 1) else f"{chain} * {self.scale[0]}x{self.scale[1]}"

    @classmethod
    def parse(cls, text: str) -> "SizeRule":
        """Read a rule back from its text."""
        chain, star, scale = (part.strip() for part in text.partition("*"))
        numbers = scale if star else chain if chain[:1].isdigit() else None
        if numbers is None:
            return cls(None, _words(chain))
        sides = re.fullmatch(r"([0-9]{1,2})x([0-9]{1,2})", numbers)
        height, width = map(int, sides.groups()) if sides else (0, 0)
        if not (1 <= height <= LARGEST and 1 <= width <= LARGEST):
            raise ProgramError(
                f"{text.strip()!r:.200} is no size; write 3x3, input, input * 2x2 or the functions of an image, with "
                f"numbers from 1 to {LARGEST}"
            )
        return cls(None, _words(chain), (height, width)) if star else cls((height, width))


@dataclass(frozen=True)
class GridProgram:
    """From a grid to an answer: recolor, make layers, stack them on a canvas, recolor back.

    ``str(program)`` is its text, :meth:`parse` reads it back, and ``program(grid)`` runs it.
    """

    layers: tuple[ProgramLayer, ...]  # from top to bottom
    size: SizeRule = SizeRule()
    recolor: str = "none"  # how colors are renamed first, see :func:`recoloring`
    orient: str = "none"  # how the grid is turned first, and the answer back, see :mod:`jaxarc.search.orientations`
    before: "GridProgram | None" = None  # whose answer is the grid of this one
    frame: int = LARGEST  # rows and columns that an image may have, if the grid is no larger

    def __str__(self) -> str:
        text = f"recolor {self.recolor}; size {self.size}; {_OVER.join(map(str, self.layers))}"
        text = text if self.frame == LARGEST else f"{_FRAME}{self.frame}; {text}"
        text = text if self.orient == "none" else f"{_ORIENT}{self.orient}; {text}"
        return text if self.before is None else f"{self.before}{_AFTER}{text}"

    def in_words(self) -> list[str]:
        """Say what the program does, a sentence for each step; the layers from top to bottom."""
        lines = [f"The answer has the size {self.size}."]
        if self.recolor != "none":
            lines.insert(0, f"Name the colors anew: {self.recolor}.")
        if self.orient != "none":
            lines.insert(0, f"Turn the grid: {self.orient}. Turn the answer back at the end.")
        if self.before is not None:
            lines[:0] = [*self.before.in_words(), "From here on, this answer is the grid."]
        for number, layer in enumerate(self.layers, start=1):
            where = "On all cells" if layer.is_solid else "On the cells that are not 0"
            over = "" if len(self.layers) == 1 else f"Layer {number}. "
            if isinstance(layer, TableLayer):
                copied = "" if layer.copied is None else f" Copied are colors of: {_text(layer.copied)}."
                sources = ", ".join(map(_text, layer.sources))
                lines.append(f"{over}Look up each cell in a table of {len(layer.table)} rows, by: {sources}.{copied}")
            elif isinstance(layer, ProductLayer):
                copy = f"the shape of {_text(layer.fine)}" if layer.has_coarse_colors else _text(layer.fine)
                lines.append(f"{over}At each cell of {_text(layer.coarse)} that is not 0 a copy of: {copy}.")
            elif isinstance(layer, RuleLayer):
                lines.append(f"{over}{_IN_WORDS[layer.name]}: {layer.rule}.")
            elif layer.color >= 0:
                lines.append(f"{over}{where} the color {layer.color}.")
            else:
                steps = ". ".join(word.in_words for word in layer.words) or "the input"
                lines.append(f"{over}{where}: {steps}{', at its place' * layer.is_placed}.")
        return lines

    @property
    def functions(self) -> list[str]:
        """The names of the functions of its layers, in order, each once, with ``table`` for a table."""
        names = [] if self.before is None else self.before.functions
        for layer in self.layers:
            names += ["table"] if isinstance(layer, TableLayer) else []
            names += ["product"] if isinstance(layer, ProductLayer) else []
            names += [layer.name] if isinstance(layer, RuleLayer) else []
            names += [word.name for chain in layer.chains for word in chain]
        return list(dict.fromkeys(names))

    @property
    def depends_on_frame(self) -> bool:
        """Whether an image of a list may be lost because it would be larger than the frame, and others stay."""
        return any(
            True in kinds and FUNCTIONS[word.name].can_grow
            for chain in self._chains
            for word, kinds in zip(chain, kinds_of(chain), strict=False)
        )

    @property
    def all_words(self) -> list[Word]:
        """The words of its layers and of its size, and those of the program before it."""
        before = [] if self.before is None else self.before.all_words
        return [*before, *(word for chain in self._chains for word in chain)]

    @property
    def _chains(self) -> list[tuple[Word, ...]]:
        return [self.size.words, *(chain for layer in self.layers for chain in layer.chains)]

    @classmethod
    def parse(cls, text: str) -> "GridProgram":
        """Read a program back from its text.

        Raises:
            ProgramError, WordError: the text is no program.
        """
        before, after, text = text.rpartition(_AFTER.strip())
        parts = [part.strip() for part in text.split(";")]
        orient = parts.pop(0).removeprefix(_ORIENT).strip() if parts[0].startswith(_ORIENT) else "none"
        if orient not in ORIENTATIONS:
            raise ProgramError(f"orient is {orient!r:.200}; choose one of {', '.join(ORIENTATIONS)}")
        frame = LARGEST
        if parts and parts[0].startswith(_FRAME):
            number = Number("rows", 1, LARGEST).read(parts.pop(0).removeprefix(_FRAME).strip())
            if number is None:
                raise ProgramError(f"{text!r:.200} has no frame; write a number from 1 to {LARGEST}, such as frame 12")
            frame = int(number)
        if len(parts) != 3 or not parts[0].startswith("recolor ") or not parts[1].startswith("size "):
            raise ProgramError(f"{text!r:.200} is no program; write: recolor none; size input; crop > rigid(turn_90)")
        recolor = parts[0].removeprefix("recolor ").strip()
        if recolor not in RECOLORS:
            raise ProgramError(f"recolor is {recolor!r}; choose one of {', '.join(RECOLORS)}")
        layers = tuple(_layer(layer.strip()) for layer in parts[2].split(_OVER))
        size = SizeRule.parse(parts[1].removeprefix("size "))
        return cls(layers, size, recolor, orient, cls.parse(before) if after else None, frame)

    def __call__(self, grid: Sequence[Sequence[int]] | np.ndarray) -> Int8[np.ndarray, "h w"]:
        """Return the answer for a grid.

        Raises:
            ProgramError: a function has no answer for this grid, or the answer would be too large.
            TaskFormatError: it is no grid.
        """
        given = check_grid(grid, "program, grid") if self.before is None else self.before(grid)
        symmetry = ORIENTATIONS[self.orient](given)
        cells = turned(given.astype(np.uint8), symmetry)
        names = recoloring(self.recolor, cells)
        frame = max(self.frame, *cells.shape)
        start = state_of(images_of([names[cells]], frame))
        height, width = self._size(start)
        answer = np.zeros((height, width), np.uint8)
        for layer in reversed(self.layers):
            drawn = _draw(layer, start, (height, width))
            answer = np.where(layer.is_solid | (drawn != 0), drawn, answer)
        return turned_back(np.argsort(names)[answer].astype(np.int8), symmetry)

    def _size(self, start: State) -> tuple[int, int]:
        if self.size.fixed is not None:
            return self.size.fixed
        image = _run(start, self.size.words)
        height, width = int(image.height[0]) * self.size.scale[0], int(image.width[0]) * self.size.scale[1]
        if max(height, width) > LARGEST:
            raise ProgramError(
                f"the answer has {height}x{width} cells by size {self.size}; a grid has {LARGEST}x{LARGEST}"
            )
        return height, width


def recoloring(kind: str, grid: np.ndarray) -> Int64[np.ndarray, "10"]:
    """Return the new name of each color, by the input of a pair.

    ``ranked`` of a grid with four cells of color 5 and two of color 3 names 5 as 1 and 3 as 2; the colors that are not
    there follow in their order. It is a permutation, so that an answer can be named back.
    """
    names = np.arange(NUM_COLORS)
    counts = np.bincount(grid.ravel(), minlength=NUM_COLORS)
    if kind == "ground":
        common = int(counts.argmax())
        names[[0, common]] = common, 0
    if kind == "ranked":
        order = 1 + np.argsort(-counts[1:], kind="stable")
        names[order] = np.arange(1, NUM_COLORS)
    return names


def _run(start: State, words: tuple[Word, ...]) -> Images:
    """Return the image that words make."""
    state = start
    for word in words:
        state = apply(word, state)
        if not (state.numbers[:1] >= 0).all() or not len(state.numbers):
            raise ProgramError(f"the function {word} has no answer for this grid")
    return state.images.take(state.numbers[:1])


def _layer(text: str) -> ProgramLayer:
    if text.startswith(_TABLE):
        return TableLayer.parse(text)
    if text.partition(" ")[0] in RULES:
        return RuleLayer.parse(text)
    return ProductLayer.parse(text) if text.startswith(_PRODUCT) else LayerProgram.parse(text)


def _draw(layer: ProgramLayer, start: State, size: tuple[int, int]) -> UInt8[np.ndarray, "h w"]:
    if isinstance(layer, LayerProgram):
        if layer.color >= 0:
            return np.full(size, layer.color, np.uint8)
        return _placed(_run(start, layer.words), *size, is_moved=layer.is_placed)
    if isinstance(layer, ProductLayer):
        coarse, fine = (_run(start, words).grid(0) for words in (layer.coarse, layer.fine))
        return _on_canvas(multiplied(coarse, fine, layer.has_coarse_colors), 0, 0, *size)
    if isinstance(layer, RuleLayer):
        return layer.rule.drawn(_placed(start.images, *size))
    values = np.stack([_placed(_run(start, words), *size) for words in layer.sources], -1)
    table = dict(layer.table)
    colors = np.array([[table.get(tuple(cell), _UNKNOWN) for cell in row] for row in values.tolist()], np.uint8)
    if layer.keeps_unknown:
        colors = np.where(colors == _UNKNOWN, _placed(start.images, *size), colors)
    elif (colors == _UNKNOWN).any():
        unknown = min(values[colors == _UNKNOWN].tolist())
        raise ProgramError(f"the table of the program has no row for {' '.join(map(str, unknown))}")
    if layer.copied is None:
        return colors
    colors = np.where(colors == COPY, _placed(_run(start, layer.copied), *size), colors)
    if colors.max() >= NUM_COLORS:
        raise ProgramError(
            f"the table of the program copies {colors.max()} from {_text(layer.copied)}, which is no color"
        )
    return colors


def _placed(image: Images, height: int, width: int, is_moved: bool = False) -> UInt8[np.ndarray, "h w"]:
    """Put an image on a canvas: as it is if it has the size and is not to be moved, else at its position."""
    grid = image.grid(0)
    if grid.shape == (height, width) and not is_moved:
        return grid
    return _on_canvas(grid, int(image.row[0]), int(image.column[0]), height, width)


def _on_canvas(grid: np.ndarray, row: int, column: int, height: int, width: int) -> UInt8[np.ndarray, "h w"]:
    canvas = np.zeros((height, width), np.uint8)
    top, left = max(row, 0), max(column, 0)
    seen = grid[top - row : max(height - row, 0), left - column : max(width - column, 0)]
    canvas[top : top + seen.shape[0], left : left + seen.shape[1]] = seen
    return canvas


def _text(words: tuple[Word, ...]) -> str:
    return _THEN.join(map(str, words)) or _NO_WORD


def _words(text: str) -> tuple[Word, ...]:
    return () if text.strip() == _NO_WORD else parse_words(text)


__all__ = ["GridProgram", "LayerProgram", "ProgramError", "SizeRule", "WordError"]
