"""The bridge to ARC-AGI-3: our games as games of arcengine, and the environments of arc_agi as frames and numbers.

It needs the extra ``arc3``, and Python 3.12 as its libraries do.
"""

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import arc_agi  # pyright: ignore[reportMissingImports]  # needs Python 3.12
import arcengine  # pyright: ignore[reportMissingImports]
import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.errors import whole_number
from jaxarc.files import write_whole
from jaxarc.games.engine import FRAME_SIDE, RESET, GameEnvironment, GameParams, unpack
from jaxarc.games.frames import STATES, FrameGame, Seen, play_frames
from jaxarc.games.game import CLICK, GameError
from jaxarc.games.game_names import NAMES, full_name, load_game, make


class ArcengineGame(arcengine.ARCBaseGame):
    """A game of this package as one of arcengine: levels, RESET and the loop of frames are arcengine's own.

    The rule and the picture are ours. An agent that calls ``perform_action`` plays it unchanged.
    """

    def __init__(self, name: str, seed: int = 0, params: GameParams | None = None):
        """Prepare a game.

        Args:
            name: of a game, or ``file.py:NAME``; see :func:`jaxarc.games.load_game`.
            seed: draws the set of levels, where ``params`` has several.
            params: other levels than the game's own, such as random ones.

        Raises:
            GameError: there is no such game, the params are of another one, or the seed is no whole number.
        """
        self._env, own = make(name)
        self._env.require(params or own)
        levels = (params or own).levels
        self._sets = levels[whole_number(seed, "seed", GameError) % levels.shape[0]]
        sizes = [_size(self._env, words) for words in np.asarray(self._sets)]
        super().__init__(
            self._env.game.name,
            [arcengine.Level(name=str(index), grid_size=size) for index, size in enumerate(sizes)],
            arcengine.Camera(interfaces=[_Screen(self)]),
            available_actions=sorted(self._env.game.actions),
            seed=seed,
        )

    def on_set_level(self, level: arcengine.Level) -> None:
        """Start a level: an episode of that level alone."""
        words = self._sets[self.level_index]
        self._params = GameParams(words[None, None], jnp.int32(np.iinfo(np.int32).max))
        self._played, _ = self._env.reset(jax.random.key(0), self._params)
        self.picture = np.asarray(self._env.frame(self._played))

    def step(self) -> None:
        """Take the action; RESET has started a level by now."""
        if self.action.id.value != RESET:
            x, y = _place(self.action) if self.action.id.value == CLICK else (0, 0)
            given = jnp.array([self.action.id.value, x, y], jnp.int32)
            self._played, pictures, _ = play_frames(self._env, self._played, given, self._params)
            self.picture = np.asarray(pictures[0])
            status = STATES[int(self._played.status)]  # the episode is this level alone
            if status == "WIN":
                self.next_level()
            elif status == "GAME_OVER":
                self.lose()
        self.complete_action()


class _Screen(arcengine.RenderableUserDisplay):
    """Shows the picture of a game in place of what the camera sees."""

    def __init__(self, game: ArcengineGame):
        self._game = game

    def render_interface(self, frame: np.ndarray) -> np.ndarray:
        return self._game.picture.copy()


def _size(env: GameEnvironment, words: Any) -> tuple[int, int]:
    """Columns and rows of a level."""
    inside = np.asarray(unpack(jnp.asarray(words), env.game)[0].inside)
    return int(inside[0]).bit_count(), int((inside != 0).sum())


def _place(action: arcengine.ActionInput) -> tuple[int, int]:
    x, y = (whole_number(action.data.get(name), f"a click's {name}", GameError) for name in ("x", "y"))
    return max(-1, min(x, FRAME_SIDE)), max(-1, min(y, FRAME_SIDE))  # beside the frame is beside the level


def as_arcengine(name: str, seed: int = 0, params: GameParams | None = None) -> ArcengineGame:
    """Return a game that an agent for arcengine plays by ``perform_action``; see :class:`ArcengineGame`."""
    return ArcengineGame(name, seed, params)


