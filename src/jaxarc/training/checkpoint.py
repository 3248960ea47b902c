"""A training state in one file: written whole, and checked when it is read."""

import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import equinox as eqx
import jax

Tree = TypeVar("Tree")

_MAGIC: Final = b"jaxarc checkpoint 1\n"  # the number changes with the format


class CheckpointError(ValueError):
    """A file is not a checkpoint, is damaged, or belongs to another configuration."""


def save_checkpoint(path: Path, tree: Any, config: Mapping[str, Any]) -> None:
    """Write a pytree of arrays and the config that it was made with.

    The file appears under its name only when it is complete and on the disk; an older one stays until then.
    """
    payload = io.BytesIO()
    eqx.tree_serialise_leaves(payload, tree)
    data = payload.getvalue()
    header = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "config": config}
    write_whole(path, _MAGIC + json.dumps(header).encode() + b"\n" + data)


def read_config(path: Path) -> dict[str, Any]:
    """Return the config that a checkpoint was made with, as nested dictionaries.

    Raises:
        CheckpointError: see :func:`load_checkpoint`.
    """
    return _read(path)[0]["config"]


def load_checkpoint(path: Path, like: Tree) -> Tree:
    """Read a checkpoint into a pytree with the structure, shapes and dtypes of ``like``.

    Raises:
        CheckpointError: there is no such file, it is no checkpoint, it is damaged, or its arrays are not those of
            ``like``.
    """
    data = _read(path)[1]
    payload = io.BytesIO(data)
    try:
        tree = eqx.tree_deserialise_leaves(payload, like)
    except (RuntimeError, ValueError, EOFError) as error:
        raise CheckpointError(
            f"{path} belongs to another configuration: {str(error).splitlines()[0]}; "
            "make the state with the config that read_config returns"
        ) from error
    if payload.tell() != len(data):
        raise CheckpointError(f"{path} belongs to another configuration: it holds more arrays than the given state")
    return jax.tree.map(lambda new, old: jax.device_put(new) if isinstance(old, jax.Array) else new, tree, like)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk and rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {error.strerror}") from error
    if not content.startswith(_MAGIC):
        raise CheckpointError(f"{path} is not a jaxarc checkpoint of format 1: it does not start with {_MAGIC!r}")
    line, _, data = content[len(_MAGIC) :].partition(b"\n")
    try:
        header = json.loads(line)
        expected, size, _ = header["sha256"], header["bytes"], header["config"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged: its header cannot be read; use another checkpoint") from error
    if len(data) != size or hashlib.sha256(data).hexdigest() != expected:
        raise CheckpointError(
            f"{path} is damaged: its header promises {size} bytes with SHA-256 {expected[:12]}..., "
            f"but the {len(data)} bytes there differ; use another checkpoint"
        )
    return header, data
