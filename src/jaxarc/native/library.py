"""Libraries of C++ kernels: shipped in a wheel or built at first use, loaded once in a process.

The environment's kernels are one library, which XLA calls; those of the program search are another one, without JAX.

A wheel of a platform holds each of them in ``lib``, compiled for one or two levels of the processor; hatch_build.py
makes it. The name of the file holds a digest of the sources, so sources that were changed have none. A checkout and
the pure wheel have none either, nor has an older processor. Then the library is built, and kept in the user's cache.

The name of a built file holds two digests of what the machine code depends on: of the sources, the flags, the version
of jaxlib and the processor, and of the compiler. Where no compiler can be had or it fails, a library of another one is
loaded. The last 32 bytes of the file are the digest of those before, so a damaged file is noticed before it is loaded,
and built again. It is written whole under another name and then renamed: processes that start together either find it
or build it, one after the other where the folder can be locked. Whatever fails, the process goes on without.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from jaxarc.errors import JaxarcError, JaxarcWarning, visible
from jaxarc.files import private_folder, user_cache, user_path, write_whole

BUILD_SECONDS: Final = 120  # a build that takes longer is given up, and so is the wait for that of another process
# Sums of products are rounded as they are written; and a newer compiler may warn of more.
FLAGS: Final = ("-std=c++17", "-O3", "-march=native", "-fPIC", "-shared", "-ffp-contract=off", "-w")
_COMPILERS: Final = ("c++", "g++", "clang++")
_SOURCES: Final = Path(__file__).resolve().parent
SEARCH_SOURCES: Final = _SOURCES / "search"
_SHIPPED: Final = _SOURCES / "lib"
# Functions of the library: jaxarc_edit and so on.
_KERNELS: Final = ("edit", "step", "reset", "step_and_reset", "sample_corners", "sample_masks", "fold_in")
_HOST_FUNCTIONS: Final = ("host_step", "host_reset")  # which no program of XLA calls; see host.py
_DIGEST_BYTES: Final = hashlib.sha256().digest_size
_DIGITS: Final = 12  # of a digest in a name
_FLAGS_OF_V3: Final = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})  # as Linux names them
_FLAGS_OF_V4: Final = _FLAGS_OF_V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_AVX2_OF_WINDOWS: Final = 40  # PF_AVX2_INSTRUCTIONS_AVAILABLE


class NativeLibraryError(JaxarcError, RuntimeError):
    """The library cannot be built or loaded; the message says why in a line."""


class NativeLibraryWarning(JaxarcWarning):
    """The library of a wheel is not used, or none is, and what runs in its place is slower."""


class NativeLibrary(NamedTuple):
    """A library that is loaded, and whose kernels XLA knows."""

    path: Path
    targets: dict[str, str]  # kernel -> its name for XLA, with the digest, so that a stored program finds its own
    functions: dict[str, Any]  # of ctypes


@functools.cache
def native_library() -> NativeLibrary | None:
    """Load the library, and build it before if it is not there; None, with one warning, where that fails."""
    try:
        path, functions = load_library(check=_register)
    except (JaxarcError, OSError, subprocess.SubprocessError) as error:
        # The line of code that asked is nothing that the user could change, so the warning names a folder in its place.
        warnings.warn_explicit(
            f"steps run on the executor of XLA, which is slower: {_in_one_line(error)}; set CXX to a C++ compiler and "
            "JAXARC_CACHE to a folder of your own, or environment.executor to 'xla'",
            NativeLibraryWarning,
            filename=str(_SOURCES),
            lineno=1,
        )
        return None
    return NativeLibrary(path, _targets(path), {name: functions[name] for name in _HOST_FUNCTIONS})


def load_library(
    sources: Path | None = None,
    functions: tuple[str, ...] = (*_KERNELS, *_HOST_FUNCTIONS),
    check: Callable[[Path, dict[str, Any]], None] = lambda path, loaded: None,
) -> tuple[Path, dict[str, Any]]:
    """Load the library of the wheel, else the one in the cache, after building it there if need be.

    A build says so in a line on stderr. Where it fails, a library that another compiler built is loaded. A warning says
    that the wheel's library does not load.

    Args:
        sources: folder; that of the environment's kernels by default.
        functions: their names, without the prefix ``jaxarc_``.
        check: raises NativeLibraryError where the library cannot be used.

    Returns:
        The path, and the functions by their names.

    Raises:
        NativeLibraryError: there is no compiler, or it fails, or what it built cannot be loaded; or other sources were
            installed since this process began.
        JaxarcError: others may write into the cache folder.
        OSError: the cache folder cannot be written.
        subprocess.SubprocessError: the compiler takes too long.
    """
    sources = sources or _SOURCES
    if _text_digest(sources) != _AT_IMPORT.get(sources, _text_digest(sources)):
        raise NativeLibraryError(f"{sources} has changed since this process began; start it again")
    shipped = _shipped_library(sources)
    fault = ""
    if shipped is not None:
        try:
            return shipped, _functions_of(shipped, functions, check)
        except NativeLibraryError as error:
            fault = f"{error}; install jaxarc-rl for this machine again, in a folder from which libraries may be loaded"
    try:
        path = _cached_library(sources)
        loaded = _functions_of(path, functions, check)
    except (JaxarcError, OSError, subprocess.SubprocessError) as error:
        if fault:
            raise NativeLibraryError(f"{fault}; {_in_one_line(error)}") from error
        raise
    if fault:
        warnings.warn_explicit(f"{path} takes its place: {fault}", NativeLibraryWarning, str(_SOURCES), lineno=1)
    return path, loaded


def library_stem(sources: Path, level: str) -> str:
    """Name the file of a wheel, without its ending, that these sources make for a level of processors."""
    return f"jaxarc-{_text_digest(sources)}-{level}"


def _shipped_library(sources: Path) -> Path | None:
    """Return the path of the wheel's library for this processor; None where there is none."""
    found = (path for level in _levels() for path in _SHIPPED.glob(f"{library_stem(sources, level)}.*"))
    return next(found, None)


