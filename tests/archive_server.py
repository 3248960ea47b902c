"""A small HTTP server on this machine that can cut, refuse and hang, and remembers what it answered."""

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
    tells_length: bool = True
    hangs: bool = False
    pause: float = 0.0  # seconds before every 1,000 bytes


class ArchiveServer(ThreadingHTTPServer):
    """Serves one file; ``answers`` are used up one by one, and ``asked`` has the status of each request."""

    daemon_threads = True

    def __init__(self, content: bytes):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = content
        self.answers: deque[Answer] = deque()
        self.asked: list[int] = []
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
        answer = self.server.answers.popleft() if self.server.answers else Answer()
        self.server.asked.append(answer.status)
        if answer.hangs:
            self.server.closing.wait(10)
        elif answer.status != 200:
            self.send_error(answer.status)
        else:
            self._send_file(answer)

    def _send_file(self, answer):
        content = self.server.content
        self.send_response(200)
        if answer.tells_length:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        for place in range(0, len(content[: answer.cut_after]), 1000):
            time.sleep(answer.pause)
            self.wfile.write(content[: answer.cut_after][place : place + 1000])
            self.wfile.flush()

    def log_message(self, *_):
        pass
