"""A copy of the tree in which files are broken, and the process that runs tests there."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from campaign.mutation.mutant_sites import PACKAGE

_COPIED: Final = ("src", "tests", "configs", "pyproject.toml")
_LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", ".venv*", ".hypothesis")


class Workshop(contextlib.AbstractContextManager["Workshop"]):
    """Tries tests on a copy of a tree; gone with the ``with`` block."""

    def __init__(self, root: Path, python: str):
        """Copy a tree.

        Args:
            root: of the tree.
            python: interpreter that has what the tests need.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="jaxarc-mutants-")
        self._tree = Path(self._folder.name) / "tree"
        self._tree.mkdir()
        for name in _COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, self._tree / name, ignore=_LEFT_OUT)
            else:
                shutil.copy2(root / name, self._tree / name)
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-m", "campaign.mutation.mutant_trials"],
            cwd=self._tree,
            env={**os.environ, **self._surroundings()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def try_tests(self, file: str, tests: Sequence[str], seconds: float, text: str | None = None) -> dict[str, Any]:
        """Run tests; see :class:`campaign.mutation.mutant_trials.Trial` for what comes back.

        Args:
            file: below the package.
            tests: arguments of pytest.
            seconds: of processor time that they may take.
            text: stands in the file's place meanwhile.

        Raises:
            ChildProcessError: the process that runs tests is gone.
        """
        path = self._tree / PACKAGE / file
        times = path.stat()
        was = path.read_bytes()
        if text is not None:
            path.write_text(text, encoding="utf-8")
        try:
            return self._ask({"tests": list(tests), "seconds": seconds, "keeps_compiled": text is None})
        finally:
            path.write_bytes(was)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # what Python compiled from it stays good

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise ChildProcessError("the process that runs tests has no pipes; start the campaign again")
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise ChildProcessError(
                f"the process that runs tests ended with {self._process.wait()}; see its last lines"
            )
        return json.loads(answer)

    def _surroundings(self) -> dict[str, str]:
        """Variables of the process: our copy before any other, the same examples every time, programs kept, no C++.

        The library in C++ would take the steps in place of the lines that are broken here.
        """
        return {
            "PYTHONPATH": f"{self._tree / 'src'}{os.pathsep}{self._tree / 'tests'}",
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": str(Path(self._folder.name) / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "CI": "1",
            "CXX": "none",
            "JAXARC_CACHE": str(Path(self._folder.name) / "cache"),
        }
