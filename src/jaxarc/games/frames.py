"""Games as frames and numbers, on the host: one interface for ours and, through the bridge, for those of ARC-AGI-3.

An action is one number: 0 .. 4 the simple actions 1 .. 5, 5 undo (action 7), and ``6 + 64 y + x`` a click on the cell
x, y of the frame. RESET is no number; :meth:`FrameGame.reset` sends it.
"""

import abc
import functools
from collections.abc import Sequence
from typing import Final, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int32

from jaxarc.errors import whole_number
from jaxarc.games.engine import FRAME_SIDE, NOT_FINISHED, RESET, GameEnvironment, GameParams, GameState
from jaxarc.games.game import CLICK, UNDO, GameError
from jaxarc.games.scoring import game_score

SIMPLE: Final = (1, 2, 3, 4, 5, UNDO)
NUM_ACTIONS: Final = len(SIMPLE) + FRAME_SIDE * FRAME_SIDE
STATES: Final = ("NOT_FINISHED", "WIN", "GAME_OVER")  # by status of the engine


class Seen(NamedTuple):
    """What a game shows after an action."""

    frames: Sequence[Int8[np.ndarray, "64 64"]]  # usually one; none where the game was over
    state: str  # one of STATES
    levels_completed: int
    win_levels: int  # how many there are
    available: Sequence[int]  # ARC-AGI-3's numbers of actions, 1 .. 7
    full_reset: bool = False  # a RESET that began the whole game again


def to_number(action: int, x: int = 0, y: int = 0) -> int:
    """Return the number of one of ARC-AGI-3's actions 1 .. 7.

    Raises:
        GameError: there is no such action, or the click is outside the frame.
    """
    action, x, y = (whole_number(value, name, GameError) for value, name in ((action, "an action"), (x, "x"), (y, "y")))
    if action == CLICK:
        if not (0 <= x < FRAME_SIDE and 0 <= y < FRAME_SIDE):
            raise GameError(f"a click is on a cell 0 .. {FRAME_SIDE - 1} of the frame, got x {x}, y {y}")
        return len(SIMPLE) + y * FRAME_SIDE + x
    if action not in SIMPLE:
        raise GameError(f"an action is one of 1 .. 7, got {action!r}")
    return SIMPLE.index(action)


def from_number(number: int) -> tuple[int, int, int]:
    """Return ARC-AGI-3's action, x and y; both are 0 without a click.

    Raises:
        GameError: there is no such number.
    """
    number = whole_number(number, "an action", GameError)
    if not 0 <= number < NUM_ACTIONS:
        raise GameError(f"an action is a number 0 .. {NUM_ACTIONS - 1}, got {number}")
    if number < len(SIMPLE):
        return SIMPLE[number], 0, 0
    y, x = divmod(number - len(SIMPLE), FRAME_SIDE)
    return CLICK, x, y


def as_move(action: int, x: int = 0, y: int = 0) -> tuple[int, int, int]:
    """Return one of ARC-AGI-3's actions, 0 RESET .. 7, as Python's integers; x and y are 0 without a click.

    Raises:
        GameError: there is no such action, or the click is outside the frame.
    """
    action = whole_number(action, "an action", GameError)
    return (RESET, 0, 0) if action == RESET else from_number(to_number(action, x, y))


