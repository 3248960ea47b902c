"""A small HTTP server on this machine that can cut, refuse, hang and lie, and remembers what it was asked."""

import dataclasses
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclasses.dataclass
class Answer:
    """How to answer one request; by default as a good server does."""

    status: int = 200
    cut_after: int | None = None  # bytes of the body, then the connection is closed
    stops_after: int | None = None  # bytes of the body, then silence
    knows_ranges: bool = True
    skips: int = 0  # bytes that a partial answer leaves out
    tells_length: bool = True
    hangs: bool = False
    pause: float = 0.0  # seconds before every 1,000 bytes


@dataclasses.dataclass
class Asked:
    """One request and what was sent for it."""

    path: str
    byte_range: str | None
    if_range: str | None
    status: int = 0
    sent: int = 0


class ArchiveServer(ThreadingHTTPServer):
    """Serves one file; ``answers`` are used up one by one."""

    daemon_threads = True

    def __init__(self, content: bytes, etag: str | None = '"one"'):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = content
        self.etag = etag
        self.answers: deque[Answer] = deque()
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/tiny.zip"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request, client_address):
        """Keep quiet about clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: ArchiveServer

    def do_GET(self):
        server = self.server
        answer = server.answers.popleft() if server.answers else Answer()
        asked = Asked(self.path, self.headers.get("Range"), self.headers.get("If-Range"))
        server.asked.append(asked)
        if answer.hangs:
            server.closing.wait(10)
        elif answer.status != 200:
            asked.status = answer.status
            self.send_error(answer.status)
        else:
            self._send_file(answer, asked)

    def _send_file(self, answer, asked):
        content, start = self.server.content, 0
        same = asked.if_range in (None, self.server.etag)
        if asked.byte_range and answer.knows_ranges and same:
            start = int(asked.byte_range.removeprefix("bytes=").removesuffix("-")) + answer.skips
            if start >= len(content):
                asked.status = 416
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.end_headers()
                return
            asked.status = 206
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            asked.status = 200
            self.send_response(200)
        if self.server.etag:
            self.send_header("ETag", self.server.etag)
        if answer.tells_length:
            self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = answer.cut_after if answer.stops_after is None else answer.stops_after
        self._send_body(content[start:][:end], answer.pause, asked)
        if answer.stops_after is not None:
            self.server.closing.wait(10)

    def _send_body(self, body, pause, asked):
        for place in range(0, len(body), 1000):
            time.sleep(pause)
            self.wfile.write(body[place : place + 1000])
            self.wfile.flush()
            asked.sent += len(body[place : place + 1000])

    def log_message(self, *_):
        pass
