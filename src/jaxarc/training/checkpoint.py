"""A training state in a folder of its own: written whole, and checked when it is read."""

import dataclasses
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import jax
import numpy as np

from jaxarc.io.atomic import names_file
from jaxarc.parallel import is_first, meet

Tree = TypeVar("Tree")

_FORMAT: Final = 3  # changes with the files below
_ARRAYS: Final = "arrays"  # folder of orbax
_RECORD: Final = "record.json"


class CheckpointError(ValueError):
    """A folder is not a checkpoint, is damaged, or belongs to another configuration."""


class DamagedCheckpointError(CheckpointError):
    """Some bytes of a checkpoint are not those that were written."""


@dataclass(frozen=True)
class CheckpointRecord:
    """What a checkpoint tells besides its arrays."""

    update: int  # updates so far
    num_lines: int  # of the metrics that belong to it
    seconds: float  # since learning began
    score: float | None  # the higher the better, mean over the seeds; None where this state was not measured
    config: dict[str, Any]  # of the run, as nested dictionaries
    versions: dict[str, str]  # of the libraries that wrote it


def save_checkpoint(path: Path, tree: Any, record: CheckpointRecord) -> None:
    """Write a pytree of arrays and its record as a new folder, which appears under its name when it is complete.

    Several processes write the parts that they have into one folder, which all of them must see.

    Raises:
        OSError: the folder is there already, or cannot be written.
    """
    # A third of a second to import, which only those who save or load pay.
    from orbax.checkpoint import Checkpointer, PyTreeCheckpointHandler
    from orbax.checkpoint.args import PyTreeSave

    part = path.with_name(f".{path.name}.part")
    if is_first():
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    meet(f"save {path}")
    arrays = _not_empty(_named_arrays(jax.device_get(tree) if jax.process_count() == 1 else tree))
    try:
        with _told_by_the_disk(path):
            # The database in which several processes write one array (OCDBT) keeps 60 kB of memory for every save.
            handler = PyTreeCheckpointHandler(use_ocdbt=jax.process_count() > 1)
            with Checkpointer(handler) as checkpointer:  # waits for the others before and after
                checkpointer.save(part.resolve() / _ARRAYS, args=PyTreeSave(arrays))
            if is_first():
                body = {"format": _FORMAT, "record": dataclasses.asdict(record), "files": _digests(part)}
                (part / _RECORD).write_text(json.dumps({"sha256": _digest(_canonical(body)), **body}))
                part.rename(path)
    finally:
        if is_first():
            shutil.rmtree(part, ignore_errors=True)  # gone already when the rename succeeded
    meet(f"saved {path}")


def read_record(path: Path) -> CheckpointRecord:
    """Return what a checkpoint tells besides its arrays, of which nothing is read.

    Raises:
        CheckpointError: there is no checkpoint, or its record is damaged.
    """
    return _read(path)[0]


def check_checkpoint(path: Path) -> CheckpointRecord:
    """Compare every byte with the digests of the record, and return it.

    Raises:
        CheckpointError: there is no checkpoint, or it is damaged.
    """
    record, files = _read(path)
    there = _digests(path)
    bad = [name for name, told in files.items() if there.get(name) != told]
    if bad:
        raise DamagedCheckpointError(
            f"{path} is damaged: {len(bad)} of its files are missing or do not have their SHA-256, first {bad[0]}; "
            "use another checkpoint"
        )
    return record


def load_checkpoint(path: Path, like: Tree, within: str = "") -> Tree:
    """Read a checkpoint, or a part of one, into a pytree with the structure, shapes and dtypes of ``like``.

    The arrays are placed on the default device, whatever devices there were when they were saved.

    Args:
        path: its folder.
        like: arrays, or what ``jax.eval_shape`` tells of them.
        within: where in the saved tree ``like`` begins, such as ``"learner.policy"``; all of it by default.

    Raises:
        CheckpointError: there is no checkpoint, it is damaged, or its arrays are not those of ``like``.
    """
    from orbax.checkpoint import Checkpointer, PyTreeCheckpointHandler, RestoreArgs
    from orbax.checkpoint.args import PyTreeRestore

    check_checkpoint(path)
    places = _named_arrays(like, within)
    wanted = _not_empty(places)
    with Checkpointer(PyTreeCheckpointHandler()) as checkpointer:
        arrays = path.resolve() / _ARRAYS
        there = checkpointer.metadata(arrays).item_metadata.tree
        _require_same(path, {name: there[name] for name in there if name.startswith(within)}, wanted)
        empty = {name: np.empty(leaf.shape, leaf.dtype) for name, leaf in wanted.items()}
        whole = {name: RestoreArgs(restore_type=np.ndarray) for name in wanted}  # whichever process wrote which part
        saved = checkpointer.restore(arrays, args=PyTreeRestore(empty, restore_args=whole, partial_restore=True))
    saved |= {name: np.zeros(leaf.shape, leaf.dtype) for name, leaf in places.items() if name not in wanted}
    return jax.tree.unflatten(jax.tree.structure(like), [jax.device_put(saved[name]) for name in places])


