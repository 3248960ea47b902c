"""How long JAX takes to hand an index to the host, by each of its ways; the expert's own work comes on top.

``python benchmarks/callbacks.py`` prints microseconds a unit and the ratio to ``pure_callback``, as medians of rounds
in turn. It compiles a few lines of C++ for the row of the FFI.
"""

import argparse
import ctypes
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback
from rich.console import Console
from rich.table import Table

from jaxarc.native.library import find_compiler

_COUNT: Final = 256  # units of a call
_BASE: Final = "pure_callback, one call a unit"  # what traces are recorded by
_ECHO: Final = """
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
static ffi::Error Echo(ffi::Buffer<ffi::S32> in, ffi::ResultBuffer<ffi::S32> out) {
  for (size_t i = 0; i < in.element_count(); ++i) out->typed_data()[i] = in.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    echo, Echo, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::S32>>().Ret<ffi::Buffer<ffi::S32>>());
"""


def ways() -> dict[str, Callable[[Any], Any]]:
    """Return for each way a compiled function that hands out the indices, int32[N], and returns them."""
    scalar = jax.ShapeDtypeStruct((), jnp.int32)
    host = lambda index: np.asarray(index, np.int32)

    def buffers(_context: Any, out: Any, index: Any) -> None:
        np.asarray(out)[...] = np.asarray(index)

    pure = lambda method: lambda index: jax.pure_callback(host, scalar, index, vmap_method=method)
    buffer = lambda method: buffer_callback(buffers, scalar, vmap_method=method)
    foreign = lambda method: jax.ffi.ffi_call("callbacks_echo", scalar, vmap_method=method)
    one_by_one: dict[str, Callable[[Any], Any]] = {
        _BASE: pure("sequential"),
        "io_callback, one call a unit": lambda index: io_callback(host, scalar, index),
        "buffer_callback, one call a unit": buffer("sequential"),
        "FFI, C++ without Python, one call a unit": foreign("sequential"),
        "pure_callback, one call for all": pure("broadcast_all"),
        "buffer_callback, one call for all": buffer("broadcast_all"),
        "FFI, C++ without Python, one call for all": foreign("broadcast_all"),
    }
    loop = lambda indices: np.array([host(index) for index in indices])
    return {"a loop in Python": loop, **{name: jax.jit(jax.vmap(call)) for name, call in one_by_one.items()}}


def register_echo(folder: Path) -> None:
    """Build the handler of the FFI, and register it with JAX."""
    source, library = folder / "echo.cc", folder / "echo.so"
    source.write_text(_ECHO)
    flags = ["-std=c++17", "-w", "-O2", "-shared", "-fPIC", f"-I{jax.ffi.include_dir()}"]
    subprocess.run([str(find_compiler()), *flags, str(source), "-o", str(library)], check=True)
    handler = ctypes.CDLL(str(library)).echo
    jax.ffi.register_ffi_target("callbacks_echo", jax.ffi.pycapsule(handler), platform="cpu")


def measure(rounds: int) -> dict[str, float]:
    """Return microseconds a unit of each way, medians of rounds in which all take turns."""
    calls = ways()
    indices = np.arange(_COUNT, dtype=np.int32)
    found: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            returned = np.asarray(call(indices))
            seconds = time.perf_counter() - start
            assert (returned == indices).all(), name
            if number:  # the first round compiles
                found.setdefault(name, []).append(seconds / _COUNT * 1e6)
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        register_echo(Path(folder))
        found = measure(rounds)
    table = Table("way", "us a unit", "of pure_callback")
    for name, microseconds in found.items():
        table.add_row(name, f"{microseconds:.2f}", f"{microseconds / found[_BASE]:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
