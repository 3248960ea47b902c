"""Palettes: the ten colors of ARC's own testing interface, and ten that color-blind people distinguish."""

from typing import Final

Palette = tuple[str, ...]
"""Ten colors as ``#rrggbb``, by their number."""

ARC_COLORS: Final[Palette] = (  # index = color
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


# Found by a search around the hues of ARC. For people without red, green or blue cones the nearest two of these colors
# are 29 apart (CIE 1976, simulated as by Machado et al. 2009); of ARC's own colors the nearest two are 8 apart.
SAFE_COLORS: Final[Palette] = (
    "#000000", "#3b5fdb", "#d00a0f", "#22b05c", "#ffff0e", "#9f9f9f", "#9c1d84", "#e9a21b", "#28f2ff", "#5d4338"
)  # fmt: skip
_MIDDLE: Final = (1.05 * 0.05) ** 0.5 - 0.05  # luminance with the same contrast to black and to white
PALETTES: Final[dict[str, Palette]] = {"arc": ARC_COLORS, "safe": SAFE_COLORS}


PADDING_COLOR: Final = "#f3f3f3"


def color_of(cell: int, palette: Palette) -> str:
    """Return the color of a cell, -1 for padding."""
    return PADDING_COLOR if cell < 0 else palette[cell]


def rgb(color: str) -> tuple[int, int, int]:
    """Split ``#rrggbb`` into red, green and blue, each 0 .. 255."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def ink_on(color: int, palette: Palette = ARC_COLORS) -> str:
    """Return black or white, the one with more contrast to ``color`` by WCAG 2."""
    return "#000000" if _luminance(palette[color]) > _MIDDLE else "#ffffff"


def _luminance(color: str) -> float:
    """Return the relative luminance of WCAG 2, 0 .. 1: each part without its gamma, then weighted as the eye does."""
    shares = (value / 255 for value in rgb(color))
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
