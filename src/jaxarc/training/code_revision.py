"""Which revision of the code a run was started in."""

import subprocess
from pathlib import Path

_SECONDS = 10.0  # git answers in milliseconds; a folder that has gone away over the network must not hold up a run


def git_revision(folder: Path) -> str | None:
    """Return the commit that a folder stands at, ``-dirty`` added when its files differ; None without git."""
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):  # no git, no repository, no commit yet
        return None
    return answer.stdout.strip()
