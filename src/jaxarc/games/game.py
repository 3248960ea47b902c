"""What a game is: static facts, levels as text maps, and one pure rule on masks."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from typing import Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

from jaxarc.errors import UsageError, whole_number
from jaxarc.games import bits
from jaxarc.games.bits import Mask
from jaxarc.types import PRNGKey

HEX_COLORS: Final = (
    "#ffffff", "#cccccc", "#999999", "#666666", "#333333", "#000000", "#e53aa3", "#ff7bcc", "#f93c31", "#1e93ff",
    "#88d8f1", "#ffdc00", "#ff851b", "#921231", "#4fcc30", "#a356d6"
)  # fmt: skip


class Color:
    """The colors of ARC-AGI-3 by number."""

    WHITE, SILVER, GRAY, STEEL, COAL, BLACK, PINK, ROSE = range(8)
    RED, BLUE, SKY, YELLOW, ORANGE, MAROON, GREEN, PURPLE = range(8, 16)


ACT: Final = 5
CLICK: Final = 6
UNDO: Final = 7
ACTION_NAMES: Final = {1: "up", 2: "down", 3: "left", 4: "right", 5: "act", 6: "click", 7: "undo"}
MOVES: Final = (bits.UP, bits.DOWN, bits.LEFT, bits.RIGHT)


class GameError(UsageError, ValueError):
    """A game or a level of it is wrong, or there is none of this name."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Board:
    """What a rule sees and changes: ``board["wall"]`` is a mask, ``board["keys"]`` a counter."""

    layers: dict[str, Mask]
    counters: dict[str, Int32[Array, ""]]
    inside: Mask  # the cells of the level

    def __getitem__(self, name: str) -> Array:
        return self.layers[name] if name in self.layers else self.counters[name]

    def set(self, **values: Array) -> "Board":
        """Return the board with other masks and counters."""
        layers = {name: values.get(name, mask) for name, mask in self.layers.items()}
        counters = {name: jnp.asarray(values.get(name, number), jnp.int32) for name, number in self.counters.items()}
        unknown = values.keys() - layers.keys() - counters.keys()
        if unknown:
            raise KeyError(f"the board has no layer and no counter {min(unknown)!r}")
        return dataclasses.replace(self, layers=layers, counters=counters)

    def solid(self, *names: str) -> Mask:
        """Return the cells of some layers, and everything outside the level."""
        mask = ~self.inside
        for name in names:
            mask = mask | self.layers[name]
        return mask


class Action(NamedTuple):
    """What a rule gets: never RESET, which the engine does, and nothing that the game does not have."""

    number: Int32[Array, ""]  # 1 .. 4 up, down, left, right; 5 act; 6 click
    cell: Mask  # the clicked cell; empty without a click


class LevelEvent(NamedTuple):
    """What an action did to the level."""

    won: Bool[Array, ""] | bool = False
    lost: Bool[Array, ""] | bool = False


@dataclasses.dataclass(frozen=True)
class Level:
    """A level as a text map.

    The baseline is what :mod:`jaxarc.games.level_solver` finds: the fewest actions, or the fewest known.
    """

    baseline: int
    map: str  # one line a row
    budget: int = 0  # actions until the level is lost; 0: no limit
    counters: Mapping[str, int] = dataclasses.field(default_factory=dict)  # those that start otherwise than the game's

    @property
    def rows(self) -> list[str]:
        return inspect.cleandoc(self.map).splitlines()


def read_levels(text: str) -> list[Level]:
    """Read levels that stand side by side; a blank line begins the next row of them.

    Above the left edge of each map stand its baseline and, after a slash, its budget::

        2     3/6
        P.G   P.#
              .#.
              ..G
    """
    levels = []
    for block in inspect.cleandoc(text).split("\n\n"):
        heads, *lines = block.splitlines()
        for head in re.finditer(r"(\d+)/?(\d*)", heads):
            rows = [line[head.start() :].split(" ")[0] for line in lines]
            levels.append(Level(int(head[1]), "\n".join(filter(None, rows)), int(head[2] or 0)))
    return levels


Rule: TypeAlias = Callable[[Board, Action], tuple[Board, LevelEvent]]


