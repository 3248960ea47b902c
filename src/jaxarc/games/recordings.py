"""Recordings of ARC-AGI-3: a line of JSON for each action, with the frames that followed, as arc_agi writes them."""

import datetime
import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from jaxtyping import Int8

from jaxarc.errors import JaxarcError
from jaxarc.files import read_json_lines
from jaxarc.games.engine import FRAME_SIDE, RESET
from jaxarc.games.frames import STATES, FrameGame, Seen, as_move
from jaxarc.games.game import CLICK, UNDO, GameError

MAX_LEVELS: Final = 1000  # of a game in a file; those of ARC-AGI-3 have about ten
_FIELDS: Final = {"game_id": str, "state": str, "levels_completed": int, "win_levels": int, "action_input": dict}


class GameRecordingError(JaxarcError, ValueError):
    """A file is no recording of ARC-AGI-3, or one of another game."""


class RecordedMove(NamedTuple):
    """An action, and what the game showed."""

    action: int  # 0 .. 7
    x: int  # of a click
    y: int
    seen: Seen


class GameRecording(NamedTuple):
    """A game as it was played."""

    game: str
    steps: list[RecordedMove]
    about: str = ""  # how well it went


class GameRecorder:
    """Plays a game and writes each action, with all frames that followed, as one more line of a file."""

    def __init__(self, game: FrameGame, path: Path):
        """Name the file; the first action makes it, with its folder."""
        self.game = game
        self.path = path

    def send(self, action: int, x: int = 0, y: int = 0) -> Seen:
        """Take one of ARC-AGI-3's actions, 0 RESET .. 7.

        Raises:
            GameError: there is no such action.
            OSError: the file cannot be written.
        """
        action, x, y = as_move(action, x, y)
        seen = self.game.send(action, x, y)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(to_line(self.game.name, RecordedMove(action, x, y, seen)))
        return seen


def to_line(game: str, recorded: RecordedMove) -> str:
    """Write an action as a line that arc_agi's own recordings have."""
    action, x, y, seen = recorded
    data = {
        "game_id": game,
        "state": seen.state,
        "levels_completed": seen.levels_completed,
        "win_levels": seen.win_levels,
        "action_input": {
            "id": f"ACTION{action}" if action else "RESET",
            "data": {"x": x, "y": y} if action == CLICK else {},
            "reasoning": None,
        },
        "full_reset": seen.full_reset,
        "available_actions": list(seen.available),
        "frame": [frame.tolist() for frame in seen.frames],
    }
    return json.dumps({"timestamp": datetime.datetime.now(datetime.UTC).isoformat(), "data": data}) + "\n"


def read_recording(path: str | Path) -> GameRecording:
    """Read a recording of this package or of arc_agi; see :func:`jaxarc.files.read_json_lines`.

    Raises:
        GameRecordingError: the file is none, names two games, or has no frames; the message names the line.
        OSError: the file cannot be read.
    """
    game, steps = "", []
    for where, line in read_json_lines(path, GameRecordingError):
        data = _data_of(line, where)
        if steps and data["game_id"] != game:
            raise GameRecordingError(f"{where} is of game {data['game_id']!r}, the lines before of {game!r}")
        game = data["game_id"]
        steps.append(_recorded(data, where))
    if not any(step.seen.frames for step in steps):
        raise GameRecordingError(f"{path} has no frames; record with include_frame_data=True")
    return GameRecording(game, steps)


def is_recording(path: Path) -> bool:
    """Whether the first line of a file is one of a recording."""
    try:
        where, line = next(read_json_lines(path, GameRecordingError), (str(path), None))
        _data_of(line, where)
    except GameRecordingError:
        return False
    return True


def _data_of(line: Any, where: str) -> dict[str, Any]:
    data = line.get("data") if isinstance(line, dict) else None
    if not isinstance(data, dict) or not all(type(data.get(name)) is kind for name, kind in _FIELDS.items()):
        raise GameRecordingError(f"{where} is no line of a recording: it needs data with {', '.join(_FIELDS)}")
    return data


def _recorded(data: dict[str, Any], where: str) -> RecordedMove:
    given = data["action_input"]
    # By name, as arc_agi writes them, or by number.
    names = {str(number): number for number in range(8)} | {f"ACTION{number}": number for number in range(1, 8)}
    names["RESET"] = RESET
    action = names.get(str(given.get("id")), -1)
    place = given.get("data") or {}
    try:
        action, x, y = as_move(action, *(place.get(name, 0) for name in ("x", "y")))
    except (AttributeError, GameError) as error:
        raise GameRecordingError(
            f"{where} has no action of ARC-AGI-3, which are RESET, ACTION1 .. ACTION7, and ACTION6 with a cell x, y "
            f"0 .. {FRAME_SIDE - 1}: {given!r:.80}"
        ) from error
    if data["state"] not in STATES:
        raise GameRecordingError(f"{where} has the state {data['state']!r:.40}; there are {', '.join(STATES)}")
    completed, levels = data["levels_completed"], data["win_levels"]
    if not 0 <= completed <= levels <= MAX_LEVELS:
        raise GameRecordingError(
            f"{where} has levels_completed {completed!r:.40} of win_levels {levels!r:.40}; a game has 0 .. "
            f"{MAX_LEVELS} levels, and completes no more than it has"
        )
    available = _list(data, "available_actions", where)
    if not all(type(number) is int and RESET <= number <= UNDO for number in available):
        raise GameRecordingError(f"{where} has available_actions {available!r:.80}; they are numbers 1 .. 7")
    frames = [_frame(frame, where) for frame in _list(data, "frame", where)]
    seen = Seen(frames, data["state"], completed, levels, available, bool(data.get("full_reset")))
    return RecordedMove(action, x, y, seen)


def _list(data: dict[str, Any], name: str, where: str) -> list[Any]:
    found = data.get(name) or []
    if not isinstance(found, list):
        raise GameRecordingError(f"{where} has {name} {found!r:.80}; it is a list")
    return found


def _frame(rows: Any, where: str) -> Int8[np.ndarray, "64 64"]:
    try:
        frame = np.asarray(rows)
    except ValueError:
        frame = np.zeros(0)
    if frame.shape != (FRAME_SIDE, FRAME_SIDE) or frame.dtype.kind != "i" or frame.min() < 0 or frame.max() > 15:
        raise GameRecordingError(f"{where} has a frame that is not {FRAME_SIDE}x{FRAME_SIDE} colors 0 .. 15")
    return frame.astype(np.int8)
