"""Download a published task set into the data folder: only when asked, and checked before it is installed."""

import difflib
import errno
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

import pooch
import requests
from filelock import FileLock
from urllib3.exceptions import MaxRetryError, NewConnectionError

from jaxarc.datasets.archives import ARCHIVES, Archive, read_archive
from jaxarc.datasets.installed import data_folder, has_published_set, how_to_import, install, installed_path
from jaxarc.datasets.task_set import TaskSet
from jaxarc.errors import JaxarcError
from jaxarc.tasks.raw_task import TaskFormatError

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes that are there and the bytes that there will be, None where the server does not say."""

MAX_BYTES: Final = 512 * 2**20  # the published archives are below 20 MB
RETRIES: Final = 4  # after the first try; pooch waits 1, 2, 3 and 4 seconds before them
TIMEOUTS: Final = (10.0, 30.0)  # seconds to connect, seconds of silence
_CHUNK: Final = 2**14
_CUT: Final = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
_PASSING: Final = {408, 425, 429, 500, 502, 503, 504}  # statuses that may be another a moment later
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class DownloadError(JaxarcError, OSError):
    """A task set cannot be downloaded; the message says why and what to do instead."""


def download(name: str, on_progress: Progress | None = None, folder: Path | None = None, again: bool = False) -> Path:
    """Fetch a published task set, check that it is the pinned one, and install it; return the installed file.

    One that is there already is not fetched. Of several processes one downloads and the others wait for it.

    Args:
        name: one of :data:`jaxarc.datasets.archives.ARCHIVES`.
        on_progress: called with the bytes done and the bytes in all, None where unknown.
        folder: instead of :func:`jaxarc.datasets.installed.data_folder`.
        again: fetch it even if it is there.

    Raises:
        DownloadError: an ``OSError``; no such set, no connection, a refusal, other content than the pinned one, or the
            data folder is full or cannot be written. Says what to do. A set that was installed before stays.
    """
    archive = _find(name)
    home = data_folder() if folder is None else folder
    if not again and has_published_set(name, home):  # before anything is written: the folder may be one to read only
        return installed_path(name, home)
    downloads = home / "downloads"
    with _named_disk_errors(home):
        downloads.mkdir(parents=True, exist_ok=True)
        # Of two processes that want the same set, the second waits, and then finds it installed.
        with FileLock(downloads / f"{name}.lock"):
            if again or not has_published_set(name, home):  # another process may have brought it meanwhile
                install(_fetch(name, archive, downloads / name, on_progress), name, home)
    return installed_path(name, home)


def _find(name: str) -> Archive:
    if name in ARCHIVES:
        return ARCHIVES[name]
    near = difflib.get_close_matches(name.split("/")[0], ARCHIVES, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise DownloadError(f"no task set {name!r} to download; {hint}There are: {', '.join(ARCHIVES)}")


def _fetch(name: str, archive: Archive, folder: Path, on_progress: Progress | None) -> TaskSet:
    """Download the archive into a folder of its own, read its tasks, and remove the folder."""
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    try:
        return read_archive(_retrieve(archive, folder, on_progress), archive, name)
    except DownloadError as error:
        raise DownloadError(f"{name}: {error}; run the command again, or {how_to_import(name)}") from error
    except requests.RequestException as error:
        reason = _reason(error, archive.url)
        raise DownloadError(f"{name}: {reason}; run the command again, or {how_to_import(name)}") from error
    except TaskFormatError as error:
        raise DownloadError(
            f"{name}: nothing was installed, {archive.url} gave something else ({error}); try again later, or update "
            "jaxarc if the set has moved on"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _retrieve(archive: Archive, folder: Path, on_progress: Progress | None) -> Path:
    """Download one file with pooch, which tries again where the connection was cut or the server was busy."""

    def fetch(url: str, output_file: str, pooch_object: pooch.Pooch) -> None:
        # Without packing, the length that the server says is the length of the file.
        headers = {"Accept-Encoding": "identity"}
        try:
            with requests.get(url, stream=True, timeout=TIMEOUTS, headers=headers) as response:
                response.raise_for_status()
                _write(response, Path(output_file), on_progress)
        except requests.RequestException as error:
            if _may_pass(error):
                raise  # pooch tries again
            raise DownloadError(_reason(error, url)) from error

    # No hash: GitHub does not promise the bytes of its archives. read_archive checks the digest of the tasks instead.
    store = pooch.create(
        path=folder,
        base_url="",
        registry={"archive.zip": None},
        urls={"archive.zip": archive.url},
        retry_if_failed=RETRIES,
    )
    with _quiet_pooch():
        return Path(store.fetch("archive.zip", downloader=cast(Any, fetch)))  # pooch annotates it as a processor


def _write(response: requests.Response, file: Path, on_progress: Progress | None) -> None:
    # The length is what the server claims: good for a progress bar, not for the limit, which counts what has come.
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    done = 0
    with file.open("wb") as opened:
        for chunk in response.iter_content(_CHUNK):
            try:
                opened.write(chunk)
            except OSError as error:  # the disk is full
                needed = f", the archive has {total / 1e6:.1f} MB" if total else ""
                raise OSError(error.errno, f"{error.strerror}{needed}") from error
            done += len(chunk)
            if done > MAX_BYTES:
                raise DownloadError(f"{response.url} sends more than {MAX_BYTES} bytes, which no task set has")
            if on_progress is not None:
                on_progress(done, total)


def _may_pass(error: requests.RequestException) -> bool:
    """Return whether an error may pass, as a refusal and a machine without network do not."""
    if isinstance(error, requests.HTTPError):
        return error.response is not None and error.response.status_code in _PASSING
    return isinstance(error, _CUT) and not _is_unreachable(error)


def _is_unreachable(error: requests.RequestException) -> bool:
    if isinstance(error, requests.exceptions.ProxyError | requests.exceptions.SSLError | requests.ConnectTimeout):
        return True
    # requests wraps the error of urllib3, whose reason tells a refused connection from one that was cut.
    cause = error.args[0] if error.args else None
    return isinstance(cause, MaxRetryError) and isinstance(cause.reason, NewConnectionError)


def _reason(error: requests.RequestException, url: str) -> str:
    host = urlsplit(url).netloc
    tries = RETRIES + 1
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{url} answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.exceptions.ProxyError):
        return f"the proxy on the way to {host} cannot be reached (see HTTPS_PROXY and HTTP_PROXY)"
    if isinstance(error, requests.exceptions.SSLError):
        return f"{host} shows no certificate that this machine trusts"
    if _is_unreachable(error):
        return f"{host} cannot be reached from here"
    if isinstance(error, requests.Timeout) or "timed out" in str(error):  # a body that stops is a ConnectionError
        return f"{host} does not answer (waited {TIMEOUTS[1]:g} s, {tries} times)"
    if isinstance(error, _CUT):
        return f"the connection to {host} was cut {tries} times"
    return f"{url} cannot be fetched ({error})"


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Keep pooch from logging to stderr what the caller's progress shows."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _named_disk_errors(home: Path) -> Iterator[None]:
    try:
        yield
    except DownloadError:
        raise
    except OSError as error:
        advice = "free some space and run the command again" if error.errno in _FULL else "make it writable"
        raise DownloadError(
            f"cannot write to {home} ({error.strerror or error}); {advice}, or choose another folder with the "
            "environment variable JAXARC_DATA"
        ) from error