@dataclasses.dataclass(frozen=True, eq=False)
class GridGame:
    """A game: everything that is fixed, and its rule.

    Raises:
        GameError: a fact contradicts another, or a level has an unknown letter, rows of unequal length, or not what the
            rule needs; the message names game, level, row and letter.
    """

    name: str
    about: str  # one line
    layers: Mapping[str, int | None]  # name -> color, in drawing order; None is not drawn
    letters: Mapping[str, Sequence[str]]  # letter of a map -> the layers that have the cell; "." has none
    actions: Sequence[int]  # of 1 .. 7
    rule: Rule
    levels: Sequence[Level]
    single: Sequence[str] = ()  # layers that have exactly one cell in each level
    needed: Sequence[str] = ()  # layers that have at least one
    counters: Mapping[str, int] = dataclasses.field(default_factory=dict)  # name -> value at the start of a level
    undo: Sequence[str] = ()  # layers that action 7 takes back
    background: int = Color.COAL
    view: Callable[[Board], Sequence[tuple[Mask, int]]] | None = None  # masks with colors, where layers are not enough
    generate: Callable[[PRNGKey, Int32[Array, ""]], Board] | None = None  # from key and difficulty, 0 .. N - 1

    def __post_init__(self) -> None:
        self._check_facts()
        unknown = {name for names in self.letters.values() for name in names} - self.layers.keys()
        if unknown:
            raise GameError(f"game {self.name!r}: its letters name a layer {min(unknown)!r} that it does not have")
        if bool(self.undo) != (UNDO in self.actions):
            raise GameError(f"game {self.name!r}: action 7 needs layers that it takes back, and they need action 7")
        for index, level in enumerate(self.levels):
            self._check(index, level)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the largest level."""
        return max(len(level.rows) for level in self.levels), max(len(level.rows[0]) for level in self.levels)

    @property
    def simple_actions(self) -> tuple[int, ...]:
        """The actions without a cell, in order."""
        return tuple(sorted(number for number in self.actions if number != CLICK))

    @property
    def clicks(self) -> bool:
        """Whether an action may be a click."""
        return CLICK in self.actions

    def board(self, index: int) -> Board:
        """Return a level as it starts, on arrays of the largest level's height.

        Raises:
            GameError: there is no such level.
        """
        index = whole_number(index, "a level", GameError)
        if not 0 <= index < len(self.levels):
            raise GameError(f"game {self.name!r} has the levels 0 .. {len(self.levels) - 1}, got {index}")
        level = self.levels[index]
        masks = {name: np.zeros(self.shape[0], np.uint32) for name in self.layers}
        inside = np.zeros(self.shape[0], np.uint32)
        for row, line in enumerate(level.rows):
            inside[row] = (1 << len(line)) - 1
            for column, letter in enumerate(line):
                for name in self.letters.get(letter, ()):
                    masks[name][row] |= np.uint32(1 << column)
        layers = {name: jnp.asarray(mask) for name, mask in masks.items()}
        counters = {name: jnp.int32(level.counters.get(name, value)) for name, value in self.counters.items()}
        return Board(layers, counters, jnp.asarray(inside))

    def colored(self, board: Board) -> Sequence[tuple[Mask, int]]:
        """Return masks with their colors, from the lowest to the highest."""
        if self.view is not None:
            return self.view(board)
        return [(board.layers[name], color) for name, color in self.layers.items() if color is not None]

    def _check_facts(self) -> None:
        # The name begins names of files, and stands before a dash in ARC-AGI-3's ids.
        if not (isinstance(self.name, str) and self.name.isidentifier() and self.name.isascii()) or iskeyword(
            self.name
        ):
            raise GameError(f"the name of a game is letters, digits and _, as in Python, got {self.name!r:.60}")
        if not self.levels:
            raise GameError(f"game {self.name!r} has no level; it needs one")
        if not self.actions or not set(self.actions) <= ACTION_NAMES.keys():
            raise GameError(f"game {self.name!r}: actions are numbers 1 .. 7, got {self.actions!r:.60}")
        colors = {*self.layers.values(), self.background} - {None}
        if not colors <= set(range(len(HEX_COLORS))):
            raise GameError(f"game {self.name!r}: colors are 0 .. {len(HEX_COLORS) - 1}, got {colors!r:.60}")
        named = {*self.single, *self.needed, *self.undo}
        if named - self.layers.keys():
            raise GameError(f"game {self.name!r} has no layer {min(named - self.layers.keys())!r}; name one of its own")
        if both := self.layers.keys() & self.counters.keys():
            raise GameError(f"game {self.name!r}: {min(both)!r} is a layer and a counter; rename one")

    def _check(self, index: int, level: Level) -> None:
        where = f"game {self.name!r}, level {index}"
        counts = dict.fromkeys(self.layers, 0)
        rows = level.rows
        if not 1 <= len(rows) <= bits.MAX_SIDE or not 1 <= len(rows[0]) <= bits.MAX_SIDE:
            raise GameError(f"{where}: a map has 1 to {bits.MAX_SIDE} rows and columns, got {len(rows)} rows")
        for row, line in enumerate(rows):
            if len(line) != len(rows[0]):
                raise GameError(f"{where}, row {row} has {len(line)} letters, row 0 has {len(rows[0])}: {line!r}")
            for letter in line:
                if letter != "." and letter not in self.letters:
                    known = " ".join([".", *self.letters])
                    raise GameError(f"{where}, row {row}: unknown letter {letter!r}; known are {known}")
                for name in self.letters.get(letter, ()):
                    counts[name] += 1
        for name in self.single:
            if counts[name] != 1:
                raise GameError(f"{where}: the rule needs exactly one cell of {name!r}, got {counts[name]}")
        for name in self.needed:
            if not counts[name]:
                raise GameError(f"{where}: the rule needs a cell of {name!r}, got none")
