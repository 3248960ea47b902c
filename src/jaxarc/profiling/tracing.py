"""Record traces of the devices and the host, for TensorBoard, xprof or Perfetto."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import jax

from jaxarc.errors import JaxarcError


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
