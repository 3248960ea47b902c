"""Games of levels, actions and frames as in ARC-AGI-3, in a compiled step.

>>> import jax, jaxarc.games
>>> env, params = jaxarc.games.make("crates")
>>> state, observation = env.reset(jax.random.key(0), params)
"""

import functools
import importlib
from typing import Final, Literal

from jaxarc.games.engine import DEFAULT_MAX_STEPS, GameEnvironment, GameParams, GameState
from jaxarc.games.game import Action, Board, GameError, GridGame, Level, LevelEvent

NAMES: Final = ("crates", "fire", "flood", "fog", "gravity", "ice", "keys", "lamps", "order", "paint", "path", "patrol",
                "plates", "portals", "torus", "twins")  # fmt: skip

__all__ = [
    "NAMES",
    "Action",
    "Board",
    "GameEnvironment",
    "GameError",
    "GameParams",
    "GameState",
    "GridGame",
    "Level",
    "LevelEvent",
    "game",
    "make",
]


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
