"""The page on which a person plays a game, and the requests that the page sends."""

import math
import threading
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jaxarc.games.frames import FrameGame, Seen
from jaxarc.games.game import HEX_COLORS, GameError
from jaxarc.games.recordings import GameRecorder
from jaxarc.play.local_site import page_file
from jaxarc.play.play_site import RequestError, field_of, parse_request
from jaxarc.render.game_page import game_page_file, to_digits

_KINDS: Final = {"game.html": "text/html", "game.css": "text/css", "game.js": "text/javascript"}


class GameSite:
    """Plays one game for one person, and records every action in a file."""

    def __init__(self, game: FrameGame, file: Path):
        """Start the game."""
        self._recorder = GameRecorder(game, file)
        self._file = file  # gets a line for each action
        self._lock = threading.Lock()
        self._seen = self._recorder.send(0)

    def app(self) -> Starlette:
        """Return the app, for :class:`jaxarc.play.local_site.LocalSite`."""
        return Starlette(
            routes=[
                Route("/", lambda request: _page("game.html")),
                Route("/game.css", lambda request: _page("game.css")),
                Route("/game.js", lambda request: _page("game.js")),
                Route("/server.js", lambda request: page_file("server.js")),
                Route("/look", lambda request: JSONResponse(self._shown(self._seen))),
                Route("/act", self._act, methods=["POST"]),
            ]
        )

    async def _act(self, request: Request) -> Response:
        return await run_in_threadpool(self.play, await request.body())

    def play(self, body: bytes) -> Response:
        """Answer a request of the page: take an action, and return what the game shows."""
        try:
            request = parse_request(body)
            action, x, y = (field_of(request, name, int) for name in ("action", "x", "y"))
            with self._lock:
                self._seen = self._recorder.send(action, x, y)
                return JSONResponse(self._shown(self._seen))
        except RequestError as error:
            return JSONResponse({"error": str(error)}, 400)
        except (GameError, OSError) as error:
            return JSONResponse({"error": str(error)})

    def _shown(self, seen: Seen) -> dict[str, Any]:
        game = self._recorder.game
        level = min(seen.levels_completed, seen.win_levels - 1)
        return {
            "name": game.name,
            "file": str(self._file),
            "frames": [to_digits(frame) for frame in seen.frames],
            "state": seen.state,
            "completed": seen.levels_completed,
            "levels": seen.win_levels,
            "level": level,
            "level_actions": game.spent[level],
            "best": game.baselines[level] if level < len(game.baselines) else None,
            "available": list(seen.available),
            "actions": sum(game.spent),
            "score": "unknown" if math.isnan(game.score) else f"{game.score:.1f}",
        }


def _page(name: str) -> Response:
    return Response(game_page_file(name, HEX_COLORS), media_type=_KINDS[name])
