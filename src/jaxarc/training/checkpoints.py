"""The checkpoints of a run: a folder that holds a folder for each, named by its update."""

import shutil
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxarc.parallel import broadcast_flag, is_primary
from jaxarc.training.checkpoint import (
    CheckpointError,
    CheckpointRecord,
    DamagedCheckpointError,
    check_checkpoint,
    read_record,
    save_checkpoint,
)


class DamagedCheckpointWarning(UserWarning):
    """A checkpoint is damaged, so that another one is used."""


@dataclass(frozen=True)
class Checkpoints:
    """A folder of checkpoints; what has no number for a name is unfinished or on its way out, and is never read.

    Several processes write one checkpoint together; process 0 alone removes.
    """

    path: Path

    def at(self, update: int) -> Path:
        return self.path / str(update)

    def updates(self) -> list[int]:
        """Return the updates that were saved, in order."""
        there = self.path.iterdir() if self.path.is_dir() else ()
        return sorted(int(entry.name) for entry in there if entry.name.isdecimal())

    def save(self, tree: Any, record: CheckpointRecord) -> None:
        """Write the state after ``record.update`` updates; nothing happens where it is saved already."""
        if not broadcast_flag(self.at(record.update).exists()):
            save_checkpoint(self.at(record.update), tree, record)

    def newest(self) -> CheckpointRecord | None:
        """Return the record of the newest checkpoint that is not damaged; None where there never was one.

        Warns:
            DamagedCheckpointWarning: a newer one is damaged.

        Raises:
            CheckpointError: all are damaged.
        """
        updates = self.updates()
        return self._first_sound(reversed(updates)) if updates else None

    def best(self) -> CheckpointRecord | None:
        """Return the record of the one with the highest score, of equal ones the later.

        Where none was measured it is the newest. Warns and raises as :meth:`newest`.
        """
        ranked = self._measured()
        return self._first_sound(reversed(ranked)) if ranked else self.newest()

    def keep(self, last: int, best: int) -> None:
        """Remove all but the newest and the best ones."""
        if not is_primary():
            return
        updates, ranked = self.updates(), self._measured()
        kept = {*updates[-last:], *ranked[len(ranked) - min(best, len(ranked)) :]}
        self._remove(update for update in updates if update not in kept)

    def remove_after(self, update: int) -> None:
        """Remove what is newer, because it is to be learned again, and what a killed process left unfinished."""
        if not is_primary():
            return
        self._remove(later for later in self.updates() if later > update)
        for entry in (*self.path.glob(".*.part"), *self.path.glob(".*.removed")):
            shutil.rmtree(entry)

    def _measured(self) -> list[int]:
        """Return the updates that have a score, the best last."""
        scores = {}
        for update in self.updates():
            try:
                scores[update] = read_record(self.at(update)).score
            except DamagedCheckpointError:
                continue  # reported when it is wanted
        return sorted((update for update in scores if scores[update] is not None), key=lambda u: (scores[u], u))

    def _first_sound(self, updates: Iterable[int]) -> CheckpointRecord:
        for update in updates:
            try:
                return check_checkpoint(self.at(update))
            except DamagedCheckpointError as error:
                warnings.warn(f"{error}", DamagedCheckpointWarning, stacklevel=3)
        raise CheckpointError(f"every checkpoint in {self.path} is damaged; train again")

    def _remove(self, updates: Iterable[int]) -> None:
        """Take the name away first: a process that is killed amid leaves no half checkpoint that looks whole."""
        for update in updates:
            going = self.path / f".{update}.removed"
            self.at(update).rename(going)
            shutil.rmtree(going)
