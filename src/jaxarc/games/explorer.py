"""A player that learns nothing: it draws a graph of the frames that it sees, and tries what it has not tried.

A node is a frame, an edge an action. In a node the explorer takes an action that it never took there; where none is
left, it walks along known edges to the nearest node that has one. It clicks once in each region of one color, small
regions first, and then once in each cell. A loss leads to RESET, and a level completed begins a new graph. The last row
of frames is not looked at: games show there how many actions are left.
"""

import random
import zlib
from collections import deque
from collections.abc import Container
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int8

from jaxarc.errors import whole_number
from jaxarc.games.engine import FRAME_SIDE
from jaxarc.games.frames import SIMPLE, FrameGame, to_number
from jaxarc.games.game import CLICK, GameError


class PlayedGame(NamedTuple):
    """How a game went."""

    score: float  # the official one, 0 .. 100; NaN without baselines
    levels_completed: int
    actions: tuple[int, ...]  # in each level
    won: bool


class _Node:
    """A frame: the actions that were not tried in it, the best first, and where the others led."""

    def __init__(self, untried: list[int]):
        self.untried = untried
        self.edges: dict[int, int] = {}  # action -> hash of the frame that followed


def explore(game: FrameGame, max_actions: int = 2000, seed: int = 0) -> PlayedGame:
    """Play a game from its start.

    Args:
        game: ours, or one behind the bridge.
        max_actions: in one level, over all its starts; then the explorer gives up.
        seed: breaks ties between actions.

    Raises:
        GameError: a number is no whole number.
    """
    max_actions = whole_number(max_actions, "max_actions", GameError)
    draw = random.Random(whole_number(seed, "seed", GameError))
    seen = game.reset()
    level, nodes, start, count = -1, {}, 0, 0
    while seen.state != "WIN":
        if seen.levels_completed != level:
            level, nodes, count = seen.levels_completed, {}, 0
            start = _hash(seen.frames[-1])
        if count >= max_actions:
            break
        here = _hash(seen.frames[-1])
        if here not in nodes:
            nodes[here] = _Node(_candidates(seen.frames[-1], seen.available, draw))
        action = _next_action(nodes, here)
        count += 1
        if action is None:  # everything that can be reached from here was tried
            if here == start:
                break
            seen = game.reset()
            continue
        seen = game.step(action)
        if action in nodes[here].untried:
            nodes[here].untried.remove(action)
        if seen.state == "GAME_OVER":
            nodes[here].edges.pop(action, None)
            seen = game.reset()
            count += 1
        elif seen.state != "WIN" and seen.levels_completed == level:
            nodes[here].edges[action] = _hash(seen.frames[-1])
    return PlayedGame(game.score, seen.levels_completed, tuple(game.spent), seen.state == "WIN")


def _next_action(nodes: dict[int, _Node], here: int) -> int | None:
    """Return an untried action, or the first step on the shortest known way to one; None where there is none."""
    if nodes[here].untried:
        return nodes[here].untried[0]
    todo = deque((after, action) for action, after in nodes[here].edges.items() if after in nodes)
    known = {here}
    while todo:
        place, first = todo.popleft()
        if place in known:
            continue
        known.add(place)
        if nodes[place].untried:
            return first
        todo.extend((after, first) for after in nodes[place].edges.values() if after in nodes)
    return None


def _candidates(frame: Int8[np.ndarray, "64 64"], available: Container[int], draw: random.Random) -> list[int]:
    """Return the simple actions in random order, then clicks: in each region, small ones first, and in each cell."""
    simple = [to_number(action) for action in SIMPLE if action in available]
    draw.shuffle(simple)
    if CLICK not in available:
        return simple
    regions = sorted(_regions(frame), key=lambda cells: (len(cells), draw.random()))
    places = [cells[len(cells) // 2] for cells in regions]
    side, left, top = _cells(frame)
    if side > 1:
        middle = side // 2
        xs, ys = (range(start + middle, FRAME_SIDE, side) for start in (left, top))
        places += [(x, y) for y in ys for x in xs]
    return simple + list(dict.fromkeys(to_number(CLICK, *place) for place in places))


def _cells(frame: Int8[np.ndarray, "64 64"]) -> tuple[int, int, int]:
    """Return the largest side that the cells of a frame can have, and the x and y at which they begin.

    Colors change at edges of cells only, and ARC-AGI-3's camera puts the cells in the middle of the frame.
    """
    columns = np.nonzero((frame[:-1, 1:] != frame[:-1, :-1]).any(0))[0] + 1
    rows = np.nonzero((frame[1:-1] != frame[:-2]).any(1))[0] + 1
    for count in range(1, FRAME_SIDE):
        left, top = (_start(edges, FRAME_SIDE // count, count) for edges in (columns, rows))
        if left is not None and top is not None:
            return FRAME_SIDE // count, left, top
    return 1, 0, 0


def _start(edges: Int[np.ndarray, " E"], side: int, most: int) -> int | None:
    """Return where cells of a side begin, of which there are ``most`` or fewer, if all edges are edges of them."""
    for count in range(most, 0, -1):
        start = (FRAME_SIDE - count * side) // 2
        if all(start <= edge <= start + count * side and (edge - start) % side == 0 for edge in edges):
            return start
    return None


def _regions(frame: Int8[np.ndarray, "64 64"]) -> list[list[tuple[int, int]]]:
    """Return the cells x, y of each connected region of one color."""
    colors = frame[:-1].tolist()
    seen: Bool[np.ndarray, "64 64"] = np.zeros(frame.shape, np.bool_)
    regions = []
    for y in range(FRAME_SIDE - 1):
        for x in range(FRAME_SIDE):
            if seen[y, x]:
                continue
            seen[y, x] = True
            cells, todo = [], [(x, y)]
            while todo:
                column, row = todo.pop()
                cells.append((column, row))
                for near, beside in ((column, row - 1), (column, row + 1), (column - 1, row), (column + 1, row)):
                    inside = 0 <= near < FRAME_SIDE and 0 <= beside < FRAME_SIDE - 1
                    if inside and not seen[beside, near] and colors[beside][near] == colors[y][x]:
                        seen[beside, near] = True
                        todo.append((near, beside))
            regions.append(cells)
    return regions


def _hash(frame: Int8[np.ndarray, "64 64"]) -> int:
    return zlib.crc32(frame[:-1].tobytes())
