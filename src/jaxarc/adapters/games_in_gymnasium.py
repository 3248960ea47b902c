"""Games as frames behind Gymnasium's interface: ours, and through the bridge those of ARC-AGI-3."""

from typing import Any

import numpy as np
from jaxtyping import Int8, UInt8

try:
    import gymnasium
except ImportError as error:
    raise ImportError("GymnasiumGame needs gymnasium; pip install gymnasium") from error

from jaxarc.games.frames import NUM_ACTIONS, FrameGame
from jaxarc.games.game import HEX_COLORS

_PIXELS = 8  # of a cell's side in a picture
_PALETTE = np.array([list(bytes.fromhex(color[1:])) for color in HEX_COLORS], np.uint8)


class GymnasiumGame(gymnasium.Env[Any, Any]):
    """A game as a ``gymnasium.Env``: frames of 64x64 cells, and one number as an action.

    An episode is the whole game. It ends with the last level or with GAME_OVER; ``reset(options={"level": True})``
    starts only the level again then, as ARC-AGI-3 does, and keeps what was completed.

    Class data sheet:
        action_space: ``Discrete(4102)``, see :mod:`jaxarc.games.frames`; RESET is none of them.
        observation_space: ``Box`` int8[64, 64], colors 0..15: the last frame that the action showed.
        reward: 1 for each level completed.
        info: ``action_mask`` (int8[4102], 0 or 1), ``frames`` (all frames of the action), ``state``,
            ``levels_completed``, ``win_levels`` and ``score``, the official one (NaN without baselines).

    Example::

        from jaxarc.games.bridge import open_environment
        env = GymnasiumGame(open_environment("ls20", "environment_files"))
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  # as in the base

    def __init__(self, game: FrameGame, render_mode: str | None = None):
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"a render mode is None or 'rgb_array', got {render_mode!r}")
        self.game = game
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Discrete(NUM_ACTIONS)
        self.observation_space = gymnasium.spaces.Box(0, len(HEX_COLORS) - 1, (64, 64), np.int8)
        self._frame: Int8[np.ndarray, "64 64"] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the game, or with the option ``level`` the level; games draw nothing, so that a seed changes nothing.

        Raises:
            ValueError: an option is unknown.
        """
        super().reset(seed=seed)
        unknown = (options or {}).keys() - {"level"}
        if unknown:
            raise ValueError(f"the option of reset is 'level', got {min(unknown)!r}")
        seen = self.game.reset()
        if not seen.full_reset and not (options or {}).get("level"):
            self.game.reset()  # a second RESET in a row begins the whole game
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action; after the end of a game nothing changes.

        Raises:
            GameError: there is no such action, or the game was not reset.
        """
        before = self.game.seen.levels_completed if self.game.seen else 0
        seen = self.game.step(action)
        return (
            self._observation(),
            float(seen.levels_completed - before),
            seen.state != "NOT_FINISHED",
            False,
            self._info(),
        )

    def action_masks(self) -> Int8[np.ndarray, "4102"]:
        """Return which actions the game has, 0 or 1, as ``action_space.sample`` and ``MaskablePPO`` take it."""
        return self.game.action_mask().astype(np.int8)

    def render(self) -> UInt8[np.ndarray, "512 512 3"] | None:
        """Draw the last frame where the render mode is ``"rgb_array"``."""
        if self.render_mode is None:
            return None
        if self._frame is None:
            raise gymnasium.error.ResetNeeded("no game has been started; call reset() first")
        return _PALETTE[self._frame].repeat(_PIXELS, 0).repeat(_PIXELS, 1)

    def _observation(self) -> Int8[np.ndarray, "64 64"]:
        seen = self.game.seen
        if seen is not None and len(seen.frames):
            self._frame = np.array(seen.frames[-1])
        assert self._frame is not None
        return self._frame.copy()

    def _info(self) -> dict[str, Any]:
        seen = self.game.seen
        assert seen is not None
        return {
            "action_mask": self.action_masks(),
            "frames": list(seen.frames),
            "state": seen.state,
            "levels_completed": seen.levels_completed,
            "win_levels": seen.win_levels,
            "score": self.game.score,
        }
