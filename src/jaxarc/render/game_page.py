"""The page of a game: served while somebody plays, or one file that holds a recording."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from jaxtyping import Int8

from jaxarc.render.replay_page import hash_of


def game_page_file(name: str, colors: Sequence[str]) -> str:
    """Return ``game.html``, ``game.css`` or ``game.js``, of a page that plays through the server which sends it."""
    text = (files("jaxarc.render") / "page" / name).read_text(encoding="utf-8")
    if name.endswith(".js"):
        return text.replace("{colors}", json.dumps(list(colors)))
    style, script = '<link rel="stylesheet" href="game.css">', '<script type="module" src="game.js"></script>'
    return text.replace("{style}", style).replace("{script}", script) if name.endswith(".html") else text


def recording_page(name: str, steps: Sequence[Mapping[str, Any]], colors: Sequence[str]) -> bytes:
    """Return a recording as one HTML file, which loads nothing from anywhere.

    Args:
        name: of the game.
        steps: of each action ``action``, ``x``, ``y``, ``frames`` as :func:`to_digits` writes them, ``completed``,
            ``levels`` and ``state``.
        colors: of the digits, in CSS.
    """
    style, script = (game_page_file(file, colors) for file in ("game.css", "game.js"))
    data = json.dumps({"name": name, "steps": list(steps)}).replace("<", "\\u003c")
    allowed = " ".join(f"{kind}-src '{hash_of(text)}';" for kind, text in (("style", style), ("script", script)))
    policy = f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; {allowed}">'
    inline = f'<script type="application/json" id="recording">{data}</script>\n<script type="module">{script}</script>'
    text = (files("jaxarc.render") / "page" / "game.html").read_text(encoding="utf-8")
    return text.replace("{style}", f"{policy}\n<style>{style}</style>").replace("{script}", inline).encode()


def to_digits(frame: Int8[np.ndarray, "64 64"]) -> list[str]:
    """Write a frame as rows of hexadecimal digits."""
    return ["".join(f"{cell:x}" for cell in row) for row in frame.tolist()]
