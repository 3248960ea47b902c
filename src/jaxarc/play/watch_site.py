"""The page that watches a run: a reader of the run's folder, and the requests that the page sends."""

import json
import math
import sys
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
from jaxarc.runs.kind import row_of

MOST_ROWS: Final = 6000  # that a page gets


class Means(NamedTuple):
    """The mean of a column of a table for each task."""

    rows: list[list[Any]]  # [task, mean]; None without any attempt
    num_unreadable: int  # rows that are unreadable or missing


class RunView:
    """Config, metrics and tables of a run, for the page.

    Raises:
        RunFolderError: its config is no JSON object.
        OSError: a file cannot be read.
    """

    def __init__(self, folder: RunFolder):
        self.folder = folder
        self._config = _object(folder.config.read_bytes())
        if self._config is None:
            raise RunFolderError(f"{folder.config} is no JSON object; bring the file back, or name another run")
        training = self._config.get("training")
        num_seeds = training.get("num_seeds") if isinstance(training, dict) else None
        self._num_seeds = num_seeds if isinstance(num_seeds, int) and num_seeds > 0 else 1
        try:
            self._lines = [[name, json.dumps(value)] for name, value in _leaves(self._config)]
        except RecursionError as error:
            raise RunFolderError(f"{folder.config} is nested too deeply for a config; bring the file back") from error

    @property
    def has_agent(self) -> bool:
        """Whether the run trains an agent that could be shown."""
        return self._config is not None and row_of(self._config).has_agent

    def about(self) -> dict[str, Any]:
        """Return the name of the run, and its config as lines of ``topic.field`` and value."""
        return {
            "name": self.folder.path.resolve().name,
            "path": str(self.folder.path.resolve()),
            "config": self._lines,
        }

    def metrics(self) -> dict[str, Any]:
        """Return the numbers of the reports, of a long run every second, third, ... update and the last one.

        With 2 seeds, 5 updates and every second one: rows 0 1, 4 5 and 8 9 stay of 0 .. 9.
        """
        path = self.folder.metrics
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # the last one may be half written
        each = math.ceil(len(lines) / MOST_ROWS)
        last = (len(lines) - 1) // self._num_seeds
        moments = [(index // self._num_seeds, line) for index, line in enumerate(lines)]
        rows = [_numbers(line) for moment, line in moments if moment % each == 0 or moment == last]
        known = [row for row in rows if row is not None]
        return {"rows": known, "total": len(lines), "num_unreadable": len(rows) - len(known)}

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return for each task its success rate in training and in evaluation, means over the seeds.

        The run writes both tables at its end; until then they are empty.
        """
        return {
            "learned": _means(self.folder.tasks, "success_rate")._asdict(),
            "measured": _means(self.folder.measured, "solved")._asdict(),
        }

    def stamp(self) -> str:
        """Return a text that changes whenever the metrics or a table change."""
        files = (self.folder.metrics, self.folder.tasks, self.folder.measured)
        return ".".join(str(path.stat().st_mtime_ns if path.exists() else 0) for path in files)


def _numbers(line: bytes) -> dict[str, float | None] | None:
    """Return the numbers of a line by name, None for those not finite; None if the line is unreadable."""
    row = read_row(line)
    if row is None:
        return None
    numbers = {name: value for name, value in row.items() if value is None or type(value) in (int, float)}
    # math.isfinite fails with whole numbers that are larger than every float.
    is_finite = lambda value: value is not None and abs(value) <= sys.float_info.max
    return {name: value if is_finite(value) else None for name, value in numbers.items()}


def _object(text: bytes) -> dict[str, Any] | None:
    """Read a JSON object; None for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


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
        self._run = run
        self._viewer = viewer  # plays the run's agent; None for no episodes

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
        news: dict[str, Any] = {"stamp": self._run.stamp()}
        if request.query_params.get("stamp") != news["stamp"]:
            news |= {"metrics": self._run.metrics(), "tables": self._run.tables()}
        if self._viewer is None:
            note = "switched off" if self._run.has_agent else "this run trains no agent that could be shown"
            news["showing"] = {"number": -2, "note": note, "episodes": [], "history": []}
        else:
            news["showing"] = self._viewer.latest(_whole(request.query_params.get("showing")))
        return _Answer(news)


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 16 else -1
