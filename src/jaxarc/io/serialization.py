"""States on disk without their task: the file names the task, and the reader brings it.

A file is a line of magic, the checksum of all that follows, a line of JSON about the task and the arrays, and the bytes
of the arrays, compressed by zlib. A wrong, damaged or foreign file is an error, never a wrong state.
"""

import dataclasses
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any, Final, Protocol

import jax
import numpy as np

from jaxarc.constants import MAX_GRID_SIZE, PADDING
from jaxarc.errors import JaxarcError
from jaxarc.files import write_whole
from jaxarc.tasks.registry import NO_TASK, task_id_of
from jaxarc.types import JaxArcTask

MAGIC = b"jaxarc state 1\n"
_MOST_OF_SHAPE: Final = (1000, 1000, MAX_GRID_SIZE, MAX_GRID_SIZE)  # slots for tests and demonstrations, rows, columns


class StateFileError(JaxarcError, ValueError):
    """A state file is damaged, of another kind, or does not fit what it is loaded into."""


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


def save_state_efficiently(state: Any, path: str | Path) -> Path:
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
    bare = dataclasses.replace(state, task_data=None)
    header = {
        "task_id": task_id,
        "task_checksum": task_checksum(state.original_task),
        "task_shape": _shape_of(state.task_data),
        "arrays": _layout_of(bare),
    }
    packed = zlib.compress(b"".join(leaf.tobytes() for leaf in jax.tree.leaves(bare)), level=1)
    content = json.dumps(header, sort_keys=True).encode() + b"\n" + packed
    return write_whole(path, MAGIC + hashlib.sha256(content).digest() + content, flush=False)


def load_state_efficiently(path: str | Path, parser: Parser, dummy_state: Any) -> Any:
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
    like = dataclasses.replace(dummy_state, task_data=None)
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf.nbytes for leaf in leaves])
    try:
        content = zlib.decompressobj().decompress(packed, int(ends[-1]) + 1)
    except zlib.error:
        content = b""
    if header["arrays"] != _layout_of(like) or len(content) != ends[-1]:
        raise StateFileError(
            f"{path}: its arrays, {header['arrays']!s:.200}, are not those of dummy_state, {_layout_of(like)!s:.200}; "
            "make dummy_state with the config of the saved state"
        )
    parts = zip(np.split(np.frombuffer(content, np.uint8), ends[:-1]), leaves, strict=True)
    arrays = [part.view(leaf.dtype).reshape(leaf.shape) for part, leaf in parts]
    state = jax.device_put(jax.tree.unflatten(structure, arrays))  # at once: a call for each takes longer
    task = parser.get_task_by_id(header["task_id"])
    if task_checksum(task) != header["task_checksum"]:
        raise StateFileError(
            f"{path}: task {header['task_id']!r} of the parser differs from the saved one (other grids or order of "
            "pairs); use the dataset version that the state was saved with"
        )
    is_as_saved = _shape_of(task) == header["task_shape"]
    return state.with_task(task if is_as_saved else _reshaped(task, *header["task_shape"]))


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


def _layout_of(state: Any) -> list[Any]:
    """What must be the same of two states for the arrays of one to be those of the other."""
    arrays = [[str(leaf.dtype), list(leaf.shape)] for leaf in jax.tree.leaves(state)]
    return [list(state.grid_shape), state.selection_format, *arrays]


def _shape_of(task: JaxArcTask) -> list[int]:
    """Slots for tests and for demonstrations, rows and columns."""
    return [task.test_input_grids.shape[0], *task.input_grids_examples.shape]


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the header of a state file and its compressed leaves."""
    if not path.is_file():
        raise FileNotFoundError(f"Serialized state file not found: {path}")
    content = path.read_bytes()
    if not content.startswith(MAGIC):
        raise StateFileError(f"{path}: not a state file of this version, it does not begin with {MAGIC!r}")
    digest_end = len(MAGIC) + hashlib.sha256().digest_size
    rest = content[digest_end:]
    if hashlib.sha256(rest).digest() != content[len(MAGIC) : digest_end]:
        raise StateFileError(f"{path}: damaged or cut short, it does not match its checksum; save the state again")
    line, _, packed = rest.partition(b"\n")
    try:
        header = json.loads(line)
        sides = zip(header["task_shape"], _MOST_OF_SHAPE, strict=True)
        are_texts = type(header["task_id"]) is type(header["task_checksum"]) is str
        if are_texts and "arrays" in header and all(type(side) is int and 0 < side <= most for side, most in sides):
            return header, packed
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise StateFileError(f"{path}: its header does not say what a state's says; save the state again")


def _reshaped(task: JaxArcTask, num_tests: int, num_train: int, height: int, width: int) -> JaxArcTask:
    """Give a task the slots and the canvas that the saved one had; only padding is added or cut."""

    def fit(array: jax.Array, slots: int) -> np.ndarray:
        old = np.asarray(array)
        new = np.full((slots, height, width), PADDING, old.dtype)
        kept = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, new.shape, strict=True))
        new[kept] = old[kept]
        return new

    return JaxArcTask(
        input_grids_examples=fit(task.input_grids_examples, num_train),
        output_grids_examples=fit(task.output_grids_examples, num_train),
        num_train_pairs=task.num_train_pairs,
        test_input_grids=fit(task.test_input_grids, num_tests),
        true_test_output_grids=fit(task.true_test_output_grids, num_tests),
        num_test_pairs=task.num_test_pairs,
        task_index=task.task_index,
    )
