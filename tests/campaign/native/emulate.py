"""Play random steps through the C++ kernels as the wheels compile them, under emulators of systems that are not here.

``make emulate`` compiles ``sanitize.cc`` for every level of Linux and Windows, with the compiler and flags of the
wheels, and runs each: arm64 by qemu's user mode, Windows by wine. All have to print the same line, which ends with a
hash of what came out of every step; test_fuzz_operations.py says that it is right. What has no emulator is not run.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from hatch_build import PLATFORMS, compiler_of
from jaxarc.native.library import FLAGS

SOURCES: Final = Path("src/jaxarc/native")
DRIVER: Final = Path(__file__).with_name("sanitize.cc")
FOLDER: Final = Path("dist/emulate")
EMULATORS: Final = {"linux-x86_64": (), "linux-aarch64": ("qemu-aarch64",), "windows-x86_64": ("wine64", "wine")}


def emulator(names: tuple[str, ...]) -> list[str] | None:
    """Return the words before a program, the first of these that is installed; None where none is."""
    path = os.pathsep.join([os.environ["PATH"], "/usr/lib/wine"])  # where Debian has wine64
    found = [program for name in names if (program := shutil.which(name, path=path))]
    return found[:1] if found or not names else None


def main() -> int:
    """Compile, run and compare; returns how many lines differ, so that 0 is success."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "WINEPREFIX": str(FOLDER.absolute() / "wine"), "WINEDEBUG": "-all"}
    said = {}
    for name, emulators in EMULATORS.items():
        before = emulator(emulators)
        if before is None:
            print(f"{name}: not run, as none of {', '.join(emulators)} is installed")
            continue
        platform = PLATFORMS[name]
        for level, processor in platform.levels.items():
            program = FOLDER / f"{name}-{level}.exe"
            flags = [flag for flag in FLAGS if flag not in ("-shared", "-fPIC")]
            target = platform.target.replace("gnu.2.17", "musl")  # in one file, for emulators without a C library
            compiler = compiler_of(platform._replace(target=target), processor, flags)
            subprocess.run([*compiler, "-I", str(SOURCES), str(DRIVER), "-o", str(program)], check=True)
            command = [*before, str(program), *sys.argv[1:]]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            line = done.stdout.strip() or f"fails with exit code {done.returncode}: {done.stderr.strip()}"
            print(f"{name}, {level}: {line}", flush=True)
            said[name, level] = line
    return len(set(said.values())) - 1


if __name__ == "__main__":
    sys.exit(main())
