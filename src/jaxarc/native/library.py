"""Libraries of C++ kernels: built at first use, kept in the user's cache, loaded once in a process.

The environment's kernels are one library, which XLA calls; those of the program search are another one, without JAX.

The name of the file holds two digests of what the machine code depends on: of the sources, the flags, the version of
jaxlib and the processor, and of the compiler. Where no compiler can be had or it fails, a library of another one is
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
# Functions of the library: jaxarc_edit and so on.
_KERNELS: Final = ("edit", "step", "restart", "advance", "sample_corners", "sample_masks", "fold_in")
_HOST_FUNCTIONS: Final = ("host_step", "host_restart")  # which no program of XLA calls; see host.py
_DIGEST_BYTES: Final = hashlib.sha256().digest_size
_DIGITS: Final = 12  # of a digest in a name


class NativeLibraryError(JaxarcError, RuntimeError):
    """The library cannot be built or loaded; the message says why in a line."""


class NativeLibraryWarning(JaxarcWarning):
    """The XLA executor runs in place of the native one."""


class NativeLibrary(NamedTuple):
    """A library that is loaded, and whose kernels XLA knows."""

    path: Path
    targets: dict[str, str]  # kernel -> its name for XLA, with the digest, so that a stored program finds its own
    functions: dict[str, Any]  # of ctypes


@functools.cache
def native_library() -> NativeLibrary | None:
    """Load the library, and build it before if it is not there; None, with one warning, where that fails."""
    try:
        path, functions = load_library()
    except (JaxarcError, OSError, subprocess.SubprocessError) as error:
        # The line of code that asked is nothing that the user could change, so the warning names a folder in its place.
        warnings.warn_explicit(
            f"steps run on the compact executor, which is slower: {_in_one_line(error)}; set CXX to a C++ compiler and "
            "JAXARC_CACHE to a folder of your own, or environment.executor to 'compact'",
            NativeLibraryWarning,
            filename=str(_SOURCES),
            lineno=1,
        )
        return None
    import jax  # only this library needs it

    targets = {kernel: f"{path.stem}-{kernel}" for kernel in _KERNELS}
    for kernel, target in targets.items():
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(functions[kernel]), platform="cpu")
    return NativeLibrary(path, targets, {name: functions[name] for name in _HOST_FUNCTIONS})


def load_library(
    sources: Path | None = None, functions: tuple[str, ...] = (*_KERNELS, *_HOST_FUNCTIONS)
) -> tuple[Path, dict[str, Any]]:
    """Load a library from the cache, after building it there if need be; return its path and its functions.

    A build says so in a line on stderr. Where it fails, a library that another compiler built is loaded.

    Args:
        sources: folder; that of the environment's kernels by default.
        functions: their names, without the prefix ``jaxarc_``.

    Raises:
        NativeLibraryError: there is no compiler, or it fails, or what it built cannot be loaded.
        JaxarcError: others may write into the cache folder.
        OSError: the cache folder cannot be written.
        subprocess.SubprocessError: the compiler takes too long.
    """
    sources = sources or _SOURCES
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
    try:
        loaded = ctypes.CDLL(str(path))
        return path, {name: loaded[f"jaxarc_{name}"] for name in functions}
    except (OSError, AttributeError) as error:
        raise NativeLibraryError(f"{path} cannot be loaded: {_in_one_line(error)}") from error


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
    digest = hashlib.sha256("\n".join([version("jaxlib"), *FLAGS, _processor()]).encode())
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
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        wanted = ("model name", "flags", "Features", "isa")
        named = {line.partition(":")[0].strip(): line for line in reversed(lines) if line.startswith(wanted)}
        if named:
            return "\n".join([platform.machine(), *sorted(named.values())])
    return f"{platform.machine()} {platform.processor()}"


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
