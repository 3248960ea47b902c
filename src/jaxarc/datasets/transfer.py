"""One file over HTTP, continued where an earlier try stopped."""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import MaxRetryError, NewConnectionError

from jaxarc.errors import JaxarcError

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes that are there and the bytes that there will be, None where the server does not say."""

MAX_BYTES: Final = 512 * 2**20  # the published archives are below 20 MB
WAITS: Final = (0.5, 1.0, 2.0, 4.0)  # seconds before each further try
TIMEOUTS: Final = (10.0, 30.0)  # seconds to connect, seconds of silence
_CHUNK: Final = 2**14
_CUT: Final = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
_PASSING: Final = {408, 425, 429, 500, 502, 503, 504}  # answers that may be another a moment later


class DownloadError(JaxarcError, OSError):
    """A task set cannot be downloaded; the message says why and what to do instead."""


class Transfer:
    """A downloader for pooch that keeps what it has in ``part`` until it has all.

    A part is continued only where the server still has the same file: it is asked with ``If-Range``, and where it has
    no strong ETag and no date, its size must be as before.
    """

    def __init__(self, part: Path, on_progress: Progress | None = None):
        self.part = part
        self.resumed = False  # whether pieces of several answers were put together
        self.total: int | None = None  # bytes, where the server said so
        self._facts_file = part.with_name(part.name + ".json")  # what the server said of the file when the part began
        self._on_progress = on_progress or (lambda done, total: None)

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Fetch ``url`` and move the whole file to ``output_file``.

        Raises:
            DownloadError: no answer, a refusal, or the connection was cut too often; the part is kept.
            OSError: the part cannot be written, as on a full disk; what was written is kept.
        """
        with requests.Session() as session:
            for wait in (*WAITS, None):
                try:
                    self._proceed(session, url)
                    break
                except requests.RequestException as error:
                    if wait is None or not _may_pass(error):
                        raise DownloadError(_reason(error, url)) from error
                    time.sleep(wait)
        os.replace(self.part, output_file)
        self._facts_file.unlink(missing_ok=True)

    def forget(self) -> None:
        """Drop what there is, so that the next try starts anew."""
        self.part.unlink(missing_ok=True)
        self._facts_file.unlink(missing_ok=True)

    def _proceed(self, session: requests.Session, url: str) -> None:
        """Ask for what is missing and write what comes; a part that cannot be continued is dropped."""
        offset = self.part.stat().st_size if self.part.exists() else 0
        facts = self._read_facts() if offset else {}
        headers = {"Accept-Encoding": "identity"}  # offsets count the bytes of the file, not of a packed answer
        if offset:
            headers["Range"] = f"bytes={offset}-"
            if validator := _validator(facts):
                headers["If-Range"] = validator
        with session.get(url, headers=headers, stream=True, timeout=TIMEOUTS) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                if _content_range(response) == (None, offset):  # the part was the whole file already
                    return
                self.forget()
                raise requests.ConnectionError("the file is shorter than before", response=response)
            response.raise_for_status()
            if response.status_code == requests.codes.partial_content:
                self._check_same(response, offset, facts)
                self.resumed = True
            else:  # the server does not know ranges, or has another file now
                offset = 0
                self.total = _length(response)
                self._write_facts(response)
            self._write(response, offset)

    def _check_same(self, response: requests.Response, offset: int, facts: dict[str, str]) -> None:
        start, self.total = _content_range(response)
        before, now = facts.get("total"), str(self.total)
        etags = facts.get("etag"), response.headers.get("ETag")
        if start != offset or (before is not None and before != now) or (all(etags) and etags[0] != etags[1]):
            self.forget()
            raise requests.ConnectionError("the file is another one now", response=response)

    def _write(self, response: requests.Response, offset: int) -> None:
        done = offset
        with self.part.open("ab" if offset else "wb") as file:
            self._on_progress(done, self.total)
            for chunk in response.iter_content(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                if done > MAX_BYTES:
                    raise DownloadError(f"{response.url} sends more than {MAX_BYTES} bytes, which no task set has")
                self._on_progress(done, self.total)
        if self.total is not None and done < self.total:
            raise requests.ConnectionError("the connection was cut", response=response)

    def _read_facts(self) -> dict[str, str]:
        try:
            facts = json.loads(self._facts_file.read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return {}
        return facts if isinstance(facts, dict) and all(isinstance(fact, str) for fact in facts.values()) else {}

    def _write_facts(self, response: requests.Response) -> None:
        headers = {"etag": "ETag", "date": "Last-Modified", "total": "Content-Length"}
        facts = {name: response.headers[header] for name, header in headers.items() if header in response.headers}
        self._facts_file.write_text(json.dumps(facts), encoding="utf-8")


def _validator(facts: dict[str, str]) -> str | None:
    etag = facts.get("etag")
    return etag if etag and not etag.startswith("W/") else facts.get("date")  # If-Range takes no weak ETag


def _length(response: requests.Response) -> int | None:
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _content_range(response: requests.Response) -> tuple[int | None, int | None]:
    """Read ``bytes 10-99/100`` as (10, 100) and ``bytes */100`` as (None, 100)."""
    found = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", response.headers.get("Content-Range", ""))
    start, total = found.groups() if found else (None, None)
    return int(start) if start else None, int(total) if total and total != "*" else None


def _may_pass(error: requests.RequestException) -> bool:
    """Tell a passing trouble from a refusal and from a machine without network, where waiting would only annoy."""
    if isinstance(error, requests.HTTPError):
        return error.response is not None and error.response.status_code in _PASSING
    return isinstance(error, _CUT) and not _unreachable(error)


def _unreachable(error: requests.RequestException) -> bool:
    if isinstance(error, requests.exceptions.ProxyError | requests.exceptions.SSLError | requests.ConnectTimeout):
        return True
    cause = error.args[0] if error.args else None
    return isinstance(cause, MaxRetryError) and isinstance(cause.reason, NewConnectionError)


def _reason(error: requests.RequestException, url: str) -> str:
    host, tries = urlsplit(url).netloc, len(WAITS) + 1
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{url} answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.exceptions.ProxyError):
        return f"the proxy on the way to {host} cannot be reached (see HTTPS_PROXY and HTTP_PROXY)"
    if isinstance(error, requests.exceptions.SSLError):
        return f"{host} shows no certificate that this machine trusts"
    if _unreachable(error):
        return f"{host} cannot be reached from here"
    if isinstance(error, requests.Timeout) or "timed out" in str(error):  # the body that stops is a ConnectionError
        return f"{host} does not answer (waited {TIMEOUTS[1]:g} s, {tries} times)"
    if isinstance(error, _CUT):
        return f"the connection to {host} was cut {tries} times"
    return f"{url} cannot be fetched ({error})"