def write_environments(folder: str | Path, names: Sequence[str] = NAMES) -> None:
    """Write games as a folder of environments, which ``arc_agi.Arcade(environments_dir=folder)`` reads.

    The arcade then makes, records and scores them as it does the official ones. Baselines are the solver's. Without a
    network give the arcade ``operation_mode=arc_agi.OperationMode.OFFLINE``: by default it asks a server for a key.

    Args:
        folder: where to.
        names: of games, or ``file.py:NAME``. A game of :func:`jaxarc.games.register_game` must be registered in the
            process that plays it, too.

    Raises:
        GameError: there is no such game.
        OSError: the folder cannot be written.
    """
    for given in names:
        game = load_game(given)
        name = game.name
        baselines = [level.baseline for level in game.levels]
        kind = name  # arc_agi looks for the file of this name
        about = {"game_id": name, "title": name, "class_name": kind, "baseline_actions": baselines, "tags": ["jaxarc"]}
        code = (
            f"from jaxarc.games.bridge import ArcengineGame\n\n\nclass {kind}(ArcengineGame):\n"
            f"    def __init__(self, seed: int = 0):\n        super().__init__({full_name(given)!r}, seed)\n"
        )
        write_whole(Path(folder) / name / "metadata.json", json.dumps(about, indent=2).encode())
        write_whole(Path(folder) / name / f"{name}.py", code.encode())


@final
class ArcadeFrames(FrameGame):
    """A game of arcengine, or an environment that ``arc_agi.Arcade`` made, as frames and numbers.

    Example::

        arcade = arc_agi.Arcade(operation_mode=arc_agi.OperationMode.OFFLINE, environments_dir="games")
        game = ArcadeFrames(arcade.make("ls20"))
    """

    def __init__(self, source: Any, baselines: Sequence[int] = ()):
        """Take a game.

        Args:
            source: an ``arcengine.ARCBaseGame``, or what ``Arcade.make`` returned.
            baselines: actions of a good player in each level; those that the arcade knows are taken by default.

        Raises:
            GameError: the arcade returned None, because it has no such game.
        """
        if source is None:
            raise GameError(
                "the arcade has no such game: look at arcade.get_environments(), and at its environments_dir"
            )
        if isinstance(source, arcengine.ARCBaseGame):
            super().__init__(source.game_id, baselines)
            self._act: Callable[[Any, dict[str, Any]], Any] = lambda action, data: source.perform_action(
                arcengine.ActionInput(id=action, data=data), raw=True
            )
        else:
            info = source.info
            super().__init__(info.game_id, baselines or info.baseline_actions or ())
            self._act = lambda action, data: source.step(action, data) if action.value != RESET else source.reset()

    def perform(self, action: int, x: int, y: int) -> Seen:
        """Take an action in the game itself."""
        data = {"x": x, "y": y} if action == CLICK else {}
        found = self._act(arcengine.GameAction.from_id(action), data)
        if found is None:
            raise GameError(f"game {self.name!r} answered nothing to action {action}; the arcade's log says why")
        completed, levels, state = found.levels_completed, found.win_levels, found.state.name
        if not found.frame and self.seen is not None:  # after an end arcengine leaves these fields empty
            completed, levels = self.seen.levels_completed, self.seen.win_levels
        frames = [np.asarray(frame, np.int8) for frame in found.frame]
        return Seen(frames, state, completed, levels, found.available_actions, found.full_reset)


def open_environment(game_id: str, folder: str | Path, **options: Any) -> ArcadeFrames:
    """Open a game of a folder of ARC-AGI-3 environments; nothing is downloaded.

    Args:
        game_id: such as ``ls20``.
        folder: with a ``metadata.json`` for each game.
        **options: of ``Arcade.make``, such as ``seed`` and ``save_recording``.

    Raises:
        GameError: the folder has no games, or not this one.
    """
    quiet = logging.getLogger("jaxarc.games.bridge")
    quiet.setLevel(logging.ERROR)
    arcade = arc_agi.Arcade(operation_mode=arc_agi.OperationMode.OFFLINE, environments_dir=str(folder), logger=quiet)
    known = sorted({info.game_id for info in arcade.get_environments()})
    if not known:
        raise GameError(f"{str(folder)!r} has no games: no folder in it has a readable metadata.json")
    if game_id.partition("-")[0] not in {name.partition("-")[0] for name in known}:
        raise GameError(f"{str(folder)!r} has no game {game_id!r}; it has {', '.join(known)}")
    return ArcadeFrames(arcade.make(game_id, **options))
