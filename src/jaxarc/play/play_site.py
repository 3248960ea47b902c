"""The page for playing: a game behind requests, each answered with what the page shows next."""

import json
import threading
from collections.abc import Callable
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jaxarc.experts import ExpertError
from jaxarc.experts.traces import PairId
from jaxarc.experts.traces.recording import FORMATS
from jaxarc.play.episode import WrongMoveError, say_action
from jaxarc.play.game import DIRECTIONS, Game, StaleEpisodeError
from jaxarc.play.local_site import page_file
from jaxarc.play.palette_sheet import palette_sheet
from jaxarc.tasks import UnknownTaskError

_FILES: Final = (
    "site.css",
    "play.css",
    "play.js",
    "board.js",
    "drawing.js",
    "selection.js",
    "keys.js",
    "server.js",
    "words.js",
)
_IN_VAIN: Final = (ExpertError, StaleEpisodeError, UnknownTaskError, WrongMoveError)  # what a player may try in vain


class RequestError(ValueError):
    """A request lacks something, or has something of another type."""


class PlaySite:
    """Answers the page; one request at a time touches the game."""

    def __init__(self, game: Game):
        self._game, self._lock = game, threading.Lock()

    def app(self) -> Starlette:
        """Return the app, for :class:`jaxarc.play.local_site.LocalSite`."""
        asked = {"game": self._look, "tasks": self._tasks}
        done = {"act": self._act, "rewind": self._rewind, "hint": self._hint, "go": self._go, "save": self._save}
        return Starlette(
            routes=[
                Route("/", lambda request: page_file("play.html")),
                Route("/palette.css", lambda request: Response(palette_sheet(), media_type="text/css")),
                *[Route(f"/{name}", lambda request: page_file(request.url.path.rpartition("/")[2])) for name in _FILES],
                *[Route(f"/{name}", self._answer(work)) for name, work in asked.items()],
                *[Route(f"/{name}", self._answer(work), methods=["POST"]) for name, work in done.items()],
            ]
        )

    def _answer(self, work: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
        def locked(body: bytes) -> Response:
            try:
                with self._lock:
                    return JSONResponse(work(_parsed(body)))
            except RequestError as error:
                return JSONResponse({"error": str(error)}, 400)
            except _IN_VAIN as error:
                return JSONResponse({"error": str(error)})

        async def answer(request: Request) -> Response:
            return await run_in_threadpool(locked, await request.body())

        return answer

    def _look(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"puzzle": self._game.puzzle(), "board": self._game.episode.board()}

    def _tasks(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"tasks": self._game.tasks.task_ids}

    def _act(self, asked: dict[str, Any]) -> dict[str, Any]:
        action = _field(asked, "action", list)
        if not action or any(type(number) is not int for number in action):
            raise RequestError("'action' is a list of whole numbers, the operation first")
        episode = self._game.current(asked.get("episode"))
        episode.act(tuple(action))
        return {"board": episode.board()}

    def _rewind(self, asked: dict[str, Any]) -> dict[str, Any]:
        episode = self._game.current(asked.get("episode"))
        episode.rewind(_field(asked, "to", int))
        return {"board": episode.board()}

    def _hint(self, asked: dict[str, Any]) -> dict[str, Any]:
        episode = self._game.current(asked.get("episode"))
        action = episode.hint()
        return {"action": action, "words": say_action(action, self._game.action_format), "board": episode.board()}

    def _go(self, asked: dict[str, Any]) -> dict[str, Any]:
        task = _field(asked, "task", str)
        if "split" not in asked and task in DIRECTIONS:
            self._game.go(task)
        else:
            split, form = _field(asked, "split", str), asked.get("format")
            if split not in ("train", "test") or form not in (None, *FORMATS):
                raise RequestError(
                    f"'split' is train or test, 'format' point, bbox or mask; got {split!r}, {form!r:.80}"
                )
            self._game.start(PairId(task, split, _field(asked, "pair", int)), form)
        return self._look(asked)

    def _save(self, asked: dict[str, Any]) -> dict[str, Any]:
        episode = self._game.current(asked.get("episode"))
        episode.save()
        return {"board": episode.board()}


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise RequestError("the body is not a JSON object")
    return found


def _field(asked: dict[str, Any], name: str, kind: type) -> Any:
    if type(asked.get(name)) is not kind:
        raise RequestError(f"{name!r} must be of type {kind.__name__}, got {asked.get(name)!r:.80}")
    return asked[name]
