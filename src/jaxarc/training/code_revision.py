"""Which revision of the code a run was started in."""

import hashlib
import subprocess
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]
_SECONDS = 10.0  # git answers in milliseconds; a folder that has gone away over the network must not hold up a run


def git_revision(folder: Path) -> str | None:
    """Return the commit that a folder stands at, ``-dirty`` added when its files differ; None without git."""
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):  # no git, no repository, no commit yet
        return None
    return answer.stdout.strip()


def code_digest(package: Path = _PACKAGE) -> str:
    """Return a hash of the names and the text of all Python files of a package, this one when left out."""
    told = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        told.update(f"{file.relative_to(package).as_posix()}\n".encode())
        told.update(file.read_bytes())
    return told.hexdigest()[:16]
