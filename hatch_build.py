"""Compile the C++ libraries into the wheel of a platform, on any machine: zig has the compilers and headers of all.

``make wheels`` builds a wheel for each of ``PLATFORMS``, which ``$JAXARC_WHEEL`` names. Without it, and in an editable
installation, nothing is compiled: the libraries are built where they are first used.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement


class Platform(NamedTuple):
    """A platform that has a wheel of its own."""

    target: str  # for zig
    tag: str  # of the wheel
    ending: str  # of a library's name
    levels: dict[str, str]  # as jaxarc.native.library names them -> zig's name of the processor


_V3 = {"x86_64_v3": "x86_64_v3"}
_V4 = {"x86_64_v4": "x86_64_v4"}
PLATFORMS = {
    "linux-x86_64": Platform("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", ".so", _V3 | _V4),
    "linux-aarch64": Platform("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64", ".so", {"aarch64": "generic"}),
    "macos-arm64": Platform("aarch64-macos.11.0", "macosx_11_0_arm64", ".so", {"aarch64": "apple_m1"}),
    "windows-x86_64": Platform("x86_64-windows-gnu", "win_amd64", ".dll", _V3),
}


def compiler_of(platform: Platform, processor: str, flags: Iterable[str]) -> list[str]:
    """Return the words that compile for a processor of a platform, with the flags of a build at first use."""
    zig = [sys.executable, "-m", "ziglang", "c++", "-target", platform.target, f"-mcpu={processor}", "-s"]
    zig += ["-mllvm", "-inline-threshold=2000"]  # clang leaves calls in the kernels, which cost a tenth of the speed
    return zig + [flag for flag in flags if flag != "-march=native"]


class CustomBuildHook(BuildHookInterface):
    """Adds the libraries of a platform to a wheel, and its tag."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the wheel is a pure one."""
        wanted = os.environ.get("JAXARC_WHEEL", "")
        if not wanted or version == "editable":
            return
        if wanted not in PLATFORMS:
            raise ValueError(f"JAXARC_WHEEL is {wanted!r}; set it to one of {', '.join(PLATFORMS)}, or to nothing")
        platform = PLATFORMS[wanted]
        self._folder = tempfile.TemporaryDirectory(prefix="jaxarc-wheel-")
        builds = self._builds(platform, Path(self._folder.name))
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            built = list(threads.map(self._compile, *zip(*builds, strict=True)))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform.tag}"
        build_data["force_include"] |= {str(path): f"jaxarc/native/lib/{path.name}" for path in built}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled, which is in the wheel now."""
        if self._folder is not None:
            self._folder.cleanup()

    def _builds(self, platform: Platform, folder: Path) -> list[tuple[Path, list[str]]]:
        """List the libraries to be built, and the command for each."""
        sys.path.insert(0, str(Path(self.root, "src")))
        from jaxarc.native.library import FLAGS, SEARCH_SOURCES, library_stem

        builds = []
        for level, processor in platform.levels.items():
            for sources, headers in ((SEARCH_SOURCES.parent, ["-isystem", self._headers()]), (SEARCH_SOURCES, [])):
                path = folder / (library_stem(sources, level) + platform.ending)
                files = [str(file) for file in sources.glob("*.cc")]
                compiler = compiler_of(platform, processor, FLAGS)
                builds.append((path, [*compiler, *headers, *files, "-o", str(path)]))
        return builds

    def _headers(self) -> str:
        """Say where jaxlib's headers are: of the oldest one, as a newer XLA takes libraries of older headers only."""
        found, spec = version("jaxlib"), find_spec("jaxlib")
        if spec is None or spec.origin is None:
            raise ValueError("jaxlib has no headers; install it again")
        oldest = next(line for line in self.metadata.core.dependencies if line.startswith("jaxlib"))
        if f">={found}" not in map(str, Requirement(oldest).specifier):
            raise ValueError(f"jaxlib {found} is not the oldest that is supported; install that of {oldest}")
        return str(Path(spec.origin).with_name("include"))

    def _compile(self, path: Path, command: list[str]) -> Path:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} fails: {done.stderr}")
        return path
