"""Time functions, with their results waited for; and record traces for TensorBoard, xprof or Perfetto."""

import contextlib
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32

from jaxarc.errors import JaxarcError


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


def profile_fn(fn: Callable[[Any], Any], x: Any, n_warmup: int = 3, n_runs: int = 10) -> Timing:
    """Time a function of one argument; every call is waited for.

    Several arguments go as one: ``profile_fn(lambda args: step(*args), (state, action))``.

    Args:
        fn: called with ``x``; it must not donate it, since it is passed again and again.
        x: its argument, any pytree.
        n_warmup: calls that are not timed, at least 0; with 0 the first run contains the compilation.
        n_runs: calls that are timed, at least 1.

    Raises:
        TypeError: ``fn`` is no function, or a number of calls is no int.
        ValueError: ``n_warmup`` or ``n_runs`` is too small.
    """
    if not callable(fn):
        raise TypeError(f"profile_fn: a function was expected, got {fn!r:.60}; pass it and then its argument")
    for name, count, least, default in (("n_warmup", n_warmup, 0, 3), ("n_runs", n_runs, 1, 10)):
        if not isinstance(count, int):
            raise TypeError(
                f"profile_fn: {name} must be an int, got {type(count).__name__}; several arguments of the function go "
                "as one, profile_fn(lambda args: fn(*args), (x, y))"
            )
        if count < least:
            raise ValueError(f"profile_fn: {name} must be at least {least}, got {count}; the default is {default}")
    # JAX returns before the device is done, so each call is waited for; the first one also compiles.
    for _ in range(n_warmup):
        jax.block_until_ready(fn(x))
    seconds = np.array([_seconds(fn, x) for _ in range(n_runs)])
    return Timing(
        mean=float(seconds.mean()),
        std=float(seconds.std()),
        min=float(seconds.min()),
        max=float(seconds.max()),
        median=float(np.median(seconds)),
    )


def benchmark_ops() -> OpsBenchmark:
    """Time the sum of squares of a ``(1000, 1000)`` array, operation by operation and compiled as one program.

    Prints the two means and their ratio, and returns them with their spread.
    """
    x = jax.random.normal(jax.random.key(0), (1000, 1000), jnp.float32)
    naive = profile_fn(_sum_of_squares, x)
    jitted = profile_fn(jax.jit(_sum_of_squares), x)
    speedup = naive["mean"] / jitted["mean"]
    lines = (f"Naive: {1e3 * naive['mean']:.3f} ms", f"JIT: {1e3 * jitted['mean']:.3f} ms", f"Speedup: {speedup:.1f} x")
    sys.stdout.write("\n".join(lines) + "\n")
    return OpsBenchmark(naive, jitted, speedup)


def _sum_of_squares(x: Float32[Array, "N M"]) -> Float32[Array, ""]:
    return jnp.sum(x**2)


def _seconds(fn: Callable[[Any], Any], x: Any) -> float:
    start = time.perf_counter()
    jax.block_until_ready(fn(x))
    return time.perf_counter() - start


class ProfilerBusyError(JaxarcError, RuntimeError):
    """The profiler, or the port of its server, is in use."""


@contextlib.contextmanager
def trace(folder: str | Path, *, python_calls: bool = False) -> Iterator[Path]:
    """Record a trace of the block into a folder; it is also stopped and written if the block raises.

    JAX works asynchronously: wait for the results inside the block (``jax.block_until_ready``), or they are missing.

    Args:
        folder: made when missing; each trace gets a folder of its own below ``plugins/profile``.
        python_calls: record every call of a Python function too, which slows the host down.

    Yields:
        The folder.

    Raises:
        ProfilerBusyError: a trace is running in this process.
        OSError: the folder cannot be made.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    # Python calls are left out by default: they make most of a trace, and slow down what is measured.
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = int(python_calls)
    jax.devices()  # starts the backend, so that the only RuntimeError left is the one below
    try:
        jax.profiler.start_trace(target, profiler_options=options)
    except RuntimeError as error:
        raise ProfilerBusyError(
            f"cannot start a trace into {target}: JAX records one trace per process, and another one is running "
            f"({error}); end its block, or call jax.profiler.stop_trace()"
        ) from error
    try:
        yield target
    finally:
        jax.profiler.stop_trace()


@contextlib.contextmanager
def profile_server(port: int = 9999) -> Iterator[int]:
    """Serve the profiler during the block, so that TensorBoard can record a trace at any time.

    The server listens on every network interface, without a password.

    Args:
        port: 1 .. 65535.

    Yields:
        The port.

    Raises:
        ValueError: there is no such port.
        ProfilerBusyError: this process serves already, or the port is in use.
    """
    if not 1 <= port <= 65535:
        raise ValueError(f"profile_server: port must be in 1 .. 65535, got {port}; the usual one is 9999")
    if not _is_free(port):  # JAX would log two lines and go on without a server
        raise ProfilerBusyError(
            f"profile_server: port {port} is in use; choose another one, or end the program that listens there"
        )
    try:
        server = jax.profiler.start_server(port)
    except ValueError as error:
        raise ProfilerBusyError(
            f"profile_server: cannot serve port {port}, because a process serves one port and this one serves already "
            f"({error}); end the other block, or call jax.profiler.stop_server()"
        ) from error
    try:
        yield port
    finally:
        jax.profiler.stop_server()
        del server  # the server lives as long as this object


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # closing connections of an earlier server are fine
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
