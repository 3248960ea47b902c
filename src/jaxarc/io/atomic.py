"""Write a file whole: to a temporary name beside it, flushed to the disk, then renamed."""

import os
import secrets
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
    try:
        with name.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    finally:
        name.unlink(missing_ok=True)  # gone already when the rename succeeded
    _sync_folder(target.parent)
    return target


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
