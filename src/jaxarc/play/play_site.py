"""The page for playing: some tasks with the episode of one, and the requests that the page sends."""

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

from jaxarc.datasets import NotInstalledError, TaskSet, dataset_names
from jaxarc.datasets.catalogue import FoundTask, find_task, find_task_id
from jaxarc.errors import JaxarcError
from jaxarc.experts import ActionFormat, ExpertError
from jaxarc.experts.expert import ACTION_FORMATS
from jaxarc.experts.host_canvas import FULL_CANVAS
from jaxarc.play.episode import Episode, WrongMoveError
from jaxarc.play.local_site import page_file, palette_sheet
from jaxarc.play.session import Session
from jaxarc.render.actions import describe_action
from jaxarc.tasks import UnknownAnswerError, UnknownTaskError
from jaxarc.traces import PairId

Direction = Literal["next", "previous", "random"]
DIRECTIONS: Final = get_args(Direction)


class StaleEpisodeError(JaxarcError, ValueError):
    """A request for an episode that is no longer open."""


class PlayedTasks:
    """Some tasks, and the current episode."""

    def __init__(self, tasks: TaskSet, dataset: str, pair_id: PairId, action_format: ActionFormat, folder: Path):
        """Compile the environment, and start an episode.

        Raises:
            UnknownTaskError, WrongMoveError: there is no such task, or it has no such pair.
        """
        self.tasks = tasks
        self.dataset = dataset
        self.folder = folder
        self._opened: dict[str, TaskSet] = {}  # by dataset
        self._sessions: dict[tuple[str, ActionFormat], Session] = {}  # by dataset and format
        self._count = 0
        self._open(FoundTask(tasks, dataset, pair_id.task_id), pair_id, action_format)

    def start(self, pair_id: PairId, action_format: ActionFormat | None = None) -> None:
        """Start an episode on a pair, also of a task in another dataset; its first use compiles, as that of a format.

        Args:
            pair_id: the pair.
            action_format: how actions select cells; None keeps the current format.

        Raises:
            UnknownTaskError, WrongMoveError: there is no such task, or it has no such pair.
        """
        found = self._search(pair_id.task_id)
        self._open(found, pair_id._replace(task_id=found.task_id), action_format or self.action_format)

    def _open(self, found: FoundTask, pair_id: PairId, form: ActionFormat) -> None:
        key = (found.dataset, form)
        if key not in self._sessions:
            self._sessions[key] = Session(found.tasks, form)
        self.episode = Episode(str(self._count + 1), self._sessions[key], pair_id, found.dataset, self.folder)
        self._opened[found.dataset] = found.tasks
        self.tasks = found.tasks
        self.dataset = found.dataset
        self.action_format: ActionFormat = form
        self._count += 1

    def _search(self, word: str) -> FoundTask:
        """Find a task by its id, first in the datasets that were played, or as DATASET/TASK.

        A path is never read, because the word comes from a page.
        """
        for dataset, tasks in ((self.dataset, self.tasks), *self._opened.items()):
            if word in tasks:
                return FoundTask(tasks, dataset, word)
        try:
            return find_task(word) if word.rpartition("/")[0] in dataset_names() else find_task_id(word)
        except UnknownTaskError:
            self.tasks.index_of(word)  # its error names ids like this one
            raise

    def go(self, direction: Direction) -> None:
        """Start an episode on the first pair of another task, in the current split."""
        index = self.tasks.index_of(self.episode.pair_id.task_id)
        count = len(self.tasks)
        step = {"next": 1, "previous": -1, "random": random.randrange(1, max(count, 2))}[direction]
        self.start(PairId(self.tasks.task_ids[(index + step) % count], self.episode.pair_id.split, 0))

    def current(self, name: object) -> Episode:
        """Return the current episode, if it has this name."""
        if name != self.episode.name:
            raise StaleEpisodeError("another pair was opened meanwhile, in another tab perhaps; reload the page")
        return self.episode

    def puzzle(self) -> dict[str, Any]:
        """Return the task for the page, as JSON, without the output of the current pair."""
        pair_id = self.episode.pair_id
        task = self.tasks.raw_task(pair_id.task_id)
        is_current = lambda index: pair_id.split == "train" and index == pair_id.pair_index
        return {
            "dataset": self.dataset,
            "is_first_visit": not any(self.folder.glob("*.jsonl")),
            "task": pair_id.task_id,
            "title": " – ".join(filter(None, (task.title, task.concept))),
            "number": self.tasks.index_of(pair_id.task_id) + 1,
            "count": len(self.tasks),
            "split": pair_id.split,
            "pair": pair_id.pair_index,
            "pairs": {"train": len(task.train), "test": len(task.test)},
            "demonstrations": [
                {"input": source.tolist(), "output": None if is_current(index) else output.tolist()}
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
)
_MISTAKES: Final = (
    ExpertError,
    NotInstalledError,
    StaleEpisodeError,
    UnknownAnswerError,
    UnknownTaskError,
    WrongMoveError,
)  # mistakes of a player: the page shows them


class RequestError(JaxarcError, ValueError):
    """A field of a request is missing or has another type."""


class PlaySite:
    """Answers the requests of the page; a lock lets one at a time use the tasks."""

    def __init__(self, played: PlayedTasks):
        self._played = played
        self._lock = threading.Lock()

    def app(self) -> Starlette:
        """Return the app, for :class:`jaxarc.play.local_site.LocalSite`."""
        queries = {"game": self._show, "tasks": self._tasks}
        changes = {"act": self._act, "rewind": self._rewind, "hint": self._hint, "go": self._go, "save": self._save}
        return Starlette(
            routes=[
                Route("/", lambda request: page_file("play.html")),
                Route("/palette.css", lambda request: Response(palette_sheet(), media_type="text/css")),
                *[Route(f"/{name}", lambda request: page_file(request.url.path.rpartition("/")[2])) for name in _FILES],
                *[Route(f"/{name}", self._answer(work)) for name, work in queries.items()],
                *[Route(f"/{name}", self._answer(work), methods=["POST"]) for name, work in changes.items()],
            ]
        )

    def _answer(self, work: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
        def locked(body: bytes) -> Response:
            try:
                with self._lock:
                    return JSONResponse(work(parse_request(body)))
            except RequestError as error:
                return JSONResponse({"error": str(error)}, 400)
            except _MISTAKES as error:
                return JSONResponse({"error": str(error)})

        async def answer(request: Request) -> Response:
            return await run_in_threadpool(locked, await request.body())

        return answer

    def _show(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"puzzle": self._played.puzzle(), "board": self._played.episode.board()}

    def _tasks(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"tasks": self._played.tasks.task_ids}

    def _act(self, request: dict[str, Any]) -> dict[str, Any]:
        action = field_of(request, "action", list)
        if not action or any(type(number) is not int for number in action):
            raise RequestError("'action' is a list of whole numbers, the operation first")
        episode = self._played.current(request.get("episode"))
        episode.act(tuple(action))
        return {"board": episode.board()}

    def _rewind(self, request: dict[str, Any]) -> dict[str, Any]:
        episode = self._played.current(request.get("episode"))
        episode.rewind(field_of(request, "to", int))
        return {"board": episode.board()}

    def _hint(self, request: dict[str, Any]) -> dict[str, Any]:
        episode = self._played.current(request.get("episode"))
        action = episode.hint()
        return {
            "action": action,
            "words": describe_action(action, self._played.action_format),
            "board": episode.board(),
        }

    def _go(self, request: dict[str, Any]) -> dict[str, Any]:
        task = field_of(request, "task", str)
        if "split" not in request and task in DIRECTIONS:
            self._played.go(task)
        else:
            split = field_of(request, "split", str)
            action_format = request.get("format")
            if split not in ("train", "test") or action_format not in (None, *ACTION_FORMATS):
                raise RequestError(
                    f"'split' is train or test, 'format' point, bbox or mask; got {split!r}, {action_format!r:.80}"
                )
            self._played.start(PairId(task, split, field_of(request, "pair", int)), action_format)
        return self._show(request)

    def _save(self, request: dict[str, Any]) -> dict[str, Any]:
        episode = self._played.current(request.get("episode"))
        episode.save()
        return {"board": episode.board()}


def parse_request(body: bytes) -> dict[str, Any]:
    """Read the body of a request, or raise ``RequestError``."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise RequestError("the body is not a JSON object")
    return found


def field_of(request: dict[str, Any], name: str, kind: type) -> Any:
    """Return a field of a request that has this very type, or raise ``RequestError``."""
    if type(request.get(name)) is not kind:
        raise RequestError(f"{name!r} must be of type {kind.__name__}, got {request.get(name)!r:.80}")
    return request[name]
