"""Outcomes of jobs as files of a folder, each written whole and named by the key of its job.

They are JSON, which runs no code when it is read. ``about.json`` says for which jobs the folder is.
"""

import hashlib
import json
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from jaxarc.files import add_checksum, code_digest, verify_checksum, write_whole
from jaxarc.jobs.job import JobsError, Outcome

ABOUT: Final = "about.json"
_CODE: Final = "the code of jaxarc"


class Results:
    """The outcomes in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, folder: Path, keys: Collection[str], about: Mapping[str, Any]) -> "Results":
        """Return the outcomes of these jobs, of which a folder that is there may have some.

        Args:
            folder: made when missing.
            keys: of all jobs.
            about: the settings on which they depend, values of JSON by name.

        Raises:
            JobsError: the folder is of other jobs; the message names the settings that differ.
            OSError: it cannot be read or written.
        """
        everything = hashlib.sha256("".join(sorted(keys)).encode()).hexdigest()
        asked = json.loads(json.dumps({**about, _CODE: code_digest(), "the jobs": everything[:16]}))
        if (folder / ABOUT).exists():
            there = json.loads((folder / ABOUT).read_text())
            differ = [
                f"{name} is {there.get(name)!r} there and {asked.get(name)!r} here"
                for name in {**asked, **there}
                if there.get(name) != asked.get(name)
            ]
            if differ:
                raise JobsError(
                    f"{folder} has results of other jobs: {'; '.join(differ)}. Give the same settings to go on, or "
                    "remove it, or name another folder"
                )
        else:
            write_whole(folder / ABOUT, json.dumps(asked, indent=2).encode())
        return cls(folder)

    def require_same_code(self) -> None:
        """Refuse to work for a driver that runs another jaxarc."""
        wanted = json.loads((self.folder / ABOUT).read_text())[_CODE]
        if wanted != code_digest():
            raise JobsError(
                f"this machine has another jaxarc, {code_digest()} and not {wanted}; install the same one on all"
            )

    def put(self, key: str, outcome: Outcome) -> None:
        """Write the outcome of a job."""
        fields = add_checksum({"value": outcome.value, "fault": outcome.fault})
        write_whole(self._file(key), json.dumps(fields).encode(), flush=False)

    def get(self, key: str) -> Outcome | None:
        """Return the outcome of a job; None where there is no file, or one that a crash of its machine has cut."""
        with suppress(FileNotFoundError, ValueError, KeyError):
            fields = verify_checksum(json.loads(self._file(key).read_text()))
            return Outcome(0, fields["value"], fields["fault"])
        return None

    def drop(self, key: str) -> None:
        """Remove an outcome, so that its job is done again."""
        self._file(key).unlink(missing_ok=True)

    def present(self) -> set[str]:
        """Return the keys of the jobs of which there is a file."""
        return {file.stem for file in self.folder.iterdir()}

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def remove_results(folder: Path) -> None:
    """Remove a folder whose jobs are all done, and whose outcomes are written elsewhere; keep one with a fault."""
    results = Results(folder)
    if folder.is_dir() and all((found := results.get(key)) is None or not found.fault for key in results.present()):
        shutil.rmtree(folder)
