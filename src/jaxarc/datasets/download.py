"""Download a published task set into the data folder: only when asked, checked, and continued after a cut."""

import difflib
import errno
import hashlib
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

import pooch
from filelock import FileLock

from jaxarc.datasets.archive_reader import read_archive
from jaxarc.datasets.archives import ARCHIVES, Archive
from jaxarc.datasets.installed import data_folder, has_published_set, how_to_import, install, installed_path
from jaxarc.datasets.task_set import TaskSet
from jaxarc.datasets.transfer import DownloadError, Progress, Transfer

__all__ = ["DownloadError", "Progress", "download"]

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def download(name: str, on_progress: Progress | None = None, folder: Path | None = None, again: bool = False) -> Path:
    """Fetch a published task set, check that it is the pinned one, and install it; return the installed file.

    One that is there already is not fetched. Of several processes one downloads and the others wait for it. A download
    that was cut goes on where it stopped, in this call and in a later one.

    Args:
        name: one of :data:`jaxarc.datasets.archives.ARCHIVES`.
        on_progress: called with the bytes done and the bytes in all, None where unknown.
        folder: instead of :func:`jaxarc.datasets.installed.data_folder`.
        again: fetch it even if it is there.

    Raises:
        DownloadError: an ``OSError``; no such set, no connection, a refusal, other content than the pinned one, or the
            data folder is full or cannot be written. Says what to do. What was installed before stays.
    """
    archive = _find(name)
    home = data_folder() if folder is None else folder
    downloads = home / "downloads"
    if not again and has_published_set(name, home):  # before anything is written: the folder may be one to read only
        with suppress(OSError):  # a process that was killed right after installing has left the archive
            _remove_archive(_zip_path(name, archive, downloads))
        return installed_path(name, home)
    with _named_disk_errors(home):
        downloads.mkdir(parents=True, exist_ok=True)
        with FileLock(downloads / f"{name}.lock"):
            if again or not has_published_set(name, home):  # another process may have brought it meanwhile
                install(_fetch(name, archive, downloads, on_progress), name, home)
                _remove_archive(_zip_path(name, archive, downloads))
    return installed_path(name, home)


def _find(name: str) -> Archive:
    if name in ARCHIVES:
        return ARCHIVES[name]
    near = difflib.get_close_matches(name.split("/")[0], ARCHIVES, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise DownloadError(f"no task set {name!r} to download; {hint}There are: {', '.join(ARCHIVES)}")


def _fetch(
    name: str, archive: Archive, downloads: Path, on_progress: Progress | None, may_repeat: bool = True
) -> TaskSet:
    """Return the tasks of the archive; pieces that do not fit together are fetched anew, once."""
    file = _zip_path(name, archive, downloads)
    transfer = Transfer(file.with_name(file.name + ".part"), on_progress)
    begun = file.exists() or transfer.part.exists()
    try:
        _retrieve(archive, file, transfer)
        return read_archive(file, archive, name)
    except DownloadError as error:
        raise DownloadError(f"{name}: {error}; run the command again, or {how_to_import(name)}") from error
    except ValueError as error:  # from pooch, other bytes than promised; from the reader, a TaskFormatError
        file.unlink(missing_ok=True)
        transfer.forget()
        if may_repeat and (begun or transfer.resumed):
            return _fetch(name, archive, downloads, on_progress, may_repeat=False)
        raise DownloadError(
            f"{name}: nothing was installed, {archive.url} gave something else ({error}); try again later, or update "
            "jaxarc if the set has moved on"
        ) from error
    except OSError as error:
        needed = f", the archive has {transfer.total / 1e6:.1f} MB" if transfer.total else ""
        raise OSError(error.errno, f"{error.strerror}{needed}") from error


def _retrieve(archive: Archive, file: Path, transfer: Transfer) -> None:
    unchecked = _unchecked(file)
    shutil.rmtree(unchecked, ignore_errors=True)  # of a process that was killed
    if file.exists():
        return
    try:
        with _quiet_pooch():
            pooch.retrieve(
                archive.url,
                known_hash=f"sha256:{archive.sha256}" if archive.sha256 else None,
                fname=file.name,
                path=unchecked,
                downloader=cast(Any, transfer),  # pooch annotates a downloader as a processor
            )
        os.replace(unchecked / file.name, file)
    finally:
        shutil.rmtree(unchecked, ignore_errors=True)


def _unchecked(file: Path) -> Path:
    """Name the folder in which pooch puts what it has not checked yet, under names of its own."""
    return file.with_name(file.name + ".unchecked")


def _remove_archive(file: Path) -> None:
    shutil.rmtree(_unchecked(file), ignore_errors=True)
    file.unlink(missing_ok=True)


def _zip_path(name: str, archive: Archive, downloads: Path) -> Path:
    """Name the file by its URL too, so that a part is never continued with another version of the set."""
    return downloads / f"{name}-{hashlib.sha256(archive.url.encode()).hexdigest()[:8]}.zip"


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Keep pooch from telling on stderr what the caller's progress shows."""
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
        if error.errno in _FULL:
            advice = "free some space and run the command again, it goes on where it stopped; or"
        else:
            advice = "make it writable, or"
        raise DownloadError(
            f"cannot write to {home} ({error.strerror or error}); {advice} choose another folder with the environment "
            "variable JAXARC_DATA"
        ) from error
