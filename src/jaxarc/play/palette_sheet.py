"""The palettes as a style sheet, so that pages and pictures draw the same colors."""

from typing import Final

from jaxarc.render.palette import PALETTES, ink_on

_WHERE: Final = {"arc": ":root", "safe": ":root.safe"}


def palette_sheet() -> str:
    """Return CSS with a variable for each color and one for the ink on it; class ``safe`` takes the safe palette."""
    rules = []
    for name, selector in _WHERE.items():
        palette = PALETTES[name]
        colors = (
            f"  --color-{number}: {color}; --ink-{number}: {ink_on(number, palette)};\n"
            for number, color in enumerate(palette)
        )
        rules.append(f"{selector} {{\n{''.join(colors)}}}\n")
    return "".join(rules)
