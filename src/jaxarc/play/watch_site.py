"""The page that watches a run: a reader of the run's folder, and the requests that the page sends."""

import json
import math
import sys
import threading
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jaxarc.play.episode_viewer import EpisodeViewer
from jaxarc.play.local_site import page_file, palette_sheet
from jaxarc.runs import RunFolder
from jaxarc.runs.folder import RunFolderError, read_row, read_table

MOST_ROWS: Final = 6000  # that a page gets at once; of longer files it gets every second, third, ... update


class Rows(NamedTuple):
    """Some rows of a metrics file."""

    reading: int  # raised each time the file is read anew from its start
    first: int  # index of the first of these rows in the file
    rows: list[dict[str, float | None]]
    total: int
    num_unreadable: int


class Means(NamedTuple):
    """The mean of a column of a table for each task."""

    rows: list[list[Any]]  # [task, mean]; None without any attempt
    num_unreadable: int  # rows that are unreadable or missing


class MetricsReader:
    """Reads a growing file of JSON lines, and starts anew if it was cut, as by a resumed run.

    It finds a cut by the last line that it read: if the file has other bytes there, another run wrote it.
    """

    def __init__(self, path: Path):
        self._path = path
        self._reading = 1
        self._num_bytes = 0  # read so far
        self._last_line = b""
        self._rows: list[dict[str, float | None]] = []
        self._num_unreadable = 0

    def read(self, reading: int, count: int) -> Rows:
        """Return the rows after the first ``count`` of a reading; all rows if the file was read anew since.

        Raises:
            OSError: the file exists and cannot be read.
        """
        self._follow()
        known = count if reading == self._reading and 0 <= count <= len(self._rows) else 0
        # A page that has 12 rows of this reading gets the 13th and later ones; one of an older reading gets all.
        rows = _thinned(self._rows) if known == 0 else self._rows[known:]
        return Rows(self._reading, known, rows, len(self._rows), self._num_unreadable)

    def _follow(self) -> None:
        try:
            with self._path.open("rb") as file:
                # 30 bytes were read, the last 10 of them a line: bytes 20 to 30 must still be that line. A resumed run
                # cuts the file and writes other lines there.
                file.seek(max(self._num_bytes - len(self._last_line), 0))
                if file.read(len(self._last_line)) != self._last_line:
                    self._start_anew()
                    file.seek(0)
                new = file.read()
        except FileNotFoundError:
            return
        lines = new[: new.rfind(b"\n") + 1].splitlines(keepends=True)  # the last one may be half written
        for line in lines:
            self._num_bytes += len(line)
            self._last_line = line
            row = _numbers(line)
            if row is None:
                self._num_unreadable += 1
            else:
                self._rows.append(row)

    def _start_anew(self) -> None:
        self._reading += 1
        self._rows = []
        self._num_bytes = 0
        self._last_line = b""
        self._num_unreadable = 0


