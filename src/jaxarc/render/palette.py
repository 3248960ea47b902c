"""The ten colors of ARC, as its own testing interface draws them."""

from typing import Final

ARC_COLORS: Final = (  # index = color
    "#000000",  # 0 black
    "#0074d9",  # 1 blue
    "#ff4136",  # 2 red
    "#2ecc40",  # 3 green
    "#ffdc00",  # 4 yellow
    "#aaaaaa",  # 5 gray
    "#f012be",  # 6 magenta
    "#ff851b",  # 7 orange
    "#7fdbff",  # 8 light blue
    "#870c25",  # 9 maroon
)
COLOR_NAMES: Final = (
    "black", "blue", "red", "green", "yellow", "gray", "magenta", "orange", "light blue", "maroon"
)  # fmt: skip


def ink_on(color: int) -> str:
    """Return black or white, whichever is easier to read on ``color``."""
    red, green, blue = (int(ARC_COLORS[color][start : start + 2], 16) for start in (1, 3, 5))
    return "#000000" if 299 * red + 587 * green + 114 * blue > 128_000 else "#ffffff"
