"""A web site for one person on this machine: loopback only, behind a random token, closed to every other origin."""

import errno
import secrets
import socket
from collections.abc import Sequence
from importlib import resources
from typing import Final

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jaxarc.errors import JaxarcError
from jaxarc.games.game import HEX_COLORS
from jaxarc.render.palette import PALETTES, ink_on

LOOPBACK: Final = "127.0.0.1"
MOST_BYTES: Final = 2**16  # of a request's body; the longest action, a mask of 900 cells, takes 6 kB
_MOST_READ: Final = 16 * MOST_BYTES  # of a body that is refused
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_KINDS: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class PortError(JaxarcError, OSError):
    """A port is taken or forbidden."""


class LocalSite:
    """Serves an app under ``http://127.0.0.1:PORT/TOKEN/`` until Ctrl-C.

    A request is answered only if its Host is this very address (which a page that rebinds its name to the loopback
    interface cannot send) or the name of an allowed proxy, its path begins with the token, its Origin, if any, is this
    site, and a change is asked for by a page of this site.

    Raises:
        PortError: the port is taken, or may not be used.
    """

    def __init__(self, app: ASGIApp, port: int = 0, allowed_hosts: Sequence[str] = ()):
        """Take the port.

        Args:
            app: sees paths without the token.
            port: 0 takes any that is free.
            allowed_hosts: further values of the header Host, in lower case: names of proxies that lead here.
        """
        self.allowed_hosts = tuple(allowed_hosts)
        self._socket = _listen(port)
        self.port: int = self._socket.getsockname()[1]
        guard = Guard(app, self.port, self.allowed_hosts)
        self.url = f"http://{LOOPBACK}:{self.port}/{guard.token}/"
        self.entrance = f"http://{LOOPBACK}:{self.port}/{guard.entrance}"
        # Without lifespan and web sockets there is one kind of request, which the guard sees.
        self._server = uvicorn.Server(
            uvicorn.Config(
                guard,
                http="h11",
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",  # a fault of ours is printed, and not what others send
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )

    def run(self) -> None:
        """Serve until Ctrl-C or SIGTERM, which is raised again when all is closed."""
        self._server.run(sockets=[self._socket])


class Guard:
    """Passes on the requests of one person's browser, and refuses all others."""

    def __init__(self, app: ASGIApp, port: int, allowed_hosts: Sequence[str] = ()):
        """Draw a token.

        Args:
            app: gets the requests that pass.
            port: of the site.
            allowed_hosts: names of proxies, in lower case.
        """
        self.token = secrets.token_urlsafe(24)
        self.entrance: str | None = f"open-{secrets.token_urlsafe(24)}"  # works once
        self._app = app
        own = (f"{LOOPBACK}:{port}", f"localhost:{port}")
        self._hosts = (*own, *allowed_hosts)
        proxied = (f"{scheme}://{host}" for scheme in ("http", "https") for host in allowed_hosts)
        self._origins = (None, *(f"http://{host}" for host in own), *proxied)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on without the token in its path; every answer gets the strictest headers."""
        assert scope["type"] == "http"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        answer = self._refusal(Request(scope))
        if answer is not None:
            await answer(scope, receive, send_with_headers)
            return
        try:
            body = await _read_body(receive)
        except _TooLongError:
            text = f"a body has at most {MOST_BYTES} bytes"
            answer = PlainTextResponse(text, 413, {"Connection": "close"})  # whatever else it sends is not read
            await answer(scope, receive, send_with_headers)
            return
        if body is None:
            return

        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return whole.pop() if whole else await receive()

        scope = {**scope, "path": scope["path"].removeprefix(f"/{self.token}"), "root_path": f"/{self.token}"}
        await self._app(scope, receive_again, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        headers = request.headers
        name, slash, _ = request.scope["path"].removeprefix("/").partition("/")
        first_part = name.encode("utf-8", "surrogatepass")
        if headers.get("host", "").lower() not in self._hosts:
            return _no("this site answers to its own address only; a proxy is allowed by --allow-host NAME")
        if self.entrance is not None and secrets.compare_digest(first_part, self.entrance.encode()):
            self.entrance = None
            return RedirectResponse(f"{self.token}/", 303)  # relative: a proxy may add a path in front
        if not secrets.compare_digest(first_part, self.token.encode()):
            return _no("wrong token; open the address that the command printed")
        if not slash:
            return RedirectResponse(f"{self.token}/", 307)
        return None if request.method in ("GET", "HEAD") and self._is_home(headers) else self._refused_change(request)

    def _refused_change(self, request: Request) -> Response | None:
        headers = request.headers
        if not self._is_home(headers) or "origin" not in headers:
            return _no("another site may not ask for this")
        if request.method != "POST" or headers.get("content-type") != "application/json":
            return PlainTextResponse("a change is a POST of application/json", 415)
        return None

    def _is_home(self, headers: Headers) -> bool:
        """Whether a page of this site sent the request, or no page at all."""
        return headers.get("origin") in self._origins and headers.get("sec-fetch-site", "none") in (
            "none",
            "same-origin",
        )


class _TooLongError(Exception):
    """A body has more bytes than the site takes."""


async def _read_body(receive: Receive) -> bytes | None:
    """Read the body of a request as it arrives, and keep no more than the site takes; None where the client has left.

    A longer body is read on for a while: of a connection that is closed with unread bytes, a client that sends
    before it listens sees the closing, and not the answer.
    """
    body, read = b"", 0
    while read <= _MOST_READ:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        read += len(part)
        body = body + part if read <= MOST_BYTES else b""
        if not message.get("more_body", False):
            break
    if read > MOST_BYTES:
        raise _TooLongError
    return body


def page_file(name: str) -> Response:
    """Return a file of this package's pages.

    Raises:
        FileNotFoundError: there is no such file.
    """
    content = (resources.files("jaxarc.play") / "page" / name).read_bytes()
    return Response(content, media_type=_KINDS[name.rpartition(".")[2]])


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen()  # a browser that is faster than the server waits
    except OSError as error:
        listening.close()
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise PortError(
            f"port {port} {reason}; name another with --port, or leave it out for any that is free"
        ) from error
    return listening


def _no(reason: str) -> Response:
    return PlainTextResponse(f"403: {reason}\n", 403)


_SELECTORS: Final = {"arc": ":root", "safe": ":root.safe"}


def palette_sheet() -> str:
    """Return CSS with a variable for each color and one for the ink on it; class ``safe`` takes the safe palette."""
    rules = []
    for name, selector in _SELECTORS.items():
        palette = PALETTES[name]
        colors = (
            f"  --color-{number}: {color}; --ink-{number}: {ink_on(number, palette)};\n"
            for number, color in enumerate(palette)
        )
        rules.append(f"{selector} {{\n{''.join(colors)}}}\n")
    of_games = (f"  --color-game-{number}: {color};\n" for number, color in enumerate(HEX_COLORS))
    rules.append(f":root {{\n{''.join(of_games)}}}\n")
    return "".join(rules)
