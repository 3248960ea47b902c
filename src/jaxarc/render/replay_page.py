"""Episodes in one HTML file: nothing is loaded from anywhere, so the file can be mailed or kept.

The page lists all episodes by an index in plain JSON. Each task and each episode is a text of its own, compressed and
in base64, and the page unpacks it when a reader opens it; so thousands of episodes open as fast as one.

A packed episode is three parts, one after the other, which ``page/episodes.js`` reads::

    {"shape": [2, 3], "actions": [[2, 0, 0, 0, 1]], "paints": [2], ...}     a line of JSON
    selections                                mask format only: a bit for each cell of each action that selects cells
    target, grid 0, grid 1, ...               a byte for each cell: 0 where the cell equals that of the grid before

The bytes of a grid are differences, nearly all of them 0, so they compress well. Most actions give all cells that
they select one color, the *paint*; the selection is stored anyway, so such an action adds nothing but zeros. The page
does not know what any operation does. In this example the brackets are the selection and the paint is 2::

    grid 0      painted     grid 1      bytes
    [0 0] 0      2 2 0       2 2 0      0 0 0
     5 5  5      5 5 5       5 5 9      0 0 4      4 = (9 - 5) mod 11
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
from jaxtyping import Bool, Float, Int8, UInt8

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.envs.operations import OPERATION_NAMES
from jaxarc.render.actions import acts_on_cells, selection_of
from jaxarc.render.layout import active_area, extent_of
from jaxarc.render.palette import COLOR_NAMES, PALETTES

SCRIPTS: Final = (  # in the order in which the page runs them
    "grids.js",
    "episodes.js",
    "step_curve.js",
    "episode_list.js",
    "replay.js",
)
_DIGITS: Final = 6  # of a reward or a similarity
_CELL_VALUES: Final = NUM_COLORS + 1  # the padding and the colors


class ReplayTask(NamedTuple):
    """The task of an episode."""

    task_id: str
    demonstrations: Sequence[tuple[Int8[np.ndarray, "h w"], Int8[np.ndarray, "h w"]]]  # input, output; may be empty
    title: str = ""  # a name for people


class ReplayEpisode(NamedTuple):
    """An episode of S steps on a canvas of H x W."""

    pair: str  # the pair of the task, such as "test 0"
    player: str  # a name of the agent, expert or person
    selection_format: str  # "point", "bbox" or "mask"
    actions: Sequence[Sequence[int]]  # S times: operation, then the numbers of the selection
    grids: Int8[np.ndarray, "S+1 H W"]  # -1 outside the active area; the first one is the start
    clipboards: Int8[np.ndarray, "S+1 H W"]  # -1 where the clipboard is empty
    target: Int8[np.ndarray, "H W"]
    rewards: Float[np.ndarray, " S"]
    similarities: Float[np.ndarray, " S+1"]  # 0 .. 1
    invalid: Bool[np.ndarray, " S"]
    is_solved: bool


class ReplayPage:
    """Collects episodes and writes them into a page; memory holds their packed form only."""

    def __init__(self, title: str, about: Mapping[str, str] | None = None):
        """Begin a page without episodes."""
        self._title = title
        self._about = dict(about or {})
        self._packed: list[str] = []
        self._tasks: list[dict[str, Any]] = []  # id, and index into the packed texts
        self._task_indices: dict[str, int] = {}  # JSON of a task -> index into _tasks
        self._episodes: list[list[Any]] = []  # rows of the columns that _index names

    def __len__(self) -> int:
        return len(self._episodes)

    def add(self, task: ReplayTask, episode: ReplayEpisode) -> None:
        """Add an episode behind the others."""
        _require_whole(task, episode)
        # The key is the whole task, because tasks of two data sets may have the same id.
        pairs = [[_rows(grid) for grid in pair] for pair in task.demonstrations]
        text = json.dumps({"id": task.task_id, "title": task.title, "demonstrations": pairs})
        if text not in self._task_indices:
            self._task_indices[text] = len(self._tasks)
            self._tasks.append({"id": task.task_id, "packed": self._keep(zlib.compress(text.encode(), 9))})
        packed_index = self._keep(pack_episode(episode))
        row = [
            self._task_indices[text],
            episode.pair,
            episode.player,
            round(float(episode.similarities[-1]), _DIGITS),
            round(float(np.sum(episode.rewards)), _DIGITS),
            int(episode.is_solved),
            len(episode.actions),
            packed_index,
        ]
        self._episodes.append(row)

    def to_html(self) -> str:
        """Return the whole file."""
        if not self._episodes:
            raise ValueError("a replay without episodes shows nothing; add at least one")
        page = files("jaxarc.render") / "page"
        style = (page / "replay.css").read_text(encoding="utf-8")
        script = "\n".join((page / name).read_text(encoding="utf-8") for name in SCRIPTS)
        # The style and the script are allowed by their hashes, and nothing from anywhere else.
        allowed = f"style-src '{hash_of(style)}'; script-src '{hash_of(script)}'"
        parts = {
            "policy": f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'",
            "title": escape(self._title),
            "style": style,
            "index": json.dumps(self._index(), separators=(",", ":")).replace("<", "\\u003c"),
            "packed": "\n".join(self._packed),
            "script": script,
        }
        html = (page / "replay.html").read_text(encoding="utf-8")
        for name, part in parts.items():
            # Only the first mark counts: a part may hold the text of another mark.
            before, mark, after = html.partition(f"<!--{name}-->")
            assert mark, name
            html = before + part + after
        return html

    def _keep(self, compressed: bytes) -> int:
        self._packed.append(base64.b64encode(compressed).decode())
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


def pack_episode(episode: ReplayEpisode) -> bytes:
    """Write an episode, compressed, in the layout at the top of this file. The canvas is cut to the cells in use."""
    # A 5x6 task on a canvas of 30x30 is stored as 5x6.
    height, width = extent_of([episode.target, *episode.grids])
    shape = (height, width)
    target = episode.target[:height, :width]
    grids = episode.grids[:, :height, :width]
    selections = [selection_of(action, episode.selection_format, shape) for action in episode.actions]
    # Most steps give the selected cells one color. The page can then paint by itself, and only the differences from
    # that, nearly all 0, have to be stored.
    paints = []
    for action, before, after, selection in zip(episode.actions, grids[:-1], grids[1:], selections, strict=True):
        paints.append(_paint(before, after, selection) if acts_on_cells(action[0]) else None)
    facts = {
        "shape": [height, width],
        "format": episode.selection_format,
        "actions": [_short_action(action, episode.selection_format) for action in episode.actions],
        "paints": paints,
        "rewards": _rounded(episode.rewards),
        "similarities": _rounded(episode.similarities),
        "invalid": np.flatnonzero(episode.invalid).tolist(),
        "clipboards": _clipboard_changes(episode.clipboards),
    }
    # What the page has before it reads a grid: padding, then the target, then the painted grid before.
    known = [np.full_like(target, PADDING), target]
    for grid, selection, paint in zip(grids, selections, paints, strict=False):
        known.append(_painted(grid, selection, paint))
    # Modulo the number of values, so a difference fits a byte: a cell that the page expects right is 0.
    frames = np.concatenate([target[None], grids])
    differences = (frames.astype(np.int16) - np.array(known)) % _CELL_VALUES
    line = json.dumps(facts, separators=(",", ":")).encode() + b"\n"
    return _compressed([line, _mask_bits(episode, selections), differences.astype(np.uint8).tobytes()])


def _paint(
    before: Int8[np.ndarray, "H W"], after: Int8[np.ndarray, "H W"], selection: Bool[np.ndarray, "H W"]
) -> int | None:
    """Return the one color that the selected cells have after a step; None if there are several or none."""
    # Cells outside the active area cannot be painted, so they do not count.
    colors = np.unique(after[selection & (before != PADDING)])
    return int(colors[0]) if len(colors) == 1 else None


def _painted(
    grid: Int8[np.ndarray, "H W"], selection: Bool[np.ndarray, "H W"], paint: int | None
) -> Int8[np.ndarray, "H W"]:
    """Give the selected cells of the active area one color."""
    return grid if paint is None else np.where(selection & (grid != PADDING), np.int8(paint), grid)


def _mask_bits(episode: ReplayEpisode, selections: Sequence[Bool[np.ndarray, "H W"]]) -> bytes:
    """Return the selections of the mask format, the lowest bit of a byte first; every action begins a new byte."""
    if episode.selection_format != "mask":
        return b""  # the numbers of the action say the selection
    packed = [
        np.packbits(selection, bitorder="little").tobytes()
        for action, selection in zip(episode.actions, selections, strict=True)
        if acts_on_cells(action[0])
    ]
    return b"".join(packed)


def _compressed(parts: Sequence[bytes]) -> bytes:
    """Compress parts of different kinds as one stream; a full flush gives each part a code of its own."""
    packer = zlib.compressobj(9, memLevel=9)
    return b"".join([packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH) for part in parts]) + packer.flush()


def _short_action(action: Sequence[int], selection_format: str) -> list[int]:
    """Return an action as it is; of a mask its operation, the number of its cells, and the box around them."""
    rows = action[1::2]
    columns = action[2::2]
    if selection_format != "mask" or not rows:
        return list(action)
    return [action[0], len(rows), min(rows), min(columns), max(rows), max(columns)]


def _clipboard_changes(clipboards: Int8[np.ndarray, "S+1 H W"]) -> list[tuple[int, list[str]]]:
    """Return each step that changes the clipboard, and its rows from then on."""
    changes = []
    # An empty clipboard comes before the first step, so one that starts empty gives no entry.
    before = np.full_like(clipboards[0], PADDING)
    for step, clipboard in enumerate(clipboards):
        if not np.array_equal(clipboard, before):
            changes.append((step, _rows(active_area(clipboard))))
        before = clipboard
    return changes


def _require_whole(task: ReplayTask, episode: ReplayEpisode) -> None:
    count = len(episode.actions)
    lengths = [len(part) for part in (episode.grids, episode.clipboards, episode.similarities)]
    if lengths != [count + 1] * 3 or len(episode.rewards) != count or len(episode.invalid) != count:
        raise ValueError(
            f"an episode of {count} actions has {count} rewards and flags and {count + 1} grids, clipboards and "
            f"similarities, got {len(episode.rewards)}, {len(episode.invalid)} and {lengths}; bring all of them"
        )
    if not (np.isfinite(episode.rewards).all() and np.isfinite(episode.similarities).all()):
        raise ValueError(f"rewards and similarities must be finite, those of {task.task_id} {episode.pair} are not")


def _rows(grid: Int8[np.ndarray, "H W"] | UInt8[np.ndarray, "H W"]) -> list[str]:
    """Write a grid as texts of digits, a point for padding: ``["12.", "34."]``."""
    return ["".join("." if cell == PADDING else str(cell) for cell in row) for row in np.asarray(grid).tolist()]


def _rounded(numbers: Float[np.ndarray, " N"]) -> list[float]:
    return [round(float(number), _DIGITS) for number in numbers]


def hash_of(text: str) -> str:
    """Return the name of a text's hash in a policy that allows it within a page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