def camera(height: int, width: int) -> tuple[int, int, int]:
    """Return the side of a cell in the frame of a level, and the frame's row and column where the level begins."""
    scale = min(FRAME_SIDE // height, FRAME_SIDE // width)
    return scale, (FRAME_SIDE - height * scale) // 2, (FRAME_SIDE - width * scale) // 2


class FrameGame(abc.ABC):
    """A game that is played by numbers and seen as frames; it keeps the account that the official score needs."""

    def __init__(self, name: str, baselines: Sequence[int]):
        """Begin an account.

        Args:
            name: of the game.
            baselines: actions of a good player in each level; empty where nobody knows them, and then no score.
        """
        self.name = name
        self.baselines = tuple(baselines)
        self.spent: list[int] = []  # actions in each level, RESET of a level counted
        self.seen: Seen | None = None

    def reset(self) -> Seen:
        """Send RESET: the level starts again, or the whole game where nothing was done in it or the game is won."""
        return self.send(RESET)

    def step(self, number: int) -> Seen:
        """Take an action; one that is not available is counted, and changes nothing.

        Raises:
            GameError: there is no such number, or the game was not reset.
        """
        return self.send(*from_number(number))

    def action_mask(self) -> Bool[np.ndarray, "4102"]:
        """Return which numbers are available: none after WIN and GAME_OVER, when only RESET does something."""
        mask = np.zeros(NUM_ACTIONS, np.bool_)
        if self.seen is not None and self.seen.state == STATES[NOT_FINISHED]:
            mask[: len(SIMPLE)] = [action in self.seen.available for action in SIMPLE]
            mask[len(SIMPLE) :] = CLICK in self.seen.available
        return mask

    @property
    def score(self) -> float:
        """The official score so far, 0 .. 100; NaN without baselines."""
        if not self.baselines or self.seen is None:
            return float("nan")
        return game_score(self.baselines, self.spent, self.seen.levels_completed)

    def send(self, action: int, x: int = 0, y: int = 0) -> Seen:
        """Take one of ARC-AGI-3's actions, 0 RESET .. 7; of a game that was not started RESET alone.

        Raises:
            GameError: there is no such action, or the game was not started.
        """
        action, x, y = as_move(action, x, y)
        if action != RESET and self.seen is None:
            raise GameError(f"game {self.name!r} was not started; send RESET first")
        level = 0 if self.seen is None else min(self.seen.levels_completed, len(self.spent) - 1)
        self.seen = self.perform(action, x, y)
        if self.seen.full_reset or not self.spent:
            self.spent = [0] * self.seen.win_levels
        elif self.seen.frames:
            self.spent[level] += 1
        return self.seen

    @abc.abstractmethod
    def perform(self, action: int, x: int, y: int) -> Seen:
        """Take an action in the game itself."""


@final
class OwnFrames(FrameGame):
    """A game of this package.

    Example::

        game = OwnFrames(*jaxarc.games.make("ice"))
        frame = game.reset().frames[-1]
        seen = game.step(to_number(4))  # right
    """

    def __init__(self, env: GameEnvironment, params: GameParams, seed: int = 0):
        """Take an environment; the seed draws the set of levels where there are several."""
        super().__init__(env.game.name, [level.baseline for level in env.game.levels])
        self._env = env
        self._params = GameParams(params.levels, jnp.int32(np.iinfo(np.int32).max))
        self._key = jax.random.key(seed)
        self._state: GameState | None = None

    def perform(self, action: int, x: int, y: int) -> Seen:
        """Take an action in the environment."""
        available = sorted(self._env.game.actions)
        win_levels = self._params.levels.shape[1]
        if self._state is None:
            self._state, _ = self._env.reset(self._key, self._params)
            return Seen(
                [np.asarray(self._env.frame(self._state))], STATES[NOT_FINISHED], 0, win_levels, available, True
            )
        before = self._state
        after, frames, count = play_frames(self._env, before, jnp.array([action, x, y]), self._params)
        shown = np.asarray(frames)[2 - int(count) :]
        restarted = action == RESET and (int(before.action_count) == 0 or STATES[int(before.status)] == "WIN")
        status, completed = int(after.status), int(after.levels_completed)
        self._state = after
        return Seen(list(shown), STATES[status], completed, win_levels, available, restarted)


@functools.partial(jax.jit, static_argnums=0)
def play_frames(
    env: GameEnvironment, state: GameState, given: Int32[Array, "3"], params: GameParams
) -> tuple[GameState, Int8[Array, "2 64 64"], Int32[Array, ""]]:
    """Take an action, its number, x and y; return two frames, and how many of them, the last ones, are shown."""
    number, x, y = given
    after, finished, reward, _ = env.play(state, env.action_of(number, state, x, y), params)
    goes_on = (reward > 0) & (after.status == NOT_FINISHED)
    ignored = (state.status != NOT_FINISHED) & (number != RESET)
    count = jnp.where(ignored, 0, 1 + goes_on.astype(jnp.int32))
    return after, jnp.stack([env.frame(finished), env.frame(after)]), count
