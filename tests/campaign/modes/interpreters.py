"""Environments of other Pythons and of other versions of what jaxarc stands on, each in a folder of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
RESOLUTIONS = {  # which of the allowed versions are installed -> what uv is told
    "locked": ("--constraint", "constraints.txt"),
    "oldest": ("--resolution", "lowest-direct"),
    "newest": ("--resolution", "highest", "--upgrade"),
}


class MissingInterpreterError(RuntimeError):
    """There is no such Python on this machine."""


def find_python(version: str, variables: Mapping[str, str] = os.environ) -> Path:
    """Find ``python3.12`` for ``"3.12"``: what the variable ``PYTHON312`` names, this one, or what lies on the path.

    Raises:
        MissingInterpreterError: it is neither named nor found, or what is found does not start as that version.
    """
    variable = f"PYTHON{version.replace('.', '')}"
    this = sys.executable if version == "{}.{}".format(*sys.version_info) else None
    found = variables.get(variable) or this or shutil.which(f"python{version}", path=variables.get("PATH"))
    advice = f"install it, or name it: {variable}=/path/to/python{version}"
    if found is None:
        raise MissingInterpreterError(f"no python{version} is on the path; {advice}")
    ask = [found, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingInterpreterError(f"{found} does not start: {error.strerror}; {advice}") from error
    if answer.stdout.strip() != version:
        what = f"is Python {answer.stdout.strip()}" if answer.stdout.strip() else "does not start"
        raise MissingInterpreterError(f"{found} {what}, and Python {version} was asked for; {advice}")
    return Path(found)


def make_environment(folder: Path, python: Path, resolution: str) -> Path:
    """Make a virtual environment with jaxarc and what its tests need, or bring one up to date; return its Python.

    Args:
        folder: the environment's own; what an interrupted attempt left in it is replaced.
        python: whose environment it is.
        resolution: one of ``RESOLUTIONS``.

    Raises:
        subprocess.CalledProcessError: something cannot be installed; what was printed says what.
    """
    inside = folder / "bin" / "python"
    if not (folder / "bin" / "uv").exists():
        _run([str(python), "-m", "venv", "--clear", str(folder)])
        _run([str(inside), "-m", "pip", "install", "-qq", "--constraint", "constraints.txt", "uv"])
    install = [str(folder / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(inside)]
    _run([*install, *RESOLUTIONS[resolution], "--editable", ".[dev]"])
    return inside


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, cwd=ROOT, check=True, stdin=subprocess.DEVNULL)
