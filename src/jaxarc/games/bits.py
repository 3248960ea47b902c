"""Bit algebra on grids: a mask is one uint32 for each row, and bit x of it is column x.

A grid of at most 32x32 cells is a few words, and a rule on it a few operations on words that XLA fuses over a whole
batch, without a gather, a scatter or, in most rules, a loop. The examples write masks as rows of dots and letters.
Directions are ARC-AGI-3's numbers of actions, 1 up, 2 down, 3 left and 4 right, and may be traced; other numbers move
nothing. What leaves the array is lost; levels narrower than 32 columns say by ``inside`` where they end.
"""

from typing import Final, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Int32, UInt32

Mask: TypeAlias = UInt32[Array, " H"]
"""A set of cells: a word for each row, bit x is column x."""
Direction: TypeAlias = Int[Array, ""] | int

UP: Final = 1
DOWN: Final = 2
LEFT: Final = 3
RIGHT: Final = 4
MAX_SIDE: Final = 32  # columns in a word, and as many rows


def up(mask: Mask, cells: int = 1) -> Mask:
    """Move a mask by some rows."""
    return jnp.concatenate([mask[cells:], jnp.zeros_like(mask[:cells])])


def down(mask: Mask, cells: int = 1) -> Mask:
    """Move a mask by some rows."""
    return jnp.concatenate([jnp.zeros_like(mask[:cells]), mask[: max(0, mask.shape[0] - cells)]])


def left(mask: Mask, cells: int = 1) -> Mask:
    """Move a mask by some columns: column x is bit x, so that left is a shift to the right."""
    return mask >> cells


def right(mask: Mask, cells: int = 1) -> Mask:
    """Move a mask by some columns."""
    return mask << cells


_MOVES: Final = {UP: up, DOWN: down, LEFT: left, RIGHT: right}


def shift(mask: Mask, direction: Direction, cells: int = 1) -> Mask:
    """Move a mask, in a direction that may be traced.

    ..A  right   ...
    A..          .A.
    """
    if isinstance(direction, int):
        return _MOVES[direction](mask, cells) if direction in _MOVES else mask
    moved = mask
    for number, move in _MOVES.items():
        moved = jnp.where(direction == number, move(mask, cells), moved)
    return moved


def opposite(direction: Direction) -> Direction:
    """Return 2 for 1, 1 for 2, 4 for 3, 3 for 4; of what is no direction, again none."""
    if isinstance(direction, int):
        return (direction - 1 ^ 1) + 1 if direction in _MOVES else 0
    return jnp.where(is_direction(direction), ((direction - 1) ^ 1) + 1, 0)


def is_direction(direction: Direction) -> Bool[Array, ""]:
    """Whether a number is one of the four directions."""
    return jnp.asarray((direction >= UP) & (direction <= RIGHT))


def walk(players: Mask, blocked: Mask, direction: Direction) -> Mask:
    """Move each player by one cell, unless the cell ahead is blocked; ``#`` is blocked.

    P.P#  right   .P.P  is refused for the second:  .PP#
    """
    arrived = shift(players, direction) & ~blocked
    return arrived | (players & ~shift(arrived, opposite(direction)))


def push(players: Mask, boxes: Mask, blocked: Mask, direction: Direction) -> tuple[Mask, Mask]:
    """Move each player by one cell, and the one box ahead of it with it, where behind the box there is room.

    PB.  right   .PB        PBB  right   PBB
    """
    landed = shift(shift(players, direction) & boxes, direction) & ~(boxes | blocked)
    boxes = (boxes & ~shift(landed, opposite(direction))) | landed
    return walk(players, boxes | blocked, direction), boxes


def ray(sources: Mask, free: Mask, direction: Direction) -> Mask:
    """Return the free cells ahead of each source, up to the first one that is not free.

        S..#.  right   .**..

    Kogge and Stone's doubling: after k rounds ``lit`` reaches 2^k cells, and ``clear`` says that so many cells up to
    this one are free; five rounds reach 32 cells.
    """
    lit = shift(sources, direction) & free
    clear = free
    vertical = isinstance(direction, int) and direction in (UP, DOWN)
    for cells in (1, 2, 4, 8, 16):
        if vertical and cells >= sources.shape[0]:
            break  # nothing is so far away
        lit |= clear & shift(lit, direction, cells)
        clear &= shift(clear, direction, cells)
    return lit & jnp.where(is_direction(direction), ~jnp.zeros_like(lit), 0)


def slide(players: Mask, blocked: Mask, direction: Direction) -> Mask:
    """Move each player until the cell ahead is blocked; no two may be in one line.

    P..#  right   ..P#
    """
    path = players | ray(players, ~blocked, direction)
    return jnp.where(is_direction(direction), path & ~shift(path, opposite(direction)), players)


def wrap(mask: Mask, inside: Mask, direction: Direction) -> Mask:
    """Move a mask by one cell; what leaves the level enters it on the opposite side.

    ..A  right   A..
    """
    at_edge = inside & ~shift(inside, opposite(direction))
    return (shift(mask, direction) & inside) | slide(mask & at_edge, ~inside, opposite(direction))


def neighbors(mask: Mask) -> Mask:
    """Return the cells above, below, left and right of those of a mask, whether they are in it or not.

    ...   .*.
    .A.   *.*
    ...   .*.
    """
    return up(mask) | down(mask) | left(mask) | right(mask)


def flood(seeds: Mask, free: Mask) -> Mask:
    """Return the free cells that are connected with a seed by free cells, and the seeds.

    S.#.   **#.
    #.#.   #*#.
    """

    def grow(reached: Mask) -> Mask:
        for direction in (UP, DOWN, LEFT, RIGHT):
            reached |= ray(reached, free, direction)
        return reached

    found, _ = jax.lax.while_loop(
        lambda both: (both[0] != both[1]).any(), lambda both: (grow(both[0]), both[0]), (grow(seeds), seeds)
    )
    return found


def count(mask: Mask) -> Int32[Array, ""]:
    """Return how many cells a mask has."""
    return jax.lax.population_count(mask).astype(jnp.int32).sum(dtype=jnp.int32)


def some(mask: Mask) -> Bool[Array, ""]:
    """Whether a mask has a cell."""
    return (mask != 0).any()


def same(one: Mask, other: Mask) -> Bool[Array, ""]:
    """Whether two masks have the same cells."""
    return (one == other).all()


def where(condition: Bool[Array, ""], mask: Mask) -> Mask:
    """Return a mask, or the empty one where a condition is false."""
    return jnp.where(condition, mask, jnp.zeros_like(mask))


def cell(row: Int[Array, ""], column: Int[Array, ""], height: int) -> Mask:
    """Return the mask of one cell; the empty one for a row that is not there."""
    bit = jnp.left_shift(jnp.uint32(1), jnp.asarray(column).astype(jnp.uint32))
    return jnp.where(jnp.arange(height) == row, bit, jnp.uint32(0))


def from_bool(cells: Bool[Array, "H W"]) -> Mask:
    """Pack a grid of bools."""
    weights = jnp.left_shift(jnp.uint32(1), jnp.arange(cells.shape[1], dtype=jnp.uint32))
    return jnp.where(cells, weights[None], jnp.uint32(0)).sum(1, dtype=jnp.uint32)


def to_bool(mask: Mask, width: int) -> Bool[Array, "H W"]:
    """Unpack a mask."""
    return ((mask[:, None] >> jnp.arange(width, dtype=jnp.uint32)[None]) & 1) != 0
