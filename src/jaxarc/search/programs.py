"""Programs as objects: what was found, in a text that can be read back, and that runs on an unseen grid."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Int8, Int64

from jaxarc.search.growth import Growth
from jaxarc.search.images import NUM_COLORS, images_of
from jaxarc.search.interpreter import State, state_of
from jaxarc.search.object_rules import ObjectRule
from jaxarc.search.orientations import ORIENTATIONS, turned, turned_back
from jaxarc.search.pieces import ImageLayer, ProductLayer
from jaxarc.search.program_layers import Chain, Layer, ProgramError, read_chain, run, text_of
from jaxarc.search.tables import TableLayer
from jaxarc.search.templates import Templates
from jaxarc.search.words import FUNCTIONS, LARGEST, Number, Word, WordError, kinds_of
from jaxarc.tasks.raw_task import check_grid

LAYERS: Final[dict[str, type[Layer]]] = {
    one.name: one for one in (TableLayer, ProductLayer, Growth, ObjectRule, Templates)
}
"""First word of its text -> the class of a layer; any other text is an :class:`ImageLayer`."""
_OVER: Final = " + "
_AFTER: Final = " => "
_ORIENT: Final = "orient "
_FRAME: Final = "frame "
RECOLORS: Final = ("none", "ground", "ranked")
"""Leave all colors; exchange the commonest with 0; name all but 0 by how common they are, the commonest 1."""


@dataclass(frozen=True)
class SizeRule:
    """The size of an answer: fixed, or a multiple of the size of an image that words make."""

    fixed: tuple[int, int] | None = None
    words: Chain = ()
    scale: tuple[int, int] = (1, 1)

    def __str__(self) -> str:
        if self.fixed is not None:
            return "{}x{}".format(*self.fixed)
        chain = text_of(self.words)
        return chain if self.scale == (1, 1) else f"{chain} * {self.scale[0]}x{self.scale[1]}"

    @classmethod
    def parse(cls, text: str) -> "SizeRule":
        """Read a rule back from its text."""
        chain, star, scale = (part.strip() for part in text.partition("*"))
        numbers = scale if star else chain if chain[:1].isdigit() else None
        if numbers is None:
            return cls(None, read_chain(chain))
        sides = re.fullmatch(r"([0-9]{1,2})x([0-9]{1,2})", numbers)
        height, width = map(int, sides.groups()) if sides else (0, 0)
        if not (1 <= height <= LARGEST and 1 <= width <= LARGEST):
            raise ProgramError(
                f"{text.strip()!r:.200} is no size; write 3x3, input, input * 2x2 or the functions of an image, with "
                f"numbers from 1 to {LARGEST}"
            )
        return cls(None, read_chain(chain), (height, width)) if star else cls((height, width))


@dataclass(frozen=True)
class GridProgram:
    """From a grid to an answer: recolor, make layers, stack them on a canvas, recolor back.

    ``str(program)`` is its text, :meth:`parse` reads it back, and ``program(grid)`` runs it.
    """

    layers: tuple[Layer, ...]  # from top to bottom
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
            over = "" if len(self.layers) == 1 else f"Layer {number}. "
            lines.append(f"{over}{layer.in_words()}")
        return lines

    @property
    def functions(self) -> list[str]:
        """The names of the functions of its layers, in order, each once, with ``table`` for a table."""
        names = [] if self.before is None else self.before.functions
        for layer in self.layers:
            names += [layer.name] if layer.name else []
            names += [word.name for chain in layer.chains for word in chain]
        return list(dict.fromkeys(names))

    @property
    def depends_on_frame(self) -> bool:
        """Whether an image of a list may be lost because it would be larger than the frame, and others stay."""
        return any(
            True in kinds and FUNCTIONS[word.name].can_grow
            for chain in self._chains
            for word, kinds in zip(chain, kinds_of(chain)[:-1], strict=True)
        )

    @property
    def all_words(self) -> list[Word]:
        """The words of its layers and of its size, and those of the program before it."""
        before = [] if self.before is None else self.before.all_words
        return [*before, *(word for chain in self._chains for word in chain)]

    @property
    def _chains(self) -> list[Chain]:
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
        layers = tuple(
            LAYERS.get(layer.strip().partition(" ")[0], ImageLayer).parse(layer) for layer in parts[2].split(_OVER)
        )
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
            drawn = layer.draw(start, (height, width))
            answer = np.where(layer.is_solid | (drawn != 0), drawn, answer)
        return turned_back(np.argsort(names)[answer].astype(np.int8), symmetry)

    def _size(self, start: State) -> tuple[int, int]:
        if self.size.fixed is not None:
            return self.size.fixed
        image = run(start, self.size.words)
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


__all__ = ["GridProgram", "ProgramError", "SizeRule", "WordError"]
