"""Checkpoints: a training state in a folder of its own, written whole and checked when it is read."""

import dataclasses
import hashlib
import io
import json
import os
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import jax
import numpy as np

from jaxarc.errors import JaxarcWarning, UsageError
from jaxarc.files import names_file, write_whole
from jaxarc.parallel import barrier, broadcast_flag, is_primary, to_host

Tree = TypeVar("Tree")

_FORMAT: Final = 5  # changes with the files below, and with the names of arrays and config fields
_ARRAYS: Final = "arrays.npz"
_RECORD: Final = "record.json"


class CheckpointError(UsageError, ValueError):
    """A folder is not a checkpoint, is damaged, or belongs to another configuration."""


class DamagedCheckpointError(CheckpointError):
    """Some bytes of a checkpoint are not those that were written."""

    exit_code: ClassVar[int] = 1


@dataclass(frozen=True)
class CheckpointRecord:
    """The contents of a checkpoint besides its arrays."""

    update: int  # updates so far
    num_lines: int  # of the metrics that belong to it
    seconds: float  # since learning began
    score: float | None  # the higher the better, mean over the seeds; None where this state was not measured
    config: dict[str, Any]  # of the run, as nested dictionaries
    versions: dict[str, str]  # of the libraries that wrote it


def save_checkpoint(path: Path, tree: Any, record: CheckpointRecord) -> None:
    """Write a pytree of arrays and its record as a new folder, which appears under its name when it is complete.

    Of several processes the first one writes; all have to call this, because each may hold parts of an array.

    Raises:
        OSError: the folder is there already, or cannot be written.
    """
    # All processes gather, one writes, and the barrier holds the others until the files are there.
    arrays = to_host(_named_arrays(tree))
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    if is_primary():
        # Arrays, flushed to the disk; then the record, with digests of what is there; and the name last. A folder with
        # a number for a name is therefore complete.
        try:
            with names_file(path):
                part.mkdir(parents=True)
                with (part / _ARRAYS).open("wb") as file:
                    np.savez(file, **arrays)
                    file.flush()
                    os.fsync(file.fileno())
                body = {
                    "format": _FORMAT,
                    "record": dataclasses.asdict(record),
                    "files": _digests((part / _ARRAYS).read_bytes()),
                }
                write_whole(part / _RECORD, json.dumps({"sha256": _digest_of(body), **body}).encode())
                part.rename(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)  # gone already when the rename succeeded
    barrier(f"saved {path}")


def read_record(path: Path) -> CheckpointRecord:
    """Return the record of a checkpoint, without reading its arrays.

    Raises:
        CheckpointError: there is no checkpoint, or its record is damaged.
    """
    return CheckpointRecord(**_read(path)["record"])


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read whole: a training that removes its folder meanwhile changes nothing."""

    path: Path
    record: CheckpointRecord
    content: bytes = field(repr=False)  # of the file of arrays

    def load(self, like: Tree, within: str = "") -> Tree:
        """Return it, or a part of it, as a pytree with the structure, shapes and dtypes of ``like``.

        The arrays are placed on the default device, whatever devices there were when they were saved.

        Args:
            like: arrays, or their shapes and dtypes from ``jax.eval_shape``.
            within: where in the saved tree ``like`` begins, such as ``"learner.policy"``; all of it by default.

        Raises:
            CheckpointError: its arrays are not those of ``like``.
        """
        wanted = _named_arrays(like, within)
        with np.load(io.BytesIO(self.content), allow_pickle=False) as file:
            # An archive reads each array when it is asked for, so a part of a checkpoint takes no time for the rest.
            # The dot keeps ``policy_old`` apart from ``policy``.
            names = [name for name in file.files if f"{name}.".startswith(f"{within}." if within else "")]
            saved = {name: file[name] for name in names}
        _require_same(self.path, saved, wanted)
        return jax.tree.unflatten(jax.tree.structure(like), [jax.device_put(saved[name]) for name in wanted])


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, and compare every byte with the digests of its record.

    Raises:
        CheckpointError: there is no checkpoint, or it is damaged.
    """
    body = _read(path)
    try:
        content = (path / _ARRAYS).read_bytes()
    except FileNotFoundError as error:
        if not path.is_dir():
            raise CheckpointError(f"the checkpoint {path} was removed while it was read; read another") from error
        content = b""
    if body["files"] != _digests(content):
        raise DamagedCheckpointError(
            f"{path} is damaged: {_ARRAYS} is missing or does not have its SHA-256; use another checkpoint"
        )
    return Checkpoint(path, CheckpointRecord(**body["record"]), content)


def load_checkpoint(path: Path, like: Tree, within: str = "") -> Tree:
    """Read a checkpoint, or a part of one, see :meth:`Checkpoint.load`.

    Raises:
        CheckpointError: there is no checkpoint, it is damaged, or its arrays are not those of ``like``.
    """
    return read_checkpoint(path).load(like, within)


