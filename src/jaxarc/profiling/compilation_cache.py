"""Keep compiled programs on disk, so that the next process does not compile them again."""

import os
import stat
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache as jax_cache

from jaxarc.errors import JaxarcError


class CacheFolderError(JaxarcError, PermissionError):
    """Other users can write programs into the cache folder."""


def enable_compilation_cache(directory: str | Path | None = None) -> Path:
    """Switch on JAX's persistent compilation cache for every program, however small or quickly compiled.

    Works before and after JAX was used; programs that are compiled already are not written. JAX runs the programs in
    the folder, so it has to be private.

    Args:
        directory: a local folder, made when missing with mode 0700; ``jaxarc/compiled`` in the user's cache folder
            (``XDG_CACHE_HOME``, else ``~/.cache``) when left out.

    Returns:
        The folder.

    Raises:
        CacheFolderError: the folder belongs to another user, or others may write into it.
        OSError: it cannot be made, or is no folder.
    """
    folder = Path(os.path.abspath(_default_folder() if directory is None else Path(directory).expanduser()))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(folder)
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)  # -1: a backend may not raise it either
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)  # 1 s by default
    jax_cache.reset_cache()  # otherwise a process that has compiled keeps its first folder, or none
    return folder


def _default_folder() -> Path:
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "jaxarc" / "compiled"


def _check_private(folder: Path) -> None:
    if os.name != "posix":
        return
    status = folder.stat()
    rule = "JAX runs the programs in it, so it must belong to you and only you may write into it"
    if status.st_uid != os.geteuid():
        raise CacheFolderError(
            f"compilation cache {folder} belongs to user {status.st_uid}, and you are user {os.geteuid()}; {rule}; "
            "name a folder of your own"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise CacheFolderError(
            f"compilation cache {folder} has mode {mode:04o}; {rule}; run chmod 700 on it after making sure that all "
            "files in it are yours, or name another folder"
        )
