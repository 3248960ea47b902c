"""The page that watches a run: answers what is new since the page asked last."""

import json
import threading
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jaxarc.play.episode_viewer import EpisodeViewer
from jaxarc.play.local_site import page_file
from jaxarc.play.palette_sheet import palette_sheet
from jaxarc.play.run_view import RunView

_FILES: Final = (
    "site.css",
    "watch.css",
    "watch.js",
    "curves.js",
    "heatmap.js",
    "episodes.js",
    "drawing.js",
    "server.js",
)


class _Answer(JSONResponse):
    """JSON in ASCII: a file may hold halves of characters, which UTF-8 does not take."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class WatchSite:
    """Answers the page; nothing of the run is changed."""

    def __init__(self, run: RunView, showing: EpisodeViewer | None):
        """Prepare.

        Args:
            run: what is watched.
            showing: plays the run's agent; None leaves episodes out.
        """
        self._run, self._showing, self._lock = run, showing, threading.Lock()

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
        """Tell rows, tables and episodes that the page does not have; it says which it has."""
        known = {name: _whole(request.query_params.get(name)) for name in ("reading", "count", "showing")}
        with self._lock:
            rows = self._run.metrics.read(known["reading"], known["count"])
            news: dict[str, Any] = {"metrics": rows._asdict(), "stamp": ".".join(map(str, self._run.stamp()))}
            if request.query_params.get("stamp") != news["stamp"]:
                news["tables"] = self._run.tables()
        if self._showing is None:
            note = "switched off" if self._run.has_agent else "this run trains no agent that could be shown"
            news["showing"] = {"number": -2, "note": note, "episodes": [], "history": []}
        else:
            news["showing"] = self._showing.latest(known["showing"])
        return _Answer(news)


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 16 else -1
