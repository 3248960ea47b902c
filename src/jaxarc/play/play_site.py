"""The page for playing: a game, and the requests that the page sends."""

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, get_args

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jaxarc.datasets import TaskSet
from jaxarc.errors import JaxarcError
from jaxarc.experts import ActionFormat, ExpertError
from jaxarc.experts.expert import ACTION_FORMATS
from jaxarc.experts.host_canvas import FULL_CANVAS
from jaxarc.experts.traces import PairId
from jaxarc.play.episode import Episode, WrongMoveError, say_action
from jaxarc.play.local_site import page_file, palette_sheet
from jaxarc.play.session import Session
from jaxarc.tasks import UnknownTaskError

Direction = Literal["next", "previous", "random"]
DIRECTIONS: Final = get_args(Direction)


class StaleEpisodeError(JaxarcError, ValueError):
    """Something is asked for in an episode that was left."""


class Game:
    """Some tasks, and the episode that is played now."""

    def __init__(self, tasks: TaskSet, dataset: str, place: PairId, action_format: ActionFormat, folder: Path):
        """Compile the environment, and begin.

        Args:
            tasks: what can be played.
            dataset: by which name others load them.
            place: where to begin.
            action_format: how actions select cells.
            folder: gets a file for each episode in which something was done.

        Raises:
            UnknownTaskError, WrongMoveError: there is no such task, or it has no such pair.
        """
        self.tasks, self.dataset, self.folder = tasks, dataset, folder
        self._sessions: dict[ActionFormat, Session] = {}
        self._count = 0
        self.start(place, action_format)

    def start(self, place: PairId, action_format: ActionFormat | None = None) -> None:
        """Begin an episode on a pair.

        Args:
            place: of the pair.
            action_format: how actions select cells; as before when left out. The first time, it is compiled for.

        Raises:
            UnknownTaskError, WrongMoveError: there is no such task, or it has no such pair.
        """
        form = self.action_format if action_format is None else action_format
        if form not in self._sessions:
            self._sessions[form] = Session(self.tasks, form)
        self.episode = Episode(str(self._count + 1), self._sessions[form], place, self.dataset, self.folder)
        self.action_format: ActionFormat = form
        self._count += 1

    def go(self, direction: Direction) -> None:
        """Begin an episode on the first pair of another task, of the split that is played now."""
        here, count = self.tasks.index_of(self.episode.place.task_id), len(self.tasks)
        step = {"next": 1, "previous": -1, "random": random.randrange(1, max(count, 2))}[direction]
        self.start(PairId(self.tasks.task_ids[(here + step) % count], self.episode.place.split, 0))

    def current(self, name: object) -> Episode:
        """Return the episode of this name.

        Raises:
            StaleEpisodeError: it was left.
        """
        if name != self.episode.name:
            raise StaleEpisodeError("another pair was opened meanwhile, in another tab perhaps; reload the page")
        return self.episode

    def puzzle(self) -> dict[str, Any]:
        """Return what the page shows of the task, for JSON; the output of the pair that is played is left out."""
        place = self.episode.place
        task = self.tasks.raw_task(place.task_id)
        is_played = lambda index: place.split == "train" and index == place.pair_index
        return {
            "dataset": self.dataset,
            "task": place.task_id,
            "title": " – ".join(filter(None, (task.title, task.concept))),
            "number": self.tasks.index_of(place.task_id) + 1,
            "count": len(self.tasks),
            "split": place.split,
            "pair": place.pair_index,
            "pairs": {"train": len(task.train), "test": len(task.test)},
            "demonstrations": [
                {"input": source.tolist(), "output": None if is_played(index) else output.tolist()}
                for index, (source, output) in enumerate(task.train)
            ],
            "input": self.episode.pair.input.tolist(),
            "format": self.action_format,
            "canvas": FULL_CANVAS,
        }


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


class RequestError(JaxarcError, ValueError):
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
            if split not in ("train", "test") or form not in (None, *ACTION_FORMATS):
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