class RunView:
    """Config, metrics and tables of a run, for the page.

    Raises:
        RunFolderError: its config is no JSON object.
        OSError: a file cannot be read.
    """

    def __init__(self, folder: RunFolder):
        self.folder = folder
        self.metrics = MetricsReader(folder.metrics)
        self._config = _object(folder.config.read_bytes())
        if self._config is None:
            raise RunFolderError(f"{folder.config} is no JSON object; bring the file back, or name another run")
        try:
            self._lines = [[name, json.dumps(value)] for name, value in _leaves(self._config)]
        except RecursionError as error:
            raise RunFolderError(f"{folder.config} is nested too deeply for a config; bring the file back") from error

    @property
    def has_agent(self) -> bool:
        """Whether the run trains an agent, not a surrogate."""
        return self._config is not None and "agent" in self._config

    def about(self) -> dict[str, Any]:
        """Return the name of the run, and its config as lines of ``topic.field`` and value."""
        return {
            "name": self.folder.path.resolve().name,
            "path": str(self.folder.path.resolve()),
            "config": self._lines,
        }

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return for each task its success rate in training and in evaluation, means over the seeds.

        The run writes both tables at its end; until then they are empty.
        """
        return {
            "learned": _means(self.folder.tasks, "success_rate")._asdict(),
            "measured": _means(self.folder.measured, "solved")._asdict(),
        }

    def stamp(self) -> list[int]:
        """Return the times of the last change of both tables."""
        return [path.stat().st_mtime_ns if path.exists() else 0 for path in (self.folder.tasks, self.folder.measured)]


def _numbers(line: bytes) -> dict[str, float | None] | None:
    """Return the numbers of a line by name, None for those not finite; None if the line is unreadable."""
    row = read_row(line)
    if row is None:
        return None
    numbers = {name: value for name, value in row.items() if value is None or type(value) in (int, float)}
    return {name: value if value is None or _is_finite(value) else None for name, value in numbers.items()}


def _is_finite(number: float) -> bool:
    return abs(number) <= sys.float_info.max  # math.isfinite fails with whole numbers that are larger


def _object(text: bytes) -> dict[str, Any] | None:
    """Read a JSON object; None for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _thinned(rows: list[dict[str, float | None]]) -> list[dict[str, float | None]]:
    """Keep every second, third, ... update with all its seeds, and always the last.

    With 2 seeds, 5 updates and every second one: rows 0 1, 4 5 and 8 9 stay of 0 .. 9.
    """
    num_seeds = len({row.get("seed") for row in rows}) or 1
    each = math.ceil(len(rows) / MOST_ROWS)
    last = (len(rows) - 1) // num_seeds
    return [row for index, row in enumerate(rows) if index // num_seeds % each == 0 or index // num_seeds == last]


def _means(path: Path, field: str) -> Means:
    """Read a table of a row for each seed and task."""
    rows, num_lost = read_table(path)
    values: dict[str, list[float]] = {}
    for row in rows:
        mine = values.setdefault(str(row.get("task_id")), [])
        if isinstance(value := row.get(field), int | float) and 0 <= value <= 1:  # a share, or whether it was solved
            mine.append(float(value))
    return Means([[task, fmean(mine) if mine else None] for task, mine in values.items()], num_lost)


def _leaves(config: Any, name: str = "") -> list[tuple[str, Any]]:
    if not isinstance(config, dict):
        return [(name, config)]
    inner = (_leaves(value, f"{name}.{key}" if name else key) for key, value in config.items())
    return [leaf for leaves in inner for leaf in leaves]


_FILES: Final = (
    "site.css",
    "watch.css",
    "watch.js",
    "curves.js",
    "heatmap.js",
    "drawing.js",
    "server.js",
)


class _Answer(JSONResponse):
    """JSON in ASCII: a file may hold halves of surrogate pairs, which UTF-8 refuses."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class WatchSite:
    """Answers the requests of the page; changes nothing of the run."""

    def __init__(self, run: RunView, viewer: EpisodeViewer | None):
        """Prepare.

        Args:
            run: the run.
            viewer: plays the run's agent; None for no episodes.
        """
        self._run = run
        self._viewer = viewer
        self._lock = threading.Lock()

    def app(self) -> Starlette:
        """Return the app, for :class:`jaxarc.play.local_site.LocalSite`."""
        return Starlette(
            routes=[
                Route("/", lambda request: page_file("watch.html")),
                Route("/palette.css", lambda request: Response(palette_sheet(), media_type="text/css")),
                *[Route(f"/{name}", lambda request: page_file(request.url.path.rpartition("/")[2])) for name in _FILES],
                Route("/run", lambda request: _Answer(self._run.about())),
                Route("/news", self._news),
            ]
        )

    def _news(self, request: Request) -> Response:
        """Return the rows, tables and episodes that are new to the page; its query says what it has."""
        known = {name: _whole(request.query_params.get(name)) for name in ("reading", "count", "showing")}
        with self._lock:
            rows = self._run.metrics.read(known["reading"], known["count"])
            news: dict[str, Any] = {"metrics": rows._asdict(), "stamp": ".".join(map(str, self._run.stamp()))}
            if request.query_params.get("stamp") != news["stamp"]:
                news["tables"] = self._run.tables()
        if self._viewer is None:
            note = "switched off" if self._run.has_agent else "this run trains no agent that could be shown"
            news["showing"] = {"number": -2, "note": note, "episodes": [], "history": []}
        else:
            news["showing"] = self._viewer.latest(known["showing"])
        return _Answer(news)


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 16 else -1
