"""Write a file whole: to a temporary name beside it, flushed to the disk, then renamed."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_whole(path: str | Path, content: bytes) -> Path:
    """Write ``content`` so that a reader finds either the old file or the whole new one, even after a crash.

    Args:
        path: where to; missing folders are made.
        content: the bytes.

    Returns:
        The path.

    Raises:
        OSError: the folder cannot be written, or the disk is full; the old file is then untouched.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Files of tempfile are their owner's alone, and to ask for the umask is to change it, in all threads at once.
    name = target.parent / f".{target.name}.{secrets.token_hex(8)}.part"
    with names_file(target):
        try:
            with name.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
        finally:
            with suppress(OSError):  # there is none, or the disk says what is wrong above
                name.unlink()
        _sync_folder(target.parent)
    return target


@contextmanager
def names_file(path: Path) -> Iterator[None]:
    """Let an error of the system name this file: it names none, or a temporary one, when writing fails.

    Raises:
        OSError: the same error, with the file.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # an error of ours, which says all
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
