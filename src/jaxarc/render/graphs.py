"""Directed graphs as SVG: nodes on a circle, and an arrow for each edge."""

from collections.abc import Sequence
from html import escape
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from jaxarc.render.svg import Drawing, draw_text, padded

_TEXT: Final = 13  # pixels
_BOX: Final = 26  # height of a node's box
_MARGIN: Final = 14
_INK: Final = "#333333"
_EDGE: Final = "#1e6fb8"
_HEAD: Final = 9  # length of an arrow's head


def graph_svg(
    labels: Sequence[str], weights: Float[np.ndarray, "d d"], is_edge: Bool[np.ndarray, "d d"], title: str = ""
) -> str:
    """Draw d nodes clockwise from the top, and an arrow i -> j where an edge is, the wider the larger its weight.

    Args:
        labels: of the nodes.
        weights: 0 .. 1.
        is_edge: where to draw an arrow.
        title: what a screen reader says; by default how many nodes and edges there are.
    """
    widths = [max(draw_text(label, _TEXT).width + 16, _BOX) for label in labels]
    count = len(labels)
    # Neighbors on the circle are apart by more than a box, and boxes at the sides stand inside the picture.
    radius = max(70.0, count * (_BOX + 22) / (2 * np.pi), max(widths) / 2 if count > 2 else 0)
    angles = 2 * np.pi * np.arange(count) / count - np.pi / 2
    half = max(widths) / 2
    stretch = 1.0 + half / radius
    centers = np.stack([np.cos(angles) * radius * stretch, np.sin(angles) * radius], axis=1)
    centers += [radius * stretch + half, radius + _BOX / 2]
    arrows = [
        _arrow(centers[i], centers[j], (widths[i], widths[j]), float(weights[i, j]), bool(is_edge[j, i]))
        for i, j in np.argwhere(is_edge).tolist()
    ]
    placed = zip(centers.tolist(), widths, labels, strict=True)
    nodes = [_node(x, y, width, label) for (x, y), width, label in placed]
    body = "\n".join([*arrows, *nodes])
    drawing = padded(Drawing(round(2 * (radius * stretch + half)), round(2 * radius + _BOX), body), _MARGIN)
    return drawing.to_svg(title or f"{count} variables and {len(arrows)} edges")


def _node(x: float, y: float, width: int, label: str) -> str:
    box = f"<rect x='{x - width / 2:.1f}' y='{y - _BOX / 2:.1f}' width='{width}' height='{_BOX}' rx='6' "
    style = f"fill='#ffffff' stroke='{_INK}' stroke-width='1.5'/>"
    font = f"font-family='Helvetica, Arial, sans-serif' font-size='{_TEXT}' fill='{_INK}' text-anchor='middle'"
    return f"{box}{style}<text x='{x:.1f}' y='{y + _TEXT * 0.36:.1f}' {font}>{escape(label, quote=False)}</text>"


def _arrow(start: np.ndarray, end: np.ndarray, widths: tuple[int, int], weight: float, has_opposite: bool) -> str:
    """Draw a line from the edge of one box to the edge of the other, with a head."""
    along = (end - start) / np.linalg.norm(end - start)
    aside = np.array([-along[1], along[0]]) * (5 if has_opposite else 0)  # two edges between two nodes lie side by side
    first = start + along * _to_border(along, widths[0]) + aside
    tip = end - along * (_to_border(along, widths[1]) + 2) + aside
    neck = tip - along * _HEAD
    side = np.array([-along[1], along[0]]) * _HEAD * 0.45
    width = 0.8 + 2.2 * weight
    style = f"stroke='{_EDGE}' stroke-opacity='{0.35 + 0.65 * weight:.2f}' stroke-width='{width:.1f}'"
    line = f"<path d='M{_point(first)}L{_point(neck)}' {style}/>"
    return f"{line}<path d='M{_point(tip)}L{_point(neck + side)}L{_point(neck - side)}z' fill='{_EDGE}'/>"


def _to_border(along: np.ndarray, width: int) -> float:
    """How far the border of a box is from its middle, in a direction."""
    return float((np.array([width, _BOX]) / 2 / np.maximum(np.abs(along), 1e-9)).min())


def _point(place: np.ndarray) -> str:
    return f"{place[0]:.1f} {place[1]:.1f}"
