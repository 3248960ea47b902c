"""One HTML file in which episodes are replayed: nothing is loaded from anywhere, so it can be mailed or kept.

The page lists all episodes by an index in plain JSON. Each task and each episode is a text of its own, compressed and
in base64, that is unpacked when it is looked at; so thousands of episodes open as quickly as one.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any, Final

import numpy as np

from jaxarc.envs.operations import OPERATION_NAMES
from jaxarc.render.packed_episode import DIGITS, ReplayEpisode, ReplayTask, pack_episode, write_task
from jaxarc.render.palette import COLOR_NAMES, PALETTES

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
