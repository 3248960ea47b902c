"""Agents that learned a game, as players of frames: of this package's games, and through the bridge of arcengine's."""

from pathlib import Path
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int32

from jaxarc.agents.games.game_policy import GamePolicy
from jaxarc.agents.saved_agent import policy_of
from jaxarc.config.agent_training import WhichCheckpoint
from jaxarc.errors import whole_number
from jaxarc.games import GameError
from jaxarc.games.engine import OUTSIDE, RESET
from jaxarc.games.explorer import PlayedGame
from jaxarc.games.frames import FrameGame, camera
from jaxarc.games.game import CLICK
from jaxarc.games.recordings import GameRecorder
from jaxarc.runs.folder import open_run_folder
from jaxarc.runs.kind import SavedRun
from jaxarc.types import PRNGKey

MAX_ACTIONS: Final = 500  # in one level, as the explorer of docs/games.md has


class GameAgent:
    """A trained policy that plays its game by frames and clicks.

    Its first attempt at a level takes the likeliest actions. Where the level is lost, or not completed in as many
    actions as an episode of its training had, RESET comes, and later attempts draw their actions.
    """

    def __init__(self, policy: GamePolicy, max_steps: int):
        """Take a policy.

        Args:
            policy: of :func:`jaxarc.agents.load_policy`.
            max_steps: actions of an attempt.
        """
        self.policy = policy
        self.max_steps = max_steps

    def play(
        self, game: FrameGame, max_actions: int = MAX_ACTIONS, seed: int = 0, recording: Path | None = None
    ) -> PlayedGame:
        """Play a game from its start, its own levels in their order.

        Args:
            game: the game that the agent learned, here or behind the bridge.
            max_actions: in one level, over all attempts; then the agent gives up.
            seed: of the actions that are drawn.
            recording: a file that gets a line for each action, as ``jaxarc play`` writes them.

        Raises:
            GameError: it is another game, or a number is no whole number.
            OSError: the recording cannot be written.
        """
        facts = self.policy.game
        if game.name.partition("-")[0] != facts.name:
            raise GameError(f"the agent learned {facts.name!r}, and this is {game.name!r}; train one on it")
        key = jax.random.key(whole_number(seed, "seed", GameError))
        max_actions = whole_number(max_actions, "max_actions", GameError)
        send = game.send if recording is None else GameRecorder(game, recording).send
        seen = send(RESET)
        level, count, begun, draws = 0, 0, 0, False
        while seen.state != "WIN" and count < max_actions:
            if seen.state == "GAME_OVER" or count - begun >= self.max_steps:
                seen = send(RESET)
                count, draws = count + 1, True
                begun = count
                continue
            rows = facts.levels[level].rows
            cells = _cells(seen.frames[-1], (len(rows), len(rows[0])), facts.shape)
            action = int(_act(self.policy, jax.random.fold_in(key, sum(game.spent)), cells, draws))
            seen = send(*self._told(action, (len(rows), len(rows[0]))))
            count += 1
            if seen.levels_completed != level:
                level, count, begun, draws = seen.levels_completed, 0, 0, False
        return PlayedGame(game.score, seen.levels_completed, tuple(game.spent), seen.state == "WIN")

    def _told(self, action: int, size: tuple[int, int]) -> tuple[int, int, int]:
        """Return ARC-AGI-3's number of an action, and x and y of a click."""
        simple = self.policy.game.simple_actions
        if action <= len(simple):
            return simple[action - 1], 0, 0
        row, column = divmod(action - 1 - len(simple), self.policy.game.shape[1])
        scale, top, start = camera(*size)
        return CLICK, start + column * scale, top + row * scale


def load_game_agent(run: str | Path, *, checkpoint: WhichCheckpoint = "best", seed: int | None = None) -> GameAgent:
    """Load the agent of a run of ``jaxarc train experiment=games_NAME``.

    Args:
        run: its folder.
        checkpoint: the one with the most levels completed, or the newest.
        seed: of a run with several seeds: the agent of this one; None for the first.

    Raises:
        NotARunError: it is not the folder of a run.
        CheckpointError: there is no agent that can be used, or it edits grids.
    """
    return saved_game_agent(SavedRun.open(open_run_folder(Path(run)), checkpoint).require("game"), seed)


def saved_game_agent(saved: SavedRun, seed: int | None = None) -> GameAgent:
    """Return the agent of one seed of a saved run.

    Raises:
        CheckpointError: the run has no such seed.
    """
    return GameAgent(policy_of(saved, seed)[0], saved.experiment.game.max_steps)


def _cells(frame: Int8[np.ndarray, "64 64"], size: tuple[int, int], shape: tuple[int, int]) -> Int8[np.ndarray, "H W"]:
    """Return the cells of a level as the policy sees them: the first corner of each in the frame, -1 beside it."""
    height, width = size
    scale, top, start = camera(height, width)
    cells = np.full(shape, OUTSIDE, np.int8)
    cells[:height, :width] = frame[top : top + height * scale : scale, start : start + width * scale : scale]
    return cells


@jax.jit
def _act(
    policy: GamePolicy, key: PRNGKey, cells: Int8[Array, "H W"], draws: Bool[Array, ""] | bool
) -> Int32[Array, ""]:
    drawn = policy.sample(key, cells[None]).choice
    return policy.to_action(jnp.where(draws, drawn, policy.greedy(cells[None])))[0]
