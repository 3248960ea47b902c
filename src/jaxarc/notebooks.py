"""How a notebook draws what it shows: a hook, so that tasks and states need not know who draws them."""

from collections.abc import Callable

_painters: list[Callable[[object], str | None]] = []


def draw_with(painter: Callable[[object], str | None]) -> None:
    """Let ``painter`` draw: it returns SVG, or None for what it cannot draw. The last one that is named counts."""
    _painters[:] = [painter]


def notebook_picture(thing: object) -> str | None:
    """Return what a notebook shows of a thing; None makes it show its ``repr``."""
    return _painters[0](thing) if _painters else None
