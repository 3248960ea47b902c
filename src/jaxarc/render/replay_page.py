"""One HTML file in which episodes are replayed: nothing is loaded from anywhere, so it can be mailed or kept.

The page lists all episodes by an index in plain JSON. Each task and each episode is a text of its own, compressed and
in base64, that is unpacked when it is looked at; so thousands of episodes open as quickly as one.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int8

from jaxarc.constants import MAX_GRID_SIZE, NUM_COLORS, PADDING
from jaxarc.envs.operations import OPERATION_NAMES
from jaxarc.render.palette import COLOR_NAMES, PALETTES

SCRIPTS: Final = ("grids.js", "episodes.js", "curves.js", "episode_list.js", "replay.js")  # in the order they are read
_KINDS: Final = NUM_COLORS + 1  # of cells: the padding and the colors
_DIGITS: Final = 6  # of a reward or a similarity


class ReplayTask(NamedTuple):
    """What was to be solved."""

    task_id: str
    demonstrations: Sequence[tuple[np.ndarray, np.ndarray]]  # input and output, without padding; may be empty
    title: str = ""  # what people call it


class ReplayEpisode(NamedTuple):
    """What happened in S steps on a canvas of H x W."""

    pair: str  # which pair of the task was played, such as "test 0"
    player: str  # who played
    selection_format: str  # "point", "bbox" or "mask"
    actions: Sequence[Sequence[int]]  # S times: operation, then the numbers of the selection
    grids: Int8[np.ndarray, "S+1 H W"]  # -1 outside the active area; the first is what the episode started from
    clipboards: Int8[np.ndarray, "S+1 H W"]  # -1 where nothing is held
    target: Int8[np.ndarray, "H W"]
    rewards: Float[np.ndarray, " S"]
    similarities: Float[np.ndarray, " S+1"]  # 0 .. 1
    invalid: Bool[np.ndarray, " S"]
    is_solved: bool


class ReplayPage:
    """Collects episodes and puts them into a page; only their packed form is held in memory."""

    def __init__(self, title: str, about: Mapping[str, str] | None = None):
        """Begin a page without episodes.

        Args:
            title: what was played by whom, a line.
            about: further facts, such as the data set, shown as they are.
        """
        self._title, self._about = title, dict(about or {})
        self._packed: list[str] = []
        self._tasks: list[dict[str, Any]] = []  # id, and place among the packed texts
        self._task_places: dict[str, int] = {}  # by its text, the place of a task among them
        self._episodes: list[list[Any]] = []

    def __len__(self) -> int:
        return len(self._episodes)

    def add(self, task: ReplayTask, episode: ReplayEpisode) -> None:
        """Add an episode behind the others.

        Raises:
            ValueError: its parts do not have S or S + 1 entries, or a number is not finite.
        """
        count = len(episode.actions)
        lengths = [len(part) for part in (episode.grids, episode.clipboards, episode.similarities)]
        if lengths != [count + 1] * 3 or len(episode.rewards) != count or len(episode.invalid) != count:
            raise ValueError(
                f"an episode of {count} actions has {count} rewards and flags and {count + 1} grids, clipboards and "
                f"similarities, got {len(episode.rewards)}, {len(episode.invalid)} and {lengths}; bring all of them"
            )
        if not (np.isfinite(episode.rewards).all() and np.isfinite(episode.similarities).all()):
            raise ValueError(f"rewards and similarities must be finite, those of {task.task_id} {episode.pair} are not")
        text = json.dumps(_task_to_json(task))  # tasks of two data sets may have the same id
        if text not in self._task_places:
            self._task_places[text] = len(self._tasks)
            self._tasks.append({"id": task.task_id, "packed": self._pack(text.encode())})
        place = self._pack(_episode_to_bytes(episode))
        similarity, paid = float(episode.similarities[-1]), float(np.sum(episode.rewards))
        facts = [round(similarity, _DIGITS), round(paid, _DIGITS), int(episode.is_solved), count]
        self._episodes.append([self._task_places[text], episode.pair, episode.player, *facts, place])

    def to_html(self) -> str:
        """Return the whole file.

        Raises:
            ValueError: there is no episode.
        """
        if not self._episodes:
            raise ValueError("a replay without episodes shows nothing; add at least one")
        page = files("jaxarc.render") / "page"
        style = (page / "replay.css").read_text(encoding="utf-8")
        script = "\n".join((page / name).read_text(encoding="utf-8") for name in SCRIPTS)
        parts = {
            "policy": _security_policy(style, script),
            "title": escape(self._title),
            "style": style,
            "index": json.dumps(self._index(), separators=(",", ":")).replace("<", "\\u003c"),
            "packed": "\n".join(self._packed),
            "script": script,
        }
        html = (page / "replay.html").read_text(encoding="utf-8")
        for name, part in parts.items():
            before, mark, after = html.partition(f"<!--{name}-->")
            assert mark, name
            html = before + part + after
        return html

    def _pack(self, content: bytes) -> int:
        self._packed.append(base64.b64encode(zlib.compress(content, 9)).decode())
        return len(self._packed) - 1

    def _index(self) -> dict[str, Any]:
        return {
            "title": self._title,
            "about": self._about,
            "palettes": PALETTES,
            "colors": COLOR_NAMES,
            "operations": [OPERATION_NAMES[operation] for operation in sorted(OPERATION_NAMES)],
            "tasks": self._tasks,
            "columns": ["task", "pair", "player", "similarity", "reward", "solved", "steps", "packed"],
            "episodes": self._episodes,
        }


def _task_to_json(task: ReplayTask) -> dict[str, Any]:
    pairs = [[_rows(grid) for grid in pair] for pair in task.demonstrations]
    return {"id": task.task_id, "title": task.title, "demonstrations": pairs}


def _episode_to_bytes(episode: ReplayEpisode) -> bytes:
    """A line of JSON, then the target and every grid, each cell's change from the grid before it as one byte.

    Most bytes are 0, so they compress well. The canvas is cut to what is ever used of it.
    """
    grids = np.concatenate([episode.target[None], episode.grids])
    used = (grids != PADDING).any(axis=0)
    height, width = int(used.any(axis=1).sum()), int(used.any(axis=0).sum())
    cells = (grids[:, :height, :width] - PADDING).astype(np.uint8)
    changes = np.diff(cells.astype(np.int16), axis=0, prepend=0) % _KINDS
    facts = {
        "shape": [height, width],
        "format": episode.selection_format,
        "actions": [_action(action, episode.selection_format, (height, width)) for action in episode.actions],
        "rewards": _rounded(episode.rewards),
        "similarities": _rounded(episode.similarities),
        "invalid": np.flatnonzero(episode.invalid).tolist(),
        "clipboards": _clipboards(episode.clipboards),
    }
    return json.dumps(facts, separators=(",", ":")).encode() + b"\n" + changes.astype(np.uint8).tobytes()


def _action(action: Sequence[int], selection_format: str, shape: tuple[int, int]) -> list[Any]:
    """Write an action as it is; a mask as the number of its cells and a bit for each cell of the canvas."""
    if selection_format != "mask":
        return list(action)
    mask = np.zeros((MAX_GRID_SIZE, MAX_GRID_SIZE), np.bool_)
    mask[list(action[1::2]), list(action[2::2])] = True
    bits = np.packbits(mask[: shape[0], : shape[1]], bitorder="little")
    return [action[0], int(mask.sum()), base64.b64encode(bits.tobytes()).decode()]


def _clipboards(grids: np.ndarray) -> list[list[Any]]:
    """Where the clipboard becomes another one: step and rows."""
    found, before = [], np.full_like(grids[0], PADDING)
    for step, grid in enumerate(grids):
        if not np.array_equal(grid, before):
            held = grid != PADDING
            height = int(np.flatnonzero(held.any(axis=1)).max(initial=-1)) + 1
            width = int(np.flatnonzero(held.any(axis=0)).max(initial=-1)) + 1
            found.append([step, _rows(grid[:height, :width])])
        before = grid
    return found


def _rows(grid: np.ndarray) -> list[str]:
    """Write a grid as texts of digits, a point where there is no cell."""
    return ["".join("." if cell == PADDING else str(cell) for cell in row) for row in np.asarray(grid).tolist()]


def _rounded(numbers: np.ndarray) -> list[float]:
    return [round(float(number), _DIGITS) for number in numbers]


def _security_policy(style: str, script: str) -> str:
    """Allow this style and this script, and nothing from anywhere."""
    allowed = [_hash_of(part) for part in (style, script)]
    return (
        f"default-src 'none'; style-src '{allowed[0]}'; script-src '{allowed[1]}'; base-uri 'none'; form-action 'none'"
    )


def _hash_of(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
