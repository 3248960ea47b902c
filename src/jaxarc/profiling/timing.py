"""Time functions, with their results waited for."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32


class Timing(TypedDict):
    """Statistics of the measured runs, in seconds; ``std`` divides by the number of runs (ddof 0)."""

    mean: float
    std: float
    min: float
    max: float
    median: float


class OpsBenchmark(NamedTuple):
    """Times of one computation, run operation by operation and compiled; ``speedup`` is the ratio of the means."""

    naive: Timing
    jitted: Timing
    speedup: float


def profile_fn(fn: Callable[..., Any], *args: Any, n_warmup: int = 3, n_runs: int = 10) -> Timing:
    """Time a function; every call is waited for.

    Args:
        fn: called with ``args``; it must not donate them, since they are passed again and again.
        *args: its arguments.
        n_warmup: calls that are not timed, at least 0; with 0 the first run contains the compilation.
        n_runs: calls that are timed, at least 1.

    Raises:
        ValueError: ``n_warmup`` or ``n_runs`` is too small.
    """
    if not callable(fn):
        raise TypeError(f"profile_fn: a function was expected, got {fn!r:.60}; pass it and then its arguments")
    if n_warmup < 0:
        raise ValueError(f"profile_fn: n_warmup must be at least 0, got {n_warmup}; the default is 3")
    if n_runs < 1:
        raise ValueError(f"profile_fn: n_runs must be at least 1, got {n_runs}; the default is 10")
    # JAX returns before the device is done, so each call is waited for; the first one also compiles.
    for _ in range(n_warmup):
        jax.block_until_ready(fn(*args))
    seconds = np.array([_seconds(fn, args) for _ in range(n_runs)])
    return Timing(
        mean=float(seconds.mean()),
        std=float(seconds.std()),
        min=float(seconds.min()),
        max=float(seconds.max()),
        median=float(np.median(seconds)),
    )


def benchmark_ops() -> OpsBenchmark:
    """Time the sum of squares of a ``(1000, 1000)`` array, operation by operation and compiled as one program."""
    x = jax.random.normal(jax.random.key(0), (1000, 1000), jnp.float32)
    naive = profile_fn(_sum_of_squares, x)
    jitted = profile_fn(jax.jit(_sum_of_squares), x)
    return OpsBenchmark(naive, jitted, naive["mean"] / jitted["mean"])


def _sum_of_squares(x: Float32[Array, "N M"]) -> Float32[Array, ""]:
    return jnp.sum(x**2)


def _seconds(fn: Callable[..., Any], args: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(fn(*args))
    return time.perf_counter() - start
