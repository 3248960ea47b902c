"""Episodes in one HTML file."""

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

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.envs.operations import OPERATION_NAMES
from jaxarc.render.expected_grids import acts_on_cells, expected_clipboard, expected_grid, selection_of
from jaxarc.render.palette import COLOR_NAMES, PALETTES

DIGITS: Final = 6  # of a reward or a similarity
_KINDS: Final = NUM_COLORS + 1  # of cells: the padding and the colors


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


def write_task(task: ReplayTask) -> str:
    """Write a task as JSON."""
    pairs = [[_rows(grid) for grid in pair] for pair in task.demonstrations]
    return json.dumps({"id": task.task_id, "title": task.title, "demonstrations": pairs})


def pack_episode(episode: ReplayEpisode) -> bytes:
    """Write an episode, compressed. The canvas is cut to what is ever used of it."""
    height, width = _used(np.concatenate([episode.target[None], episode.grids]))
    target, grids = episode.target[:height, :width], episode.grids[:, :height, :width]
    selections = np.array(
        [selection_of(action, episode.selection_format, (height, width)) for action in episode.actions], np.bool_
    ).reshape(-1, height, width)
    expected = [np.full_like(target, PADDING), target]
    expected += [
        expected_grid(grids[step], grids[0], action[0], selections[step]) for step, action in enumerate(episode.actions)
    ]
    facts = {
        "shape": [height, width],
        "format": episode.selection_format,
        "actions": [_numbers(action, episode.selection_format) for action in episode.actions],
        "rewards": _rounded(episode.rewards),
        "similarities": _rounded(episode.similarities),
        "invalid": np.flatnonzero(episode.invalid).tolist(),
        "clipboards": _clipboards(episode, selections),
    }
    masks = selections[[acts_on_cells(action[0]) for action in episode.actions]]
    masks = masks.reshape(len(masks), -1) if episode.selection_format == "mask" else masks[:0]
    surprises = (np.concatenate([target[None], grids]).astype(np.int16) - np.array(expected)) % _KINDS
    line = json.dumps(facts, separators=(",", ":")).encode() + b"\n"
    return _compressed(
        [line, np.packbits(masks, axis=-1, bitorder="little").tobytes(), surprises.astype(np.uint8).tobytes()]
    )


def _compressed(parts: Sequence[bytes]) -> bytes:
    """Compress parts that have nothing in common as one stream, each with a code of its own."""
    packer = zlib.compressobj(9, memLevel=9)
    return b"".join([packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH) for part in parts]) + packer.flush()


def _numbers(action: Sequence[int], selection_format: str) -> list[int]:
    """Return an action as it is; of a mask its operation and the number of its cells."""
    return [action[0], len(action) // 2] if selection_format == "mask" else list(action)


def _clipboards(episode: ReplayEpisode, selections: np.ndarray) -> list[list[Any]]:
    """Where the clipboard becomes another one: the step, and rows unless it is what the action is expected to take."""
    found, before = [], np.full_like(episode.clipboards[0], PADDING)
    height, width = selections.shape[1:]
    for step, held in enumerate(episode.clipboards):
        if not np.array_equal(held, before):
            rows, columns = _used(held[None])
            taken = held[:rows, :columns]
            grid = episode.grids[max(step - 1, 0), :height, :width]
            expected = expected_clipboard(grid, episode.actions[step - 1][0], selections[step - 1]) if step else None
            as_expected = expected is not None and np.array_equal(expected, taken)
            found.append([step] if as_expected else [step, _rows(taken)])
        before = held
    return found


def _used(grids: np.ndarray) -> tuple[int, int]:
    """Rows and columns that hold every cell of some grids."""
    used = (grids != PADDING).any(axis=0)
    last = lambda line: int(np.flatnonzero(line).max(initial=-1)) + 1
    return last(used.any(axis=1)), last(used.any(axis=0))


def _rows(grid: np.ndarray) -> list[str]:
    """Write a grid as texts of digits, a point where there is no cell."""
    return ["".join("." if cell == PADDING else str(cell) for cell in row) for row in np.asarray(grid).tolist()]


def _rounded(numbers: np.ndarray) -> list[float]:
    return [round(float(number), DIGITS) for number in numbers]


__all__ = ["SCRIPTS", "ReplayEpisode", "ReplayPage", "ReplayTask"]

SCRIPTS: Final = (  # in the order they are read
    "grids.js",
    "expectation.js",
    "episodes.js",
    "curves.js",
    "episode_list.js",
    "replay.js",
)


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
        text = write_task(task)  # tasks of two data sets may have the same id
        if text not in self._task_places:
            self._task_places[text] = len(self._tasks)
            self._tasks.append({"id": task.task_id, "packed": self._keep(zlib.compress(text.encode(), 9))})
        place = self._keep(pack_episode(episode))
        similarity, paid = float(episode.similarities[-1]), float(np.sum(episode.rewards))
        facts = [round(similarity, DIGITS), round(paid, DIGITS), int(episode.is_solved), count]
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


def _security_policy(style: str, script: str) -> str:
    """Allow this style and this script, and nothing from anywhere."""
    allowed = [_hash_of(part) for part in (style, script)]
    return (
        f"default-src 'none'; style-src '{allowed[0]}'; script-src '{allowed[1]}'; base-uri 'none'; form-action 'none'"
    )


def _hash_of(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
