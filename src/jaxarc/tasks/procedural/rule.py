"""What every rule of procedural tasks is."""

import abc
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
from jaxtyping import Array, Key

from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.types import FlatGrid

GridShape: TypeAlias = tuple[int, int]
"""Rows and columns ``(H, W)`` of the canvas."""
PairKey: TypeAlias = Key[Array, ""]
"""One typed key."""


class Rule(eqx.Module):
    """Makes endless pairs for endless tasks of one kind; abstract.

    All fields are static and hashable. Both functions are pure, of one task and one pair: they run under ``jit`` and
    ``vmap``, and everything random in them comes from their key. Grids are flat, row by row: rows of 10 cells are too
    short to be fast on a CPU.
    """

    smallest_side: ClassVar[int]  # on which the rule works, 1 .. 30
    min_side: int = eqx.field(static=True, default=3, kw_only=True)  # of grids of random size, smallest_side .. 30
    max_side: int = eqx.field(static=True, default=MAX_GRID_SIZE, kw_only=True)  # the canvas may allow less

    @abc.abstractmethod
    def draw(self, key: PairKey) -> Any:
        """Draw what the pairs of a task have in common, a pytree of arrays."""

    @abc.abstractmethod
    def make_pair(self, key: PairKey, drawn: Any, grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Make the input and the output of one pair, colors 0..9 at the top left of the canvas and -1 outside.

        Args:
            key: of this pair.
            drawn: what :meth:`draw` returned for this task.
            grid_shape: rows and columns of the canvas, both at least ``min_side``.
        """


def check_rule(name: str, rule: Rule, grid_shape: GridShape) -> None:
    """Refuse sides on which a rule does not work, or which the canvas does not hold.

    Raises:
        ValueError: names the rule, its sides and what to change.
    """
    if not rule.smallest_side <= rule.min_side <= rule.max_side:
        raise ValueError(
            f"rule {name!r} needs {rule.smallest_side} <= min_side <= max_side, got side=({rule.min_side}, "
            f"{rule.max_side}); change the sides"
        )
    if rule.min_side > min(grid_shape):
        raise ValueError(
            f"rule {name!r} makes grids with sides from {rule.min_side} on, and the canvas is {grid_shape[0]}x"
            f"{grid_shape[1]}; pass a larger grid_shape or a smaller side, from {rule.smallest_side} on"
        )
