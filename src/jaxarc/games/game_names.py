"""The games of this package by name."""

import functools
import importlib
from typing import Final, Literal

from jaxarc.games.engine import DEFAULT_MAX_STEPS, GameEnvironment, GameParams
from jaxarc.games.game import GameError, GridGame

NAMES: Final = ("bridges", "crates", "fire", "flood", "fog", "gravity", "ice", "keys", "lamps", "mirrors", "order",
                "paint", "path", "patrol", "pipes", "plates", "portals", "shifts", "torus", "twins")  # fmt: skip


def make(
    name: str, observation: Literal["cells", "frame"] = "cells", max_steps: int = DEFAULT_MAX_STEPS
) -> tuple[GameEnvironment, GameParams]:
    """Return the environment of a game and the params of its own levels.

    Raises:
        GameError: there is no such game or observation.
    """
    env = GameEnvironment(game(name), observation)
    return env, env.make_params(max_steps)


@functools.cache
def game(name: str) -> GridGame:
    """Return a game by name, one of ``NAMES``.

    Raises:
        GameError: there is no such game.
    """
    if name not in NAMES:
        raise GameError(f"there is no game {name!r}; there are {', '.join(NAMES)}")
    return importlib.import_module(f"jaxarc.games.library.{name}").GAME
