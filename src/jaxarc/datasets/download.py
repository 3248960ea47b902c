"""Download a published task set into the data folder: only when asked, and checked before it is installed."""

import difflib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

import pooch
import requests
from filelock import FileLock

from jaxarc.datasets.archives import ARCHIVES, Archive, read_archive
from jaxarc.datasets.installed import data_folder, has_published_set, how_to_import, install, installed_path
from jaxarc.datasets.task_set import TaskSet
from jaxarc.errors import JaxarcError
from jaxarc.tasks.raw_task import TaskFormatError

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes that are there and the bytes that there will be, None where the server does not say."""

MAX_BYTES: Final = 512 * 2**20  # the published archives are below 20 MB
TRIES: Final = 3  # pooch waits 1 and 2 seconds between them
TIMEOUTS: Final = (10.0, 30.0)  # seconds to connect, seconds of silence
_CHUNK: Final = 2**14


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
    try:
        downloads.mkdir(parents=True, exist_ok=True)
        # Of two processes that want the same set, the second waits, and then finds it installed.
        with FileLock(downloads / f"{name}.lock"):
            if again or not has_published_set(name, home):  # another process may have brought it meanwhile
                install(_fetch(name, archive, downloads / name, on_progress), name, home)
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(
            f"cannot write to {home} ({error.strerror or error}); free some space, make it writable, or choose another "
            "folder with the environment variable JAXARC_DATA"
        ) from error
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
    # No hash: GitHub does not promise the bytes of its archives. read_archive checks the digest of the tasks instead.
    store = pooch.create(
        path=folder,
        base_url="",
        registry={"archive.zip": None},
        urls={"archive.zip": archive.url},
        retry_if_failed=TRIES - 1,
    )
    pooch.get_logger().setLevel("WARNING")  # the caller's progress shows the rest
    try:
        file = store.fetch("archive.zip", downloader=cast(Any, _downloader(on_progress)))  # annotated as a processor
        return read_archive(Path(file), archive, name)
    except TaskFormatError as error:
        raise DownloadError(
            f"{name}: nothing was installed, {archive.url} gave something else ({error}); try again later, or update "
            "jaxarc if the set has moved on"
        ) from error
    except requests.RequestException as error:
        reason = _reason(error, archive.url)
        raise DownloadError(f"{name}: {reason}; run the command again, or {how_to_import(name)}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _downloader(on_progress: Progress | None) -> Callable[[str, str, pooch.Pooch], None]:
    def fetch(url: str, output_file: str, _: pooch.Pooch) -> None:
        # Without packing, the length that the server says is the length of the file. It is good for a progress bar, not
        # for the limit, which counts what has come.
        headers = {"Accept-Encoding": "identity"}
        with (
            requests.get(url, stream=True, timeout=TIMEOUTS, headers=headers) as response,
            Path(output_file).open("wb") as file,
        ):
            response.raise_for_status()
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else None
            done = 0
            for chunk in response.iter_content(_CHUNK):
                done += file.write(chunk)
                if done > MAX_BYTES:
                    raise DownloadError(f"{url} sends more than {MAX_BYTES} bytes, which no task set has")
                if on_progress is not None:
                    on_progress(done, total)

    return fetch


def _reason(error: requests.RequestException, url: str) -> str:
    host = urlsplit(url).netloc
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{url} answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.exceptions.ProxyError):
        return f"the proxy on the way to {host} cannot be reached (see HTTPS_PROXY and HTTP_PROXY)"
    if isinstance(error, requests.exceptions.SSLError):
        return f"{host} shows no certificate that this machine trusts"
    return f"{host} cannot be reached from here, or stops before all is sent ({TRIES} tries)"
