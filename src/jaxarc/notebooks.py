"""A hook by which notebooks draw tasks and states, so that these need not import what draws them."""

from collections.abc import Callable
from typing import TypeAlias

Painter: TypeAlias = Callable[[object], str | None]

_painters: dict[str, Painter] = {}


def draw_with(picture: Painter, page: Painter) -> None:
    """Let one function draw SVG and one HTML; each returns None for what it cannot draw. The last ones count."""
    _painters.update(picture=picture, page=page)


def notebook_picture(thing: object) -> str | None:
    """Return what a notebook shows of a thing; None makes it show its ``repr``."""
    return _painters["picture"](thing) if _painters else None


def notebook_html(thing: object) -> str | None:
    """Return the HTML that a notebook shows of a collection; None makes it show its ``repr``."""
    return _painters["page"](thing) if _painters else None
