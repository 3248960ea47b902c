"""States on disk without their task: the file names the task, and the reader brings it.

A file is a line of magic, the checksum of a line of JSON (task id, checksums, shapes), that line, and the leaves of the
state compressed by zlib. A wrong, damaged or foreign file is an error, never a wrong state.
"""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any, Final, Protocol, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.constants import MAX_GRID_SIZE, PADDING
from jaxarc.errors import JaxarcError
from jaxarc.files import write_whole
from jaxarc.tasks.registry import NO_TASK, task_id_of
from jaxarc.types import JaxArcTask

MAGIC = b"jaxarc state 1\n"
_FIELDS: Final = {"task_id": str, "task_checksum": str, "task_shape": list, "leaves": list, "payload_sha256": str}
_MOST_OF_SHAPE: Final = (1000, 1000, MAX_GRID_SIZE, MAX_GRID_SIZE)  # slots for tests and demonstrations, rows, columns
State = TypeVar("State", bound="TaskState")


class StateFileError(JaxarcError, ValueError):
    """A state file is damaged, of another kind, or does not fit what it is loaded into."""


class TaskState(Protocol):
    """A state that carries its task."""

    @property
    def task_data(self) -> Any: ...
    @property
    def original_task(self) -> Any:
        """The task as it stands in the data, whatever the episode changes in it."""
        ...

    @property
    def task_index(self) -> Any: ...
    def with_task(self, task: JaxArcTask) -> Self:
        """Return the state with this task attached and its index set."""
        ...


class Parser(Protocol):
    """Where tasks come from, such as a :class:`jaxarc.datasets.TaskSet`."""

    def get_task_by_id(self, task_id: str) -> JaxArcTask: ...


def extract_task_id_from_index(index: int | jax.Array) -> str | None:
    """Return the id of a task index of this process; None for -1, the index of a task without an id.

    Raises:
        ValueError: the index is below -1, or not one number.
        UnknownTaskError: a ``KeyError``; no task was registered under the index.
    """
    number = np.asarray(index)
    if number.ndim != 0:
        raise ValueError(f"one task index was expected, got an array of shape {number.shape}")
    if number < NO_TASK:
        raise ValueError(f"a task index is {NO_TASK} or more, got {int(number)}")
    return None if number == NO_TASK else task_id_of(int(number))


def save_state_efficiently(state: TaskState, path: str | Path) -> Path:
    """Write a state of one environment without its task; the file keeps the task's id and a checksum of its grids.

    Args:
        state: from ``arc_reset`` or ``arc_step``, not batched.
        path: file to write, whole or not at all; after a power cut it may be damaged, which the reader finds.

    Returns:
        The path.

    Raises:
        ValueError: the state is batched, carries no task, or its task has no id (see ``register_task``).
    """
    if not jax.tree.leaves(state):
        raise TypeError(f"a state was expected, got {type(state).__name__}; save what arc_reset or arc_step returned")
    if not isinstance(state.task_data, JaxArcTask):
        raise ValueError("the state carries no task; states of jaxarc.make are saved with their params by a checkpoint")
    # One copy to the host: every later look at the state is NumPy and costs no call of JAX, each of which takes
    # longer than compressing the whole state does.
    state = jax.tree.map(np.asarray, state)
    if np.ndim(state.task_index) != 0:
        raise ValueError(
            "a batch of states was given; save one environment's state: jax.tree.map(lambda x: x[i], states)"
        )
    task_id = extract_task_id_from_index(state.task_index)
    if task_id is None:
        raise ValueError("the state's task has no id; make it with task_index=register_task(task_id)")
    # The file: a magic word, the checksum of the header, the header as one line of JSON, and the packed arrays, whose
    # own checksum is in the header. The task is named, not stored.
    leaves = _leaves(state)
    payload = zlib.compress(b"".join(leaf.tobytes() for leaf in leaves), level=6)
    header = {
        "task_id": task_id,
        "task_checksum": task_checksum(state.original_task),
        "task_shape": [*state.task_data.test_input_grids.shape[:1], *state.task_data.input_grids_examples.shape],
        "leaves": [[leaf.dtype.str, list(leaf.shape)] for leaf in leaves],
        "payload_sha256": hashlib.sha256(payload).hexdigest(),
    }
    line = json.dumps(header, sort_keys=True).encode()
    check = hashlib.sha256(line).hexdigest().encode()
    return write_whole(path, MAGIC + check + b"\n" + line + b"\n" + payload, flush=False)


def load_state_efficiently(path: str | Path, parser: Parser, dummy_state: State) -> State:
    """Read a state and attach its task again.

    Args:
        path: file written by :func:`save_state_efficiently`, in this process or another.
        parser: finds the task by its id.
        dummy_state: any state made with the same config; gives structure and shapes.

    Returns:
        The state, equal to the saved one bit for bit.

    Raises:
        FileNotFoundError: there is no such file.
        StateFileError: a ``ValueError``; the file is damaged or foreign, does not fit the dummy state, or the parser's
            task differs from the one that was saved.
        KeyError: the parser has no task of that id.
    """
    header, packed = _read(Path(path))
    expected = _leaves(dummy_state)
    wanted = [[leaf.dtype.str, list(leaf.shape)] for leaf in expected]
    if header["leaves"] != wanted:
        raise StateFileError(
            f"{path}: the saved state has arrays {str(header['leaves'])[:600]}, but dummy_state has {wanted}; make "
            "dummy_state with the config of the saved state"
        )
    payload = _unpacked(packed, sum(leaf.nbytes for leaf in expected), Path(path))
    task = parser.get_task_by_id(header["task_id"])
    if task_checksum(task) != header["task_checksum"]:
        raise StateFileError(
            f"{path}: task {header['task_id']!r} of the parser differs from the saved one (other grids or order of "
            "pairs); use the dataset version that the state was saved with"
        )
    # The arrays stand one after the other without separators; the expected sizes cut them apart.
    arrays = []
    start = 0
    for leaf in expected:
        end = start + leaf.nbytes
        arrays.append(jnp.asarray(np.frombuffer(payload[start:end], leaf.dtype).reshape(leaf.shape)))
        start = end
    state = jax.tree.unflatten(jax.tree.structure(_without_task(dummy_state)), arrays)
    return state.with_task(_reshaped(task, *header["task_shape"]))