def _levels() -> list[str]:
    """Name the levels of processors whose machine code runs here, the fastest first."""
    machine = platform.machine().lower()
    if machine in ("arm64", "aarch64"):
        return ["aarch64"]
    if machine not in ("x86_64", "amd64"):
        return []
    if sys.platform == "win32":
        return ["x86_64_v3"] if ctypes.windll.kernel32.IsProcessorFeaturePresent(_AVX2_OF_WINDOWS) else []
    if sys.platform == "darwin":
        value, size = ctypes.c_int(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
        ctypes.CDLL(None).sysctlbyname(b"hw.optional.avx2_0", ctypes.byref(value), ctypes.byref(size), None, 0)
        return ["x86_64_v3"] if value.value else []
    flags = set(_cpuinfo().get("flags", "").split())
    levels = {"x86_64_v4": _FLAGS_OF_V4, "x86_64_v3": _FLAGS_OF_V3}
    return [level for level, needed in levels.items() if needed <= flags]


def _cached_library(sources: Path) -> Path:
    """Return the path of the library of this compiler, after building it if need be, or of another compiler."""
    folder = cache_folder()
    digest = _sources_digest(sources)
    try:
        path = _built(find_compiler(), sources, folder, digest)
    except (JaxarcError, OSError, subprocess.SubprocessError):
        others = [path for path in folder.glob(f"jaxarc-{digest}-*.so") if is_sound(path)]
        if not others:
            raise
        path = max(others, key=lambda path: path.stat().st_mtime_ns)
    private_folder(folder)
    return path


def _functions_of(path: Path, names: tuple[str, ...], check: Callable[[Path, dict[str, Any]], None]) -> dict[str, Any]:
    try:
        loaded = ctypes.CDLL(str(path))
        functions = {name: loaded[f"jaxarc_{name}"] for name in names}
    except (OSError, AttributeError) as error:
        why = _in_one_line(error).removeprefix(f"{path}: ")
        raise NativeLibraryError(f"{path} cannot be loaded: {why}") from error
    check(path, functions)
    return functions


def _targets(path: Path) -> dict[str, str]:
    return {kernel: f"{path.stem}-{kernel}" for kernel in _KERNELS}


def _register(path: Path, functions: dict[str, Any]) -> None:
    """Make the kernels known to XLA, which refuses those of an interface that it does not support."""
    import jax  # only this library needs it

    with suppress(RuntimeError):  # no CPU is among the platforms; where one is, XLA answers at once, and not later
        jax.devices("cpu")
    for kernel, target in _targets(path).items():
        try:
            jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(functions[kernel]), platform="cpu")
        except jax.errors.JaxRuntimeError as error:
            raise NativeLibraryError(f"{path} is refused: {_in_one_line(error)}") from error


def _built(compiler: tuple[str, ...], sources: Path, folder: Path, digest: str) -> Path:
    """Return the path of the library of a compiler, after building it if need be."""
    path = folder / f"jaxarc-{digest}-{_compiler_digest(compiler)}.so"
    if not is_sound(path):
        private_folder(folder)
        with ExitStack() as stack:
            _lock(stack, folder)
            if not is_sound(path):  # nobody built it while this process waited
                build(compiler, path, sources)
    return path


def cache_folder() -> Path:
    """Return the folder of libraries: ``native`` in ``$JAXARC_CACHE``, else in the user's cache folder."""
    chosen = os.environ.get("JAXARC_CACHE")
    return user_path(chosen).absolute() / "native" if chosen else user_cache("native")