@contextmanager
def _told_by_the_disk(path: Path) -> Iterator[None]:
    """Raise what the disk said, with the path: orbax makes it a ValueError, and logs pages about it.

    Raises:
        OSError: a file cannot be written.
    """
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with names_file(path):
            yield
    except ValueError as error:
        code = re.search(r"os_error_code='(\d+)'", str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from error
    finally:
        logger.setLevel(level)


def _named_arrays(tree: Any, within: str = "") -> dict[str, Any]:
    """Name each leaf by its place, such as ``learner.policy.network.positions``, in the order of the leaves."""
    named, _ = jax.tree.flatten_with_path(tree)
    places = ((jax.tree_util.keystr(place, simple=True, separator="."), leaf) for place, leaf in named)
    return {".".join(filter(None, (within, place))): leaf for place, leaf in places}


def _not_empty(arrays: dict[str, Any]) -> dict[str, Any]:
    """Leave out arrays without elements, such as a history that is switched off: orbax refuses them."""
    return {name: leaf for name, leaf in arrays.items() if leaf.size}


def _read(path: Path) -> tuple[CheckpointRecord, dict[str, str]]:
    """Return the record, and the digest of each of the other files."""
    file = path / _RECORD
    try:
        content = json.loads(file.read_bytes())
        told, seal = content.pop("sha256"), _digest(_canonical(content))
    except OSError as error:
        if path.is_dir():
            raise DamagedCheckpointError(f"{path} is damaged: cannot read its {_RECORD}: {error.strerror}") from error
        raise CheckpointError(f"there is no checkpoint {path}; name a folder inside a run's checkpoints/") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedCheckpointError(f"{path} is damaged: {_RECORD} cannot be read; use another checkpoint") from error
    if told != seal:
        raise DamagedCheckpointError(f"{path} is damaged: {_RECORD} does not have its SHA-256; use another checkpoint")
    if content.get("format") != _FORMAT:
        raise CheckpointError(
            f"{path} has format {content.get('format')!r:.60}, this version reads {_FORMAT}; use the version "
            "that wrote it"
        )
    if not _is_record(content.get("record")) or not _is_mapping(content.get("files"), str):
        raise DamagedCheckpointError(f"{path} is damaged: {_RECORD} lacks something; use another checkpoint")
    return CheckpointRecord(**content["record"]), content["files"]


def _is_record(record: Any) -> bool:
    """Whether it has the fields of :class:`CheckpointRecord`, each of its type."""
    if not isinstance(record, dict) or set(record) != {field.name for field in dataclasses.fields(CheckpointRecord)}:
        return False
    numbers = (record["seconds"], 0.0 if record["score"] is None else record["score"])
    counts = (record["update"], record["num_lines"])
    return (
        all(type(count) is int and count >= 0 for count in counts)
        and all(type(number) in (int, float) for number in numbers)
        and isinstance(record["config"], dict)
        and _is_mapping(record["versions"], str)
    )


def _is_mapping(value: Any, kind: type) -> bool:
    return isinstance(value, dict) and all(isinstance(one, kind) for one in value.values())


def _require_same(path: Path, there: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Compare names, shapes and dtypes."""
    describe = lambda leaf: f"{np.dtype(leaf.dtype).name}{list(leaf.shape)}"
    saved, asked = ({name: describe(leaf) for name, leaf in tree.items()} for tree in (there, wanted))
    names = [name for name in sorted(saved.keys() | asked.keys()) if saved.get(name) != asked.get(name)]
    if names:
        first = names[0]
        raise CheckpointError(
            f"{path} belongs to another configuration: {len(names)} arrays differ, first {first}: saved "
            f"{saved.get(first, 'nothing')}, wanted {asked.get(first, 'nothing')}; use the config in its {_RECORD}"
        )


def _digests(folder: Path) -> dict[str, str]:
    """Hash every file below but the record, in the order of their names."""
    files = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return {
        file.relative_to(folder).as_posix(): _digest(file.read_bytes())
        for file in sorted(files)
        if file.name != _RECORD
    }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _canonical(body: dict[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True).encode()
