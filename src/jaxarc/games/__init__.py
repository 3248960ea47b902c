"""Games of levels, actions and frames as in ARC-AGI-3, in a compiled step.

>>> import jax, jaxarc.games
>>> env, params = jaxarc.games.make("crates")
>>> state, observation = env.reset(jax.random.key(0), params)
"""

from typing import TYPE_CHECKING

from jaxarc.games.engine import GameEnvironment, GameParams, GameState
from jaxarc.games.game import (
    ACT,
    CLICK,
    MOVES,
    UNDO,
    Action,
    Board,
    Color,
    GameError,
    GridGame,
    Level,
    LevelEvent,
    read_levels,
)
from jaxarc.games.game_names import NAMES, all_names, game, load_game, make, register_game
from jaxarc.lazy import lazy

if TYPE_CHECKING:
    from jaxarc.games.bridge import as_arcengine

__all__ = [
    "ACT",
    "CLICK",
    "MOVES",
    "NAMES",
    "UNDO",
    "Action",
    "Board",
    "Color",
    "GameEnvironment",
    "GameError",
    "GameParams",
    "GameState",
    "GridGame",
    "Level",
    "LevelEvent",
    "all_names",
    "as_arcengine",
    "game",
    "load_game",
    "make",
    "read_levels",
    "register_game",
]

__getattr__, __dir__ = lazy(__name__, {"as_arcengine": "jaxarc.games.bridge"})