def task_checksum(task: JaxArcTask) -> str:
    """SHA-256 of the task's pairs, whatever canvas they are padded to."""
    digest = hashlib.sha256()
    sides = [
        (task.input_grids_examples, task.output_grids_examples, int(task.num_train_pairs)),
        (task.test_input_grids, task.true_test_output_grids, int(task.num_test_pairs)),
    ]
    for inputs, outputs, count in sides:
        digest.update(f"{count} pairs\n".encode())
        pairs = zip(np.asarray(inputs)[:count], np.asarray(outputs)[:count], strict=True)
        for grid in (grid for pair in pairs for grid in pair):
            # Only the active area counts, with its size in front: a 2x3 and a 3x2 grid of the same bytes differ.
            height = int((grid[:, 0] >= 0).sum())
            width = int((grid[0] >= 0).sum())
            digest.update(f"{height}x{width}\n".encode() + grid[:height, :width].tobytes())
    return digest.hexdigest()


def _without_task(state: State) -> State:
    return eqx.tree_at(lambda s: s.task_data, state, None, is_leaf=lambda x: x is None)


def _leaves(state: TaskState) -> list[np.ndarray]:
    """Return the arrays of a state without those of its task, in the order of ``jax.tree.leaves``."""
    task = state.task_data
    # The task is taken as one leaf, so that its arrays can be left out together.
    nodes = jax.tree.leaves(state, is_leaf=lambda node: node is task)
    return [np.asarray(node, order="C") for node in nodes if node is not task]


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Check every part of a state file and return its header and its compressed leaves."""
    if not path.is_file():
        raise FileNotFoundError(f"Serialized state file not found: {path}")
    content = path.read_bytes()
    if not content.startswith(MAGIC):
        raise StateFileError(f"{path}: not a state file of this version, it does not begin with {MAGIC!r}")
    # In the order of trust: the magic word, the header's checksum, its fields, and
    # then what it says about the contents.
    check, _, rest = content[len(MAGIC) :].partition(b"\n")
    line, _, packed = rest.partition(b"\n")
    if hashlib.sha256(line).hexdigest().encode() != check:
        raise StateFileError(f"{path}: damaged, the header does not match its checksum; save the state again")
    header = _header(line)
    if header is None:
        raise StateFileError(f"{path}: its header does not say what a state's says; save the state again")
    if hashlib.sha256(packed).hexdigest() != header["payload_sha256"]:
        raise StateFileError(f"{path}: damaged or cut short, the contents do not match their checksum; save it again")
    return header, packed


def _header(line: bytes) -> dict[str, Any] | None:
    """Read a header; None where it lacks a field, or has one of another type."""
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(header, dict) or not all(type(header.get(name)) is kind for name, kind in _FIELDS.items()):
        return None
    shape = header["task_shape"]
    fits = len(shape) == len(_MOST_OF_SHAPE) and all(type(side) is int for side in shape)
    return header if fits and all(0 < side <= most for side, most in zip(shape, _MOST_OF_SHAPE, strict=True)) else None


def _unpacked(packed: bytes, num_bytes: int, path: Path) -> bytes:
    """Uncompress as many bytes as a state has, whatever was packed."""
    unpacker = zlib.decompressobj()
    try:
        payload = unpacker.decompress(packed, num_bytes + 1)
    except zlib.error as error:
        raise StateFileError(f"{path}: its contents are not packed as a state's ({error}); save it again") from error
    if len(payload) != num_bytes:
        raise StateFileError(f"{path}: its contents are not of {num_bytes} bytes as its arrays; save the state again")
    return payload


def _reshaped(task: JaxArcTask, num_tests: int, num_train: int, height: int, width: int) -> JaxArcTask:
    """Give a task the slots and the canvas that the saved one had; only padding is added or cut."""

    def fit(array: jax.Array, slots: int, fill: int | bool) -> np.ndarray:
        old = np.asarray(array)
        new = np.full((slots, height, width), fill, old.dtype)
        kept = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, new.shape, strict=True))
        new[kept] = old[kept]
        return new

    return JaxArcTask(
        input_grids_examples=fit(task.input_grids_examples, num_train, PADDING),
        input_masks_examples=fit(task.input_masks_examples, num_train, False),
        output_grids_examples=fit(task.output_grids_examples, num_train, PADDING),
        output_masks_examples=fit(task.output_masks_examples, num_train, False),
        num_train_pairs=task.num_train_pairs,
        test_input_grids=fit(task.test_input_grids, num_tests, PADDING),
        test_input_masks=fit(task.test_input_masks, num_tests, False),
        true_test_output_grids=fit(task.true_test_output_grids, num_tests, PADDING),
        true_test_output_masks=fit(task.true_test_output_masks, num_tests, False),
        num_test_pairs=task.num_test_pairs,
        task_index=task.task_index,
    )