def find_compiler() -> tuple[str, ...]:
    """Return the words that call the C++ compiler: those of ``$CXX``, else the first of c++, g++ and clang++.

    ``CXX="ccache g++"`` and ``CXX="g++ -m64"`` are two words; the path of a program may have spaces.

    Raises:
        NativeLibraryError: there is none.
    """
    chosen = os.environ.get("CXX", "").strip()
    if not chosen:
        found = next((name for name in _COMPILERS if shutil.which(name)), None)
        if found is None:
            names = ", ".join(_COMPILERS)
            raise NativeLibraryError(f"no C++ compiler is installed, none of {names}; install g++ or clang++")
        return (found,)
    with suppress(ValueError):  # a quotation mark without its second one
        words = (chosen,) if shutil.which(chosen) else tuple(shlex.split(chosen, posix=os.name == "posix"))
        if words and shutil.which(words[0]):
            return words
    raise NativeLibraryError(f"$CXX is {chosen!r}, and no such program is found; name one, such as CXX=g++")


def _sources_digest(sources: Path) -> str:
    """Return a digest of all that the machine code depends on but the compiler."""
    parts = [version("jaxlib"), *FLAGS, _processor(), _text_digest(sources)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_DIGITS]


def _text_digest(sources: Path) -> str:
    """Return a digest of the sources alone."""
    digest = hashlib.sha256()
    for source in sorted([*sources.glob("*.h"), *sources.glob("*.cc")]):
        digest.update(f"\n{source.name}\n".encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:_DIGITS]


def _compiler_digest(compiler: tuple[str, ...]) -> str:
    """Return a digest of the words of a compiler, and of the programs among them: ``ccache g++`` names two."""
    parts = list(compiler)
    for program in filter(None, map(shutil.which, compiler)):
        status = Path(program).stat()
        parts += [program, str(status.st_size), str(status.st_mtime_ns)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_DIGITS]


def is_sound(path: Path) -> bool:
    """Whether a library is there, and whole."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return False
    return content[-_DIGEST_BYTES:] == hashlib.sha256(content[:-_DIGEST_BYTES]).digest()


def build(compiler: tuple[str, ...], path: Path, sources: Path) -> None:
    """Compile the sources into a library, and append its digest, which the loader of the system does not read.

    A line on stderr says so, as it takes some seconds once on a machine.

    Raises:
        NativeLibraryError: the compiler fails; the message has its first line.
        subprocess.SubprocessError: it takes too long.
        OSError: the compiler does not run, or the library cannot be written.
    """
    what = "program search" if sources == SEARCH_SOURCES else "environment"
    _say(f"building the C++ library of the {what} with {shlex.join(compiler)} in {path.parent}, once on this machine")
    with tempfile.TemporaryDirectory(prefix="jaxarc-native-") as folder:
        built = Path(folder) / path.name
        files = [str(source) for source in sources.glob("*.cc")]
        command = [*compiler, *FLAGS, *_headers(sources), *files, "-o", str(built)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            why = lines[0] if lines else f"exit code {done.returncode}"
            raise NativeLibraryError(f"{shlex.join(compiler)} fails: {why}")
        content = built.read_bytes()
    write_whole(path, content + hashlib.sha256(content).digest(), flush=False)


def _headers(sources: Path) -> list[str]:
    """Say where jaxlib's headers are, whose warnings are not ours to repair; the search needs none."""
    if sources == SEARCH_SOURCES:
        return []
    import jax

    return ["-isystem", jax.ffi.include_dir()]


def _lock(stack: ExitStack, folder: Path) -> None:
    """Hold the lock of a folder until the stack ends; without it, where it cannot be had, several may build."""
    from filelock import FileLock, Timeout  # only a build needs it

    lock = FileLock(folder / ".lock")
    with suppress(Timeout, NotImplementedError):
        try:
            stack.enter_context(lock.acquire(timeout=0))
        except Timeout:
            _say(f"waiting for another process that builds a C++ library in {folder}")
            stack.enter_context(lock.acquire(timeout=BUILD_SECONDS))


def _say(line: str) -> None:
    """Write a line to stderr, where there is one that somebody reads."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(f"jaxarc: {visible(line)}\n")
            sys.stderr.flush()


def _processor() -> str:
    """Name the processor and what it can do: code for one may not run on another."""
    known = _cpuinfo()
    named = [f"{name}: {known[name]}" for name in ("model name", "flags", "Features", "isa") if name in known]
    return "\n".join([platform.machine(), *(named or [platform.processor()])])


def _cpuinfo() -> dict[str, str]:
    """Return what Linux says of the first processor; nothing elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in reversed(lines))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


# What the Python side of this process was written for. An installation may replace both while it runs.
_AT_IMPORT: Final = {sources: _text_digest(sources) for sources in (_SOURCES, SEARCH_SOURCES)}
