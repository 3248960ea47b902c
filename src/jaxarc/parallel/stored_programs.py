"""Traced programs on disk, which a later process compiles, or finds compiled, without tracing them again.

JAX's persistent cache finds a compiled program by its text, so every process traces and lowers a function before it can
ask. Here the text itself is found, by all that it depends on: the shapes of the arguments, the static ones, the code of
jaxarc, the versions of the libraries and the options of JAX. Texts are kept beside the compiled programs, in the folder
of that cache, which removes the least recently used of both.
"""

import dataclasses
import functools
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, Final, NamedTuple

import equinox as eqx
import jax
from jax import export
from jaxtyping import PyTree

from jaxarc.envs.compilation import choose_executor
from jaxarc.files import code_digest, write_whole
from jaxarc.fusion import compiles_for_cpu, compiles_triton
from jaxarc.native.call import exports_for_this_machine
from jaxarc.native.library import native_library
from jaxarc.utils.error_handling import EQUINOX_MODE, JAXErrorHandler

_LIBRARIES: Final = ("jax", "jaxlib", "numpy", "equinox", "optax", "jaxtyping")  # with jaxarc, all that is traced
_TRACED: Final = frozenset({"jaxarc", *_LIBRARIES})
_WHETHER_KEPT: Final = (
    "compilation_cache_dir",
    "enable_compilation_cache",
    "persistent_cache_min_compile_time_secs",
)
_DIGEST_BYTES: Final = 32
_programs: "dict[Path, LoweredProgram]" = {}  # of this process


class StoredProgram(NamedTuple):
    """A compiled function of pytrees of arrays."""

    compiled: Any  # of the leaves of the arguments
    out_tree: Any  # the structure of its result

    def __call__(self, *args: PyTree[jax.Array]) -> Any:
        return jax.tree.unflatten(self.out_tree, self.compiled(*jax.tree.leaves(args)))

    def memory_analysis(self) -> Any:
        """Return the bytes that the program takes, as XLA says; see :func:`jaxarc.parallel.program_memory`."""
        return self.compiled.memory_analysis()


class LoweredProgram(NamedTuple):
    """A program that is still to be compiled, from any thread."""

    lowered: jax.stages.Lowered
    out_tree: Any

    def compile(self) -> StoredProgram:
        return StoredProgram(self.lowered.compile(), self.out_tree)


def trace_or_load(
    function: Callable[..., Any],
    args: Sequence[PyTree[Any]],
    static: Sequence[Any],
    results: Sequence[type],
    path: Path,
    num_donated: int = 0,
) -> LoweredProgram:
    """Load the text of ``function(*args, *static)`` from its file, or trace the function and write the file.

    Args:
        function: of a module, and pure; what it computes depends on its arguments alone.
        args: pytrees of arrays, or of their shapes.
        static: all other arguments.
        results: the named tuples of its result; other parts of it have the structure of an argument.
        path: as :func:`stored_path` returns it.
        num_donated: leading arguments whose memory the program takes for its results.
    """
    if path in _programs:
        return _programs[path]
    leaves, tree = jax.tree.flatten(tuple(args))
    donated = tuple(range(len(jax.tree.leaves(tuple(args[:num_donated])))))
    out: list[Any] = []

    # Of leaves to leaves: the structures of modules cannot be written to a file.
    def flat(*leaves: jax.Array) -> list[jax.Array]:
        result = function(*jax.tree.unflatten(tree, leaves), *static)
        out[:] = [jax.tree.map(lambda _: 0, result)]
        return jax.tree.leaves(result)

    flat.__name__ = function.__name__
    # A new process finds the text on disk, and compiles it without tracing. Where there is none, the function is traced
    # and written; where it cannot be written, it is lowered as jit would lower it.
    kept = _read(path)
    if kept is None:
        try:
            known = [export.DisabledSafetyCheck.custom_call(target) for target in _native_targets()]
            with exports_for_this_machine():
                exported = export.export(jax.jit(flat), disabled_checks=known)(*leaves)
        except (NotImplementedError, ValueError):  # it calls back to Python, which no file can hold
            return LoweredProgram(jax.jit(flat, donate_argnums=donated).lower(*leaves), jax.tree.structure(out[0]))
        shape = _shape_of(out[0], args)
        _write(path, shape, exported.serialize())
    else:
        shape, content = kept
        exported = export.deserialize(content)

    def call(*leaves: jax.Array) -> Any:
        return exported.call(*leaves)

    call.__name__ = function.__name__
    named = {result.__name__: result for result in results}
    out_tree = jax.tree.structure(_of_shape(shape, args, named))
    _programs[path] = LoweredProgram(jax.jit(call, donate_argnums=donated).lower(*leaves), out_tree)
    return _programs[path]


