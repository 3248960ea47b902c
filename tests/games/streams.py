"""Streams of actions for two engines at once: random ones between solutions of levels, so that levels are completed.

Plain Python, because both the engine of this package and the one of the twins read it.
"""

import random
from collections.abc import Iterator, Sequence

SIDE = 64


def camera(rows: Sequence[str]) -> tuple[int, int, int]:
    """Side of a cell in the frame, and where the level begins: row, column."""
    scale = min(SIDE // len(rows), SIDE // len(rows[0]))
    return scale, (SIDE - len(rows) * scale) // 2, (SIDE - len(rows[0]) * scale) // 2


def told(action: int, simple: Sequence[int], width: int, rows: Sequence[str]) -> tuple[int, int, int]:
    """An action of the environment as number, x and y; a click hits the middle of its cell."""
    if action <= len(simple):
        return (0, *simple)[action], 0, 0
    row, column = divmod(action - 1 - len(simple), width)
    scale, top, left = camera(rows)
    return 6, left + column * scale + scale // 2, top + row * scale + scale // 2


def stream(
    seed: int, levels: Sequence[Sequence[str]], actions: Sequence[int], solutions: Sequence[Sequence[tuple]]
) -> Iterator[tuple[int, int, int]]:
    """Yield number, x and y, without end; some numbers the game does not have, and some clicks hit no cell."""
    draw = random.Random(seed)

    def noise(most: int) -> Iterator[tuple[int, int, int]]:
        for _ in range(draw.randrange(1, most)):
            number = draw.choice(actions) if draw.random() < 0.9 else draw.randrange(8)
            yield number, draw.randrange(SIDE), draw.randrange(SIDE)

    while True:
        yield from noise(30)
        yield from [(0, 0, 0), (0, 0, 0)]  # the second one starts the whole game again
        for index in range(draw.randrange(1, len(levels) + 2)):
            if draw.random() < 0.5:
                yield from noise(12)
                yield (0, 0, 0)
            yield from solutions[index % len(levels)]
