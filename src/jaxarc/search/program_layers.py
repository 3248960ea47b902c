"""Layers of programs: what one draws on a canvas, and its text, which can be read back.

A kind of program is a class of :class:`Layer` and a finder, which returns a :class:`Candidate` for each program that it
finds; both stand in one file. :data:`~jaxarc.search.programs.LAYERS` lists the classes, the search asks the finders.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple, Self, TypeAlias

import numpy as np
from jaxtyping import UInt8

from jaxarc.errors import UsageError
from jaxarc.search.images import Images
from jaxarc.search.interpreter import State, apply
from jaxarc.search.words import Word, parse_words

Chain: TypeAlias = tuple[Word, ...]  # words one after the other, from the input on
UNFORESEEN_COST: Final = 10
"""What a program costs more for each demonstration that it would not explain if that were left out."""
_NO_WORD: Final = "input"


class ProgramError(UsageError, ValueError):
    """A text is no program, or a program has no answer for a grid."""


class Layer(ABC):
    """A layer of an answer. Layers are compared by what they say."""

    name: ClassVar[str] = ""  # the first word of its text; none where its text is a chain of words
    is_solid: bool = True  # covers all cells; else those that are not 0

    @abstractmethod
    def __str__(self) -> str: ...

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Read a layer back from its text."""

    @property
    def chains(self) -> Sequence[Chain]:
        """The words of each image that it is made of."""
        return ()

    @abstractmethod
    def draw(self, start: State, size: tuple[int, int]) -> UInt8[np.ndarray, "h w"]:
        """Return what it makes of the input, on a canvas."""

    @abstractmethod
    def in_words(self) -> str:
        """Say in a sentence what it does."""


class RuleLayer(Layer):
    """A rule that draws on the whole grid, such as ``grow by turns : 0 up x = x``."""

    about: ClassVar[str]  # what such a rule does
    example: ClassVar[str]  # how one is written

    @property
    @abstractmethod
    def text(self) -> str:
        """What its text says after the name."""

    @abstractmethod
    def drawn(self, grid: UInt8[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
        """Return what the rule makes of a grid."""

    def __str__(self) -> str:
        return f"{self.name} {self.text}"

    def draw(self, start: State, size: tuple[int, int]) -> UInt8[np.ndarray, "h w"]:
        return self.drawn(placed(start.images, *size))

    def in_words(self) -> str:
        return f"{self.about}: {self.text}."

    @classmethod
    def refusal(cls, part: str) -> ProgramError:
        """Return the error that a part of a text is no rule."""
        return ProgramError(f"{part!r:.200} is no rule of {cls.name}; write {cls.example}")


class Candidate(NamedTuple):
    """What a finder returns: layers that make an answer, and how well they explain the demonstrations."""

    answer: UInt8[np.ndarray, "h w"]
    layers: tuple[Layer, ...]  # from top to bottom
    cost: int
    fits: tuple[bool, ...]  # whether each demonstration comes out exactly
    share: float  # of the cells of all outputs that come out right


def text_of(words: Chain) -> str:
    """Return the text of a chain of words."""
    return " > ".join(map(str, words)) or _NO_WORD


def read_chain(text: str) -> Chain:
    """Read a chain back from its text.

    Raises:
        WordError: it is none.
    """
    return () if text.strip() == _NO_WORD else parse_words(text)


def run(start: State, words: Chain) -> Images:
    """Return the image that words make.

    Raises:
        ProgramError: a word has no answer for this grid.
    """
    state = start
    for word in words:
        state = apply(word, state)
        if not (state.numbers[:1] >= 0).all() or not len(state.numbers):
            raise ProgramError(f"the function {word} has no answer for this grid")
    return state.images.take(state.numbers[:1])


def placed(image: Images, height: int, width: int, is_moved: bool = False) -> UInt8[np.ndarray, "h w"]:
    """Put an image on a canvas: as it is if it has the size and is not to be moved, else at its position."""
    grid = image.grid(0)
    if grid.shape == (height, width) and not is_moved:
        return grid
    return on_canvas(grid, int(image.row[0]), int(image.column[0]), height, width)


def on_canvas(grid: np.ndarray, row: int, column: int, height: int, width: int) -> UInt8[np.ndarray, "h w"]:
    """Put a grid somewhere on a canvas, as far as it fits."""
    canvas = np.zeros((height, width), np.uint8)
    top, left = max(row, 0), max(column, 0)
    seen = grid[top - row : max(height - row, 0), left - column : max(width - column, 0)]
    canvas[top : top + seen.shape[0], left : left + seen.shape[1]] = seen
    return canvas