def stored_path(function: Callable[..., Any], args: Sequence[PyTree[Any]], static: Sequence[Any]) -> Path | None:
    """Return the file of a program; None where it cannot be kept.

    That is: without a folder for every program, however quickly compiled, without the library that writes texts, with
    several devices or processes, and with arguments whose classes are of other packages, such as the agent of a user,
    which may change with no version.
    """
    options = {name: getattr(jax.config, f"jax_{name}") for name in _WHETHER_KEPT}
    folder = options["compilation_cache_dir"]
    is_wanted = options["enable_compilation_cache"] and options["persistent_cache_min_compile_time_secs"] == 0
    if not (folder and is_wanted) or jax.device_count() > 1 or find_spec("flatbuffers") is None:
        return None
    try:
        parts = [*_describe([list(args), list(static)]), _code_of(function), *_setup()]
    except _NotDescribedError:
        return None
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return Path(folder) / f"jaxarc_{function.__name__}-{digest}-cache"


class _NotDescribedError(TypeError):
    """No text says all that a program depends on."""


def _describe(value: Any) -> Iterator[str]:
    """Yield words that are equal for equal values, in whatever process; of arrays shape and dtype alone.

    Raises:
        _NotDescribedError: a value is of a class that no version covers.
    """
    if eqx.is_array(value) or isinstance(value, jax.ShapeDtypeStruct):
        yield f"{value.dtype}{value.shape}{value.weak_type}"
    elif isinstance(value, str | int | float | None):
        yield f"{_code_of(type(value))} {value!r}"
    elif isinstance(value, type | FunctionType):
        yield _code_of(value)
    elif dataclasses.is_dataclass(value):
        yield _code_of(type(value))
        for field in dataclasses.fields(value):
            yield field.name
            yield from _describe(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield from _describe([type(value), *value.items()])
    elif isinstance(value, tuple | list | range | frozenset):
        # The count separates ((1, 2), 3) from ((1,), 2, 3). Sets have no order that is equal in all processes.
        yield f"{_code_of(type(value))} of {len(value)}"
        for part in sorted(value) if isinstance(value, frozenset) else value:
            yield from _describe(part)
    else:
        raise _NotDescribedError(type(value).__qualname__)


def _code_of(named: Any) -> str:
    """Name a class, or a function of a module."""
    name = f"{named.__module__}.{named.__qualname__}"
    if named.__module__.partition(".")[0] not in {*_TRACED, "builtins"} or "<" in name:
        raise _NotDescribedError(name)
    return name


def _setup() -> list[str]:
    """Describe what the text of a program depends on besides its function and its arguments."""
    # Options are read one by one, so that a ``with`` block of JAX counts too; the folder itself is among them: no harm.
    options = dict(jax.config.values)
    options |= {name: getattr(jax.config, name) for name in options if name in dir(jax.config)}
    errors = [JAXErrorHandler.get_error_mode(), EQUINOX_MODE]
    return [*map(str, sorted(options.items())), jax.default_backend(), *errors, *_installed(), *_native_targets()]


def _native_targets() -> list[str]:
    """Return what steps call beside XLA: Triton, or our library, loaded here, by names with a digest of its code."""
    if not compiles_for_cpu():
        return ["__gpu$xla.gpu.triton"] if compiles_triton() else []
    library = native_library() if choose_executor("auto") == "native" else None
    return [] if library is None else list(library.targets.values())


@functools.cache
def _installed() -> list[str]:
    return [sys.version, code_digest(), *(version(name) for name in _LIBRARIES)]


def _shape_of(result: Any, args: Sequence[Any]) -> Any:
    """Describe the structure of a result in JSON; parts of an argument's structure by its number.

    A step that returns its first argument, the new states, beside a named tuple ``Progress`` of two arrays has the
    description ``["tuple", 0, ["Progress", "array", "array"]]``. :func:`_of_shape` reads it.
    """
    if result is None or isinstance(result, int):
        return None if result is None else "array"
    if isinstance(result, tuple):
        return [type(result).__name__, *(_shape_of(part, args) for part in result)]
    return [jax.tree.structure(arg) for arg in args].index(jax.tree.structure(result))


def _of_shape(shape: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    # Zeros stand for arrays: only the structure of what is returned is read. A class is looked up by its name among the
    # ones that the caller expects, so no file can name any other.
    if shape is None or shape == "array":
        return None if shape is None else 0
    if isinstance(shape, int):
        return args[shape]
    name, *parts = shape
    values = [_of_shape(part, args, named) for part in parts]
    return named[name](*values) if name in named else tuple(values)


def _write(path: Path, shape: Any, text: bytearray) -> None:
    content = json.dumps(shape).encode() + b"\n" + text
    with suppress(OSError):  # a full disk costs the next process time, and no more
        _note_use(path)
        write_whole(path, hashlib.sha256(content).digest() + content, flush=False)


def _read(path: Path) -> tuple[Any, bytearray] | None:
    """Return the structure of a result and the text of a program; None where there is none, or it is damaged."""
    try:
        whole = path.read_bytes()
        _note_use(path)
    except OSError:
        return None
    digest = whole[:_DIGEST_BYTES]
    content = whole[_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        return None
    shape, _, text = content.partition(b"\n")
    return json.loads(shape), bytearray(text)


def _note_use(path: Path) -> None:
    """Write when a program was used last, as JAX's cache does, which removes the oldest."""
    time_of_use = path.with_name(f"{path.name.removesuffix('-cache')}-atime")
    write_whole(time_of_use, time.time_ns().to_bytes(8, "little"), flush=False)
