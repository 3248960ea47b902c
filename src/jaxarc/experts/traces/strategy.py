"""Which of the strategies of recording is possible here."""

import importlib.util
from typing import Final, Literal, TypeAlias

Strategy: TypeAlias = Literal["auto", "vmap", "pmap", "sequential"]
STRATEGIES: Final = ("auto", "vmap", "pmap", "sequential")


def choose_strategy(parallel_strategy: str) -> str:
    """Return the strategy that ``auto`` stands for, and any other as it is when it is possible here.

    Raises:
        ValueError: there is no such strategy.
        ImportError: it needs JAX, which is not installed.
        RuntimeError: it needs more devices.
    """
    if parallel_strategy not in STRATEGIES:
        raise ValueError(
            f"Invalid parallelization strategy: {parallel_strategy!r}\n"
            "  Valid options: 'auto', 'vmap', 'pmap', 'sequential'"
        )
    if parallel_strategy == "sequential":
        return parallel_strategy
    if not _has_jax():
        if parallel_strategy == "auto":
            return "sequential"
        raise ImportError(
            f"Cannot use strategy={parallel_strategy!r}: JAX not installed\n"
            "  Install JAX: pip install jax jaxlib\n"
            "  Or use: strategy='sequential' or strategy='auto'"
        )
    import jax

    num_devices = jax.local_device_count()
    if parallel_strategy == "auto":
        return "pmap" if num_devices >= 2 else "vmap"
    if parallel_strategy == "pmap" and num_devices < 2:
        raise RuntimeError(
            f"Cannot use strategy='pmap': only {num_devices} device available\n"
            "  pmap requires 2+ devices (multi-GPU or distributed cluster)\n"
            "  Use: strategy='vmap' or strategy='auto'"
        )
    return parallel_strategy


def _has_jax() -> bool:
    try:
        return importlib.util.find_spec("jax") is not None
    except ImportError:  # import hooks may refuse it so
        return False
