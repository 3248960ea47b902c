"""What the local pages take as targets: requests past and in front of the guard, and the run that is watched."""

import asyncio
import atexit
import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from campaign.inputs.input_target import Maker, Target, parsed_json, require
from campaign.inputs.task_inputs import small_tasks
from jaxarc.play.local_site import Guard
from jaxarc.play.play_site import PlayedTasks, PlaySite
from jaxarc.play.watch_site import RunView, WatchSite
from jaxarc.runs import RunFolder
from jaxarc.runs.folder import RunFolderError
from jaxarc.traces import PairId

_PORT: Final = 8000
_LOOP: Final = asyncio.new_event_loop()
atexit.register(_LOOP.close)
_HOST: Final = f"127.0.0.1:{_PORT}"


def play_requests(folder: Path) -> Target:
    """Requests that passed the guard, one after the other, in one game."""
    app = PlaySite(PlayedTasks(small_tasks(), "small", PairId("one", "train", 0), "bbox", folder)).app()

    def read(content: bytes) -> None:
        requests = parsed_json(content)
        for request in requests if isinstance(requests, list) else [content]:
            route, body = request if isinstance(request, list) and len(request) == 2 else ("act", request)
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            status, answer = _LOOP.run_until_complete(_ask(app, "POST", f"/{route}", raw))
            require(status in (200, 400, 404, 405), f"status {status}")
            require(status not in (200, 400) or answer[:1] in b"{:@(*.\"'/<", "an answer that is no JSON")

    play = [["go", {"task": "one", "split": "train", "pair": 0}], ["act", {"episode": "1", "action": [3, 0, 0, 1, 1]}],
            ["rewind", {"episode": "1", "to": 0}], ["save", {"episode": "1"}]]  # fmt: skip
    other = {"task": "two", "split": "test", "pair": 0, "format": "bbox"}
    more = [["go", {"task": "next"}], ["go", other], ["game", {}]]
    words = ("act", "go", "rewind", "save", "game", "task", "split", "pair", "format", "episode", "action", "to")
    return Target(read, (), (json.dumps(play).encode(), json.dumps(more).encode()), words)


def guarded_requests(folder: Path) -> Target:
    """Any request: the app sees it only with the token, from this address, from no other site."""
    reached: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["path"])

    guard = Guard(app, _PORT)
    entrance = guard.entrance

    def read(content: bytes) -> None:
        data = parsed_json(content)
        fields = data if isinstance(data, dict) else {}
        path, method = (_text(fields.get(name)).replace("TOKEN", guard.token) for name in ("path", "method"))
        given = fields.get("headers")
        headers = (
            {_text(name).lower(): _text(value) for name, value in given.items()} if isinstance(given, dict) else {}
        )
        reached.clear()
        guard.entrance = entrance
        status = _drive(guard, method, path, headers)
        if reached:
            _require_allowed(path, method, headers, guard.token)
        else:
            require(status in (303, 307, 403, 413, 415), f"status {status}")

    read_it = {"method": "GET", "path": "/TOKEN/x", "headers": {"host": _HOST}}
    own = {"host": _HOST, "origin": f"http://{_HOST}", "content-type": "application/json", "content-length": "2"}
    change = {"method": "POST", "path": "/TOKEN/act", "headers": {**own, "sec-fetch-site": "same-origin"}}
    words = (*own, *own.values(), "sec-fetch-site", "none", "cross-site", "null", "TOKEN", "PUT", "OPTIONS", "²", "-1")
    return Target(read, (), (json.dumps(read_it).encode(), json.dumps(change).encode()), words)


def watched_run(folder: Path) -> Target:
    """The files of a run that is watched, and what the page asks for."""
    run = RunFolder(folder)

    def read(content: bytes) -> None:
        data = parsed_json(content)
        fields = data if isinstance(data, dict) else {"config": data}
        for name, file in (("metrics", run.metrics), ("tasks", run.tasks), ("measured", run.measured)):
            file.write_bytes(_text(fields.get(name)).encode("utf-8", "surrogatepass"))
        run.config.write_bytes(json.dumps(fields.get("config")).encode())
        app = WatchSite(RunView(run), None).app()
        asked = fields.get("query")
        query = urlencode({_text(name): _text(value) for name, value in asked.items()}, errors="replace") \
            if isinstance(asked, dict) else ""  # fmt: skip
        for path in ("/run", "/news"):
            status, answer = _LOOP.run_until_complete(_ask(app, "GET", path, b"", query))
            require(status == 200, f"status {status}")
            json.loads(answer, parse_constant=lambda name: require(False, f"{name} is no JSON"))

    row = json.dumps({"update": 1, "seed": 0, "return_mean": 0.5}) + "\n"
    table = json.dumps({"seed": 0, "task_id": "one", "solved": True, "success_rate": 0.5}) + "\n"
    files = {"metrics": row * 2, "tasks": table, "measured": table, "config": {"agent": {"kind": "x"}}}
    seed = {**files, "query": {"reading": 1, "count": 1, "showing": 0, "stamp": "0.0"}}
    words = ("metrics", "tasks", "measured", "config", "query", "NaN", "Infinity", "1e999", "9" * 400, row, table)
    return Target(read, (RunFolderError,), (json.dumps(seed).encode(),), words)


TARGETS: Final[tuple[Maker, ...]] = (play_requests, guarded_requests, watched_run)


async def _ask(app: Any, method: str, path: str, body: bytes, query: str = "") -> tuple[int, bytes]:
    """Send one request to an app of Starlette, and return status and body."""
    told: list[Mapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        told.append(message)

    await app(_scope(method, path, {"host": _HOST}, query), receive, send)
    return told[0]["status"], b"".join(message.get("body", b"") for message in told)


def _drive(guard: Guard, method: str, path: str, headers: Mapping[str, str]) -> int:
    """Send one request to the guard, which waits for nothing; return the status, 0 where the app was reached."""
    statuses: list[int] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        statuses.append(message.get("status", 0))

    answer = guard(_scope(method, path, headers), receive, send)
    with contextlib.suppress(StopIteration):
        answer.send(None)  # type: ignore[attr-defined]
    return statuses[0] if statuses else 0


def _scope(method: str, path: str, headers: Mapping[str, str], query: str = "") -> dict[str, Any]:
    raw = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in headers.items()]
    return {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "headers": raw,
        "root_path": "",
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query.encode(),
        "server": ("127.0.0.1", _PORT),
        "client": ("127.0.0.1", 1),
    }


def _require_allowed(path: str, method: str, headers: Mapping[str, str], token: str) -> None:
    """Say again, in other words, what the guard lets through."""
    own = (f"127.0.0.1:{_PORT}", f"localhost:{_PORT}")
    require(path.lstrip("/").startswith(f"{token}/"), "the app was reached without the token")
    require(headers.get("host") in own, "the app was reached by another name")
    require(headers.get("origin") in (None, *(f"http://{host}" for host in own)), "the app was reached by another site")
    if method not in ("GET", "HEAD"):
        require(method == "POST" and "origin" in headers, "a change without origin")
        require(headers.get("content-type") == "application/json", "a change that a form can make")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
