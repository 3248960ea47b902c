"""Draw a level of each game for ``docs/games.md``, and some of them side by side for the README.

Run ``python docs/make_game_pictures.py`` after a change to a game; a test compares the files.
"""

from pathlib import Path

import numpy as np

import jaxarc.games
from jaxarc.files import write_whole
from jaxarc.games import GameEnvironment
from jaxarc.games.game import HEX_COLORS

FOLDER = Path(__file__).parent / "images" / "games"
LEVEL = 4
SIDE = 12  # pixels of a cell
SHOWN = 96  # pixels of a picture
STRIP = ("crates", "pipes", "fire", "flood", "mirrors", "ice")  # of the README
HEIGHT, GAP = 120, 12  # pixels of the strip


def picture(name: str) -> str:
    """Return a level of a game as a square SVG, the level in its middle."""
    drawn, width, height = _squares(name)
    return _svg(name, drawn, (width, height), (SHOWN, SHOWN))


def strip() -> str:
    """Return the games of the README side by side."""
    drawn, left = [], 0
    for name in STRIP:
        squares, width, height = _squares(name)
        scale = HEIGHT / height
        drawn.append(f"<g transform='translate({left:g} 0) scale({scale:g})'>{squares}</g>")
        left = round(left + width * scale + GAP)
    size = (left - GAP, HEIGHT)
    return _svg(f"Levels of {', '.join(STRIP)}", "\n".join(drawn), size, size)


def _squares(name: str) -> tuple[str, int, int]:
    """Return a path for each color of a level, and the level's width and height in pixels."""
    env = GameEnvironment(jaxarc.games.game(name))
    rows = env.game.levels[LEVEL].rows
    cells = np.asarray(env.cells(env.game.board(LEVEL)))
    cells = cells[: len(rows), : len(rows[0])]
    parts = []
    for color in np.unique(cells):
        squares = "".join(f"M{x * SIDE} {y * SIDE}h{SIDE}v{SIDE}h-{SIDE}z" for y, x in np.argwhere(cells == color))
        parts.append(f"<path fill='{HEX_COLORS[color]}' d='{squares}'/>")
    height, width = (side * SIDE for side in cells.shape)
    return "\n".join(parts), width, height


def _svg(title: str, drawn: str, size: tuple[int, int], shown: tuple[int, int]) -> str:
    """Return a drawing of some size; it is shown in another, in the middle of it."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{shown[0]}' height='{shown[1]}' "
        f"viewBox='0 0 {size[0]} {size[1]}' role='img' shape-rendering='crispEdges'>\n"
        f"<title>{title}</title>\n{drawn}\n</svg>\n"
    )


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in jaxarc.games.NAMES:
        write_whole(FOLDER / f"{name}.svg", picture(name).encode())
    write_whole(FOLDER.parent / "games.svg", strip().encode())


if __name__ == "__main__":
    main()
