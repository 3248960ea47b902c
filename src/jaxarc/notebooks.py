"""A hook by which notebooks draw tasks and states, so that these need not import what draws them."""

from collections.abc import Callable
from typing import TypeAlias

Painter: TypeAlias = Callable[[object], str | None]

_painters: list[Painter] = []
_page_painters: list[Painter] = []


def draw_with(painter: Painter, page_painter: Painter | None = None) -> None:
    """Let ``painter`` draw SVG and ``page_painter`` HTML; each returns None for what it cannot draw.

    The last ones that are named count.
    """
    _painters[:] = [painter]
    _page_painters[:] = [] if page_painter is None else [page_painter]


def notebook_picture(thing: object) -> str | None:
    """Return what a notebook shows of a thing; None makes it show its ``repr``."""
    return _painters[0](thing) if _painters else None


def notebook_html(thing: object) -> str | None:
    """Return the HTML that a notebook shows of a collection; None makes it show its ``repr``."""
    return _page_painters[0](thing) if _page_painters else None
