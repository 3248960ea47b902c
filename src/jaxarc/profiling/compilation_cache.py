"""Keep compiled programs on disk, so that the next process does not compile them again."""

from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache as jax_cache

from jaxarc.files import COMPILED_BYTES, compiled_folder


def enable_compilation_cache(directory: str | Path | None = None) -> Path:
    """Switch on JAX's persistent compilation cache for every program, however small or quickly compiled.

    Commands of ``jaxarc`` do so by themselves. Works before and after JAX was used; programs that are compiled already
    are not written. JAX runs the programs in the folder, so it has to be private.

    Args:
        directory: a local folder, made when missing with mode 0700; ``jaxarc/compiled`` in the user's cache folder
            (``XDG_CACHE_HOME``, else ``~/.cache``) when left out. It is kept below 1 GiB.

    Returns:
        The folder.

    Raises:
        CacheFolderError: the folder belongs to another user, or others may write into it.
        OSError: it cannot be made or written, or is no folder.
    """
    folder = compiled_folder(directory)
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", COMPILED_BYTES)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)  # -1: a backend may not raise it either
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)  # 1 s by default
    jax_cache.reset_cache()  # otherwise a process that has compiled keeps its first folder, or none
    return folder
