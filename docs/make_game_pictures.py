"""Draw the pictures of ``docs/games.md``: a level of each game, as it starts.

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


def picture(name: str) -> str:
    """Return a level of a game as SVG."""
    env = GameEnvironment(jaxarc.games.game(name))
    rows = env.game.levels[LEVEL].rows
    cells = np.asarray(env.cells(env.game.board(LEVEL)))
    cells = cells[: len(rows), : len(rows[0])]
    parts = []
    for color in np.unique(cells):
        squares = "".join(f"M{x * SIDE} {y * SIDE}h{SIDE}v{SIDE}h-{SIDE}z" for y, x in np.argwhere(cells == color))
        parts.append(f"<path fill='{HEX_COLORS[color]}' d='{squares}'/>")
    height, width = (side * SIDE for side in cells.shape)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}' "
        f"role='img' shape-rendering='crispEdges'>\n<title>{name}</title>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in jaxarc.games.NAMES:
        write_whole(FOLDER / f"{name}.svg", picture(name).encode())


if __name__ == "__main__":
    main()