def _named_arrays(tree: Any, within: str = "") -> dict[str, Any]:
    """Name each leaf by its path, such as ``learner.policy.network.positions``, in the order of the leaves."""
    named, _ = jax.tree.flatten_with_path(tree)
    paths = ((jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in named)
    return {".".join(filter(None, (within, path))): leaf for path, leaf in paths}


def _read(path: Path) -> dict[str, Any]:
    """Return the content of the record file, which has the digest that it names."""
    file = path / _RECORD
    try:
        content = json.loads(file.read_bytes())
        is_whole = content.pop("sha256") == _digest_of(content)
    except OSError as error:
        if path.is_dir():
            raise DamagedCheckpointError(f"{path} is damaged: cannot read its {_RECORD}: {error.strerror}") from error
        raise CheckpointError(f"there is no checkpoint {path}; name a folder inside a run's checkpoints/") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedCheckpointError(f"{path} is damaged: {_RECORD} cannot be read; use another checkpoint") from error
    if not is_whole:
        raise DamagedCheckpointError(f"{path} is damaged: {_RECORD} does not have its SHA-256; use another checkpoint")
    if content["format"] != _FORMAT:
        raise CheckpointError(
            f"{path} has checkpoint format {content['format']}, this version reads format {_FORMAT}; use the version "
            "that wrote it, or train again"
        )
    return content


def _require_same(path: Path, there: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Compare names, shapes and dtypes."""
    describe = lambda leaf: f"{np.dtype(leaf.dtype).name}{list(leaf.shape)}"
    # Such as {"learner.policy.network.size_weights": "float32[3, 2]"}; a name that one side lacks counts as different.
    saved, asked = ({name: describe(leaf) for name, leaf in tree.items()} for tree in (there, wanted))
    names = [name for name in sorted(saved.keys() | asked.keys()) if saved.get(name) != asked.get(name)]
    if names:
        first = names[0]
        raise CheckpointError(
            f"{path} belongs to another configuration: {len(names)} arrays differ, first {first}: saved "
            f"{saved.get(first, 'nothing')}, wanted {asked.get(first, 'nothing')}; use the config in its {_RECORD}"
        )


def _digests(content: bytes) -> dict[str, str]:
    return {_ARRAYS: hashlib.sha256(content).hexdigest()}


def _digest_of(body: dict[str, Any]) -> str:
    """Hash a record in one canonical order of its keys."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


class DamagedCheckpointWarning(JaxarcWarning):
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

    def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint that is not damaged; None where there never was one.

        One that a running training removes meanwhile is chosen anew.

        Warns:
            DamagedCheckpointWarning: a newer one is damaged.

        Raises:
            CheckpointError: all are damaged.
        """
        return self._first_sound(lambda updates: updates[::-1])

    def best(self) -> Checkpoint | None:
        """Return the one with the highest score, of equal ones the later.

        Where none was measured it is the newest. Warns and raises as :meth:`newest`.
        """
        return self._first_sound(lambda updates: self._ranked(updates) or updates[::-1])

    def keep(self, last: int, best: int) -> None:
        """Remove all but the newest and the best ones."""
        if not is_primary():
            return
        # Updates 10 20 30 40 with the scores 0.1 0.9 0.3 0.2, keep the last 2 and the
        # best 1: {30, 40} and {20}; 10 goes.
        updates = self.updates()
        kept = {*updates[-last:], *self._ranked(updates)[:best]}
        self._remove(update for update in updates if update not in kept)

    def remove_after(self, update: int) -> None:
        """Remove what is newer, because it is to be learned again, and what a killed process left unfinished."""
        if not is_primary():
            return
        self._remove(later for later in self.updates() if later > update)
        for entry in (*self.path.glob(".*.part"), *self.path.glob(".*.removed")):
            shutil.rmtree(entry, ignore_errors=True)  # what a process on a lost node is about to write nobody reads

    def _ranked(self, updates: Sequence[int]) -> list[int]:
        """Return the updates that have a score, the best first, of equal ones the later."""
        scores = {}
        for update in updates:
            with suppress(DamagedCheckpointError):  # reported when it is wanted
                scores[update] = read_record(self.at(update)).score
        measured = [(score, update) for update, score in scores.items() if score is not None]
        return [update for _, update in sorted(measured, reverse=True)]

    def _first_sound(self, rank: Callable[[list[int]], Sequence[int]]) -> Checkpoint | None:
        updates = self.updates()
        try:
            for update in rank(updates):
                try:
                    return read_checkpoint(self.at(update))
                except DamagedCheckpointError as error:
                    warnings.warn(f"{error}", DamagedCheckpointWarning, stacklevel=3)
        except CheckpointError:
            if all(os.path.lexists(self.at(update)) for update in updates):
                raise
            return self._first_sound(rank)  # a running training removed one of them, so it has saved another
        if updates:
            raise DamagedCheckpointError(f"every checkpoint in {self.path} is damaged; train again")
        return None

    def _remove(self, updates: Iterable[int]) -> None:
        """Take the name away first: a process that is killed amid leaves no half checkpoint that looks whole."""
        for update in updates:
            going = self.path / f".{update}.removed"
            self.at(update).rename(going)
            shutil.rmtree(going)
