"""From grids of any size to one padded task."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from jaxarc.tasks.raw_task import UNKNOWN, Pair, RawTask, check_canvas, check_fits, pad_grids
from jaxarc.tasks.registry import NO_TASK, register_task, task_id_of
from jaxarc.types import JaxArcTask

MOCK_TASK_ID: Final = "jaxarc/mock"
_MOCK_SIDE = 10  # the largest side of a mock grid
_MOCK_RECOLOR = np.array([0, 2, 3, 1], np.int8)  # black stays; 1 -> 2 -> 3 -> 1


def create_task(
    train: Sequence[tuple[Any, Any]],
    test: Sequence[tuple[Any, Any]],
    grid_shape: tuple[int, int] | None = None,
    task_index: int = NO_TASK,
    max_pairs: tuple[int, int] | None = None,
) -> JaxArcTask:
    """Build a padded task from ``(input, output)`` pairs of integer arrays or nested lists.

    The task has one slot per pair that exists, or as many as ``max_pairs`` says. Grids stand at the top left, padded
    with -1.

    Args:
        train: demonstration pairs, at least one; grids ``int[h, w]`` of any integer dtype, colors 0..9.
        test: test pairs, at least one, with their outputs.
        grid_shape: rows and columns ``(H, W)`` of the canvas; by default the smallest that holds every grid.
        task_index: what ``register_task(task_id)`` returned; -1 for a task without an id.
        max_pairs: slots for demonstrations and for tests. Tasks with as many slots share one program of ``arc_reset``
            and can be stacked, whatever number of pairs they have.

    Raises:
        TaskFormatError: a ``ValueError``; a pair or grid breaks a rule of the format.
        ValueError: a grid does not fit ``grid_shape``, that is not a canvas, or there are more pairs than slots.
    """
    name = "(unnamed)" if int(task_index) == NO_TASK else task_id_of(task_index)
    return pad_task(RawTask(name, tuple(train), tuple(test)), grid_shape, task_index, max_pairs)


def pad_task(
    task: RawTask,
    grid_shape: tuple[int, int] | None = None,
    task_index: int = NO_TASK,
    max_pairs: tuple[int, int] | None = None,
) -> JaxArcTask:
    """Pad a task that is already checked to one canvas, by default the smallest that holds it; see :func:`create_task`.

    Raises:
        ValueError: a grid does not fit ``grid_shape``, that is not a canvas, or there are more pairs than slots.
    """
    shape = task.grid_shape if grid_shape is None else check_canvas(grid_shape)
    check_fits(task, shape)
    slots = (len(task.train), len(task.test)) if max_pairs is None else max_pairs
    for split, count, most in zip(("train", "test"), (len(task.train), len(task.test)), slots, strict=True):
        if count > most:
            raise ValueError(
                f"task {task.task_id!r} has {count} {split} pairs, got max_pairs={tuple(slots)}; raise it, or leave "
                "the task out"
            )
    inputs, outputs = _pad_pairs(task.train, shape, slots[0])
    test_inputs, test_outputs = _pad_pairs(task.test, shape, slots[1])
    return JaxArcTask(
        input_grids_examples=inputs,
        output_grids_examples=outputs,
        num_train_pairs=len(task.train),
        test_input_grids=test_inputs,
        true_test_output_grids=test_outputs,
        num_test_pairs=len(task.test),
        task_index=task_index,
    )


def create_mock_task(height: int = 30, width: int = 30) -> JaxArcTask:
    """Build a small deterministic task for examples and tests: three demonstrations and one test.

    The rule recolors 1 to 2, 2 to 3 and 3 to 1 and leaves black as it is, so no pair is solved at the start. Grids are
    at most 10x10, one row shorter from pair to pair where there is room, on a canvas of ``height`` x ``width``.

    Raises:
        ValueError: a side of the canvas is not in 1..30.
    """
    return pad_task(mock_raw_task(height, width), (height, width), register_task(MOCK_TASK_ID))


def mock_raw_task(height: int = 30, width: int = 30) -> RawTask:
    """Build the unpadded grids of :func:`create_mock_task`."""
    check_canvas((height, width))
    pairs = tuple(_mock_pair(index, min(height, _MOCK_SIDE), min(width, _MOCK_SIDE)) for index in range(4))
    return RawTask(MOCK_TASK_ID, train=pairs[:3], test=pairs[3:])


def _mock_pair(index: int, height: int, width: int) -> Pair:
    row, column = np.indices((max(height - index, min(height, 2)), width))
    stripes = row + 2 * column if index % 2 == 0 else 2 * row + column
    grid = ((stripes + 1 + index % 3) % 4).astype(np.int8)  # the top-left cell is never black
    return grid, _MOCK_RECOLOR[grid]


def _pad_pairs(pairs: tuple[Pair, ...], shape: tuple[int, int], slots: int) -> tuple[np.ndarray, np.ndarray]:
    filled = [*pairs, *[(UNKNOWN, UNKNOWN)] * (slots - len(pairs))]  # a grid of no cells leaves its slot all padding
    return pad_grids([pair[0] for pair in filled], shape), pad_grids([pair[1] for pair in filled], shape)
