"""The tasks that a reset draws from, a buffer of given tasks or a generator of new ones, and the draw of one by weight.

A buffer is a few device arrays, so that any number of environments share one copy of all tasks.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int8, Int32

from jaxarc.device_arrays import own_arrays
from jaxarc.fusion import compiles_for_cpu, compute_once
from jaxarc.prng import as_typed_key
from jaxarc.tasks.augmentation import turn_all
from jaxarc.tasks.packed_tasks import PackedTasks
from jaxarc.tasks.raw_task import RawTask, check_canvas, check_fits
from jaxarc.tasks.registry import register_task
from jaxarc.types import JaxArcTask, PRNGKey


class TaskSource(eqx.Module):
    """Source of the tasks that a reset draws: stored in a buffer, or made by a generator. Abstract.

    A task index is 0 .. ``num_tasks - 1``.
    """

    grid_shape: eqx.AbstractVar[tuple[int, int]]  # rows and columns (H, W) of the canvas, static
    registry_index: eqx.AbstractVar[Int32[Array, " T"]]  # for jaxarc.tasks.task_id_of; -1: no id

    @property
    @abc.abstractmethod
    def num_slots(self) -> int:
        """Demonstrations of the task that has most, a static number."""

    @property
    @abc.abstractmethod
    def max_symmetries(self) -> int:
        """How many symmetries of a task an augmentation may choose from: 1, 4 or 8."""

    @property
    def num_tasks(self) -> int:
        """How many tasks, or rules of tasks, there are to draw from, a static number."""
        return self.registry_index.shape[-1]

    @abc.abstractmethod
    def num_train_of(self, task_index: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        """How many demonstrations a task has."""

    @abc.abstractmethod
    def num_test_of(self, task_index: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        """How many tests a task has."""

    @abc.abstractmethod
    def count_pairs(self) -> tuple[Int32[Array, " T"] | int, Int32[Array, " T"] | int]:
        """Return how many demonstrations and how many tests each task has; a number where all have as many."""


class TaskBuffer(TaskSource):
    """Pairs of all tasks one after the other; within a task demonstrations first, then tests.

    Demonstration ``p`` of task ``t`` is row ``first_pair[t] + p``, its test ``q`` is row
    ``first_pair[t] + num_train[t] + q``. Two tasks with 3 + 1 and 2 + 2 pairs have 8 rows and ``first_pair`` 0, 4: the
    second test of the second task is row ``4 + 2 + 1 = 7``. Masks are derived: a cell is active where it is not -1.
    A buffer with several symmetries repeats all rows for each, ``symmetry * num_pairs`` further down.
    """

    inputs: Int8[Array, "N HW"] = eqx.field(converter=own_arrays)  # colors 0..9, -1 padding
    outputs: Int8[Array, "N HW"] = eqx.field(converter=own_arrays)  # colors 0..9, -1 padding
    first_pair: Int32[Array, " T"] = eqx.field(converter=own_arrays)  # 0 .. num_pairs - 1
    num_train: Int32[Array, " T"] = eqx.field(converter=own_arrays)  # 1 .. 31
    num_test: Int32[Array, " T"] = eqx.field(converter=own_arrays)  # 1 .. 31
    registry_index: Int32[Array, " T"] = eqx.field(
        converter=own_arrays
    )  # for jaxarc.tasks.task_id_of; -1 for a task without an id
    grid_shape: tuple[int, int] = eqx.field(static=True)  # rows and columns (H, W) of the canvas
    most_train: int = eqx.field(static=True)  # demonstrations of the task that has most
    num_symmetries: int = eqx.field(static=True, default=1)  # 1, 4 or 8; see jaxarc.tasks.augmentation

    def __repr__(self) -> str:
        height, width = self.grid_shape
        return f"TaskBuffer({self.num_tasks} tasks, {self.num_pairs} pairs, canvas {height}x{width})"

    @property
    def num_slots(self) -> int:
        return self.most_train

    @property
    def max_symmetries(self) -> int:
        return self.num_symmetries

    def num_train_of(self, task_index: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        return self.num_train[task_index]

    def num_test_of(self, task_index: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        return self.num_test[task_index]

    def count_pairs(self) -> tuple[Int32[Array, " T"], Int32[Array, " T"]]:
        return self.num_train, self.num_test

    @property
    def num_pairs(self) -> int:
        """How many pairs all tasks have, a static number."""
        return self.inputs.shape[-2] // self.num_symmetries

    def with_symmetries(self, count: int) -> "TaskBuffer":
        """Return a buffer that also holds every pair turned and mirrored, ``count`` times as large.

        Args:
            count: 1, 4 (flips; the canvas may have any shape) or 8 (rotations and diagonals too; a square canvas).

        Raises:
            ValueError: another count, or 8 on a canvas that is not square.
        """
        height, width = self.grid_shape
        if count not in (1, 4, 8):
            raise ValueError(f"a buffer holds 1, 4 or 8 symmetries of its tasks, got {count}; choose one of these")
        if count == 8 and height != width:
            raise ValueError(
                f"8 symmetries turn rows into columns, which needs a square canvas, got {height}x{width}; "
                "use a square one, or the 4 flips"
            )
        if count == self.num_symmetries:
            return self
        # Rows under symmetry 0 are the pairs themselves, so the buffer is turned from these, whatever it holds now.
        inputs, outputs = (
            turn_all(grids[: self.num_pairs], self.grid_shape, count) for grids in (self.inputs, self.outputs)
        )
        return dataclasses.replace(self, inputs=inputs, outputs=outputs, num_symmetries=count)


class TaskGenerator(TaskSource):
    """Makes a new task at every reset; abstract.

    A task index is the index of the rule that the task follows. Every task has as many pairs as the fields say.
    """

    grid_shape: eqx.AbstractVar[tuple[int, int]]  # rows and columns (H, W) of the canvas, static
    num_train: eqx.AbstractVar[int]  # demonstrations of every task, static
    num_test: eqx.AbstractVar[int]  # tests of every task, static
    registry_index: eqx.AbstractVar[Int32[Array, " T"]]  # of each rule's name, for jaxarc.tasks.task_id_of

    @property
    def num_slots(self) -> int:
        return self.num_train

    @property
    def max_symmetries(self) -> int:
        """All 8: a generated task is turned after it was made."""
        return 8

    def num_train_of(self, task_index: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        return jnp.full(task_index.shape, self.num_train, jnp.int32)

    def num_test_of(self, task_index: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        return jnp.full(task_index.shape, self.num_test, jnp.int32)

    def count_pairs(self) -> tuple[int, int]:
        return self.num_train, self.num_test

    @abc.abstractmethod
    def generate(self, key: PRNGKey, task_index: Int32[Array, ""]) -> tuple[Int8[Array, "P HW"], Int8[Array, "P HW"]]:
        """Make the pairs of one task: inputs and outputs, demonstrations first; colors 0..9, -1 padding."""


def pack_tasks(tasks: Sequence[RawTask], grid_shape: tuple[int, int]) -> TaskBuffer:
    """Pad tasks to one canvas, register their ids and put them on the default device.

    Raises:
        ValueError: there is no task, one does not fit the canvas, or ``grid_shape`` is not a canvas.
    """
    if not isinstance(tasks, PackedTasks) or tasks.has_pools:
        tasks = [RawTask.of_checked_pairs(task.task_id, task.train, task.test) for task in tasks]
    packed = PackedTasks.of(tasks)
    arrays = packed_pairs(packed, grid_shape)
    num_train, num_test, _ = packed.counts.T.astype(np.int32)
    counts = {"num_train": num_train, "num_test": num_test}
    most_train = int(num_train.max())
    return TaskBuffer(**jax.device_put(arrays | counts), grid_shape=check_canvas(grid_shape), most_train=most_train)


def packed_pairs(tasks: PackedTasks, grid_shape: tuple[int, int]) -> dict[str, Any]:
    """Lay all pairs of each task out in NumPy, for one transfer, by the names of their fields; register the ids.

    Raises:
        ValueError: there is no task, one does not fit the canvas, or ``grid_shape`` is not a canvas.
    """
    if not tasks:
        raise ValueError("a task buffer needs at least one task, got none; pass the tasks to play")
    shape = check_canvas(grid_shape)
    if (too_large := tasks.first_too_large(shape)) is not None:
        check_fits(too_large, shape)
    inputs, outputs = tasks.padded(shape)
    # Running sums of the counts: tasks of 4, 4 and 3 pairs begin at 0, 4 and 8.
    num_pairs = tasks.counts.sum(axis=1)
    return {
        "inputs": inputs,
        "outputs": outputs,
        "first_pair": (np.cumsum(num_pairs) - num_pairs).astype(np.int32),
        "registry_index": np.array([register_task(task_id) for task_id in tasks.task_ids], np.int32),
    }


def buffer_of_task(task: JaxArcTask) -> TaskBuffer:
    """Turn one padded task into a buffer of one task; pure, works under ``jit``.

    The buffer has a row for every slot of the task, used or not. Tests follow the used demonstrations directly: a task
    with 3 slots for demonstrations of which 2 are used, and 1 test, has the rows 0, 1, test 0, test 0. Rows past the
    last test repeat a test slot, and no episode reads them.
    """
    if not isinstance(task, JaxArcTask):
        raise TypeError(f"a JaxArcTask was expected, got {type(task).__name__}; see jaxarc.tasks.create_task")
    height, width = task.grid_shape
    train_slots = task.input_grids_examples.shape[0]
    test_slots = task.test_input_grids.shape[0]
    row = jnp.arange(train_slots + test_slots, dtype=jnp.int32)
    test_row = jnp.minimum(row - task.num_train_pairs, test_slots - 1) + train_slots
    slot = jnp.where(row < task.num_train_pairs, row, test_row)
    inputs = jnp.concatenate([task.input_grids_examples, task.test_input_grids])
    outputs = jnp.concatenate([task.output_grids_examples, task.true_test_output_grids])
    return TaskBuffer(
        inputs=inputs.reshape(-1, height * width)[slot],
        outputs=outputs.reshape(-1, height * width)[slot],
        first_pair=jnp.zeros(1, jnp.int32),
        num_train=task.num_train_pairs[None],
        num_test=task.num_test_pairs[None],
        registry_index=task.task_index[None],
        grid_shape=(height, width),
        most_train=train_slots,
    )


# What the largest weight has to be. A processor may take numbers below 1e-38 for 0, and lose what matters beside less.
SMALLEST_WEIGHT: Final = 1e-30
# Up to so many an accelerator compares a draw with all, by one kernel, instead of searching by three.
FEW_TASKS: Final = 2048


def sample_task(key: PRNGKey, weights: Float[Array, " T"]) -> Int32[Array, ""]:
    """Draw a task with probability proportional to its weight.

    A task whose weight is not positive is never drawn. Weights need not sum to one; one below about 1e-7 of the sum
    (float32) may be lost to rounding, so a table of equal weights may hold millions of tasks. If no weight is positive
    the draw is task 0: :func:`jaxarc.datasets.task_weights` refuses such weights.
    """
    return sample_task_index(jax.random.uniform(as_typed_key(key), (), jnp.float32), weights)


def sample_task_index(fraction: Float32[Array, ""], weights: Float[Array, " T"]) -> Int32[Array, ""]:
    """Find the task at a fraction, in [0, 1), of the cumulative weights; see :func:`sample_task`.

    The weights 1, 0, 3 have the sums 1, 1, 4. The fraction 0.2 is the threshold 0.8, and the first sum above it is that
    of task 0; 0.25 is the threshold 1.0, and the first sum above that is task 2. Task 1 adds nothing, so no threshold
    falls to it. Under ``vmap`` over fractions the sums are built once, and a draw costs O(log T); on an accelerator
    O(T) up to ``FEW_TASKS``.
    """
    steps = cumulative_weights(weights)
    threshold = fraction * steps[-1]
    # The product may round up to the whole sum, past which no task is: then the last task of positive weight is drawn,
    # the first at the whole sum.
    if not compiles_for_cpu() and weights.shape[0] <= FEW_TASKS:
        # Sums never fall, so those at or below the threshold and below the whole sum stand in front of the task drawn.
        is_before = ~(steps > compute_once(threshold)) & (steps < steps[-1])
        return jnp.sum(is_before, dtype=jnp.int32)
    drawn = jnp.searchsorted(steps, threshold, side="right", method=_search_method())
    last_positive = jnp.searchsorted(steps, steps[-1], side="left", method=_search_method())
    return jnp.minimum(drawn, last_positive).astype(jnp.int32)


def next_task_index(previous: Int32[Array, ""], weights: Float[Array, " T"]) -> Int32[Array, ""]:
    """Find the next task of positive weight; after the last comes the first.

    The next task is the first whose cumulative weight is above that of the previous one: with the sums 1, 1, 4 task 2
    follows task 0. After task 2 there is none, and the first sum above 0 is that of task 0.
    """
    steps = cumulative_weights(weights)

    def first_above(level: Float[Array, ""]) -> Int32[Array, ""]:
        return jnp.searchsorted(steps, level, side="right", method=_search_method()).astype(jnp.int32)

    # Past the last task the search returns T, so it starts again at the first sum above 0.
    following = first_above(steps[previous])
    return jnp.where(following < weights.shape[0], following, first_above(jnp.zeros_like(steps[0])))


def cumulative_weights(weights: Float[Array, " T"]) -> Float32[Array, " T"]:
    """Sum the positive weights from the left; the sum never falls, and stays the same where a weight is not positive.

    The sums are of :func:`scaled_weights`, in float32: in bfloat16 the sum of 400 ones would be 256.

    A parallel cumulative sum rounds differently from entry to entry: without the running maximum an entry of weight 0
    could stand a hair above its left neighbor and be drawn.
    """
    # Weights 1, 0, 3: the sums 1, 1, 4 with the middle one set to 0 are 1, 0, 4, and the running maximum is 1, 1, 4.
    weights = scaled_weights(weights)
    positive = weights > 0
    zeros = jnp.zeros_like(weights)
    sums = jnp.cumsum(jnp.where(positive, weights, zeros))
    return jax.lax.cummax(jnp.where(positive, sums, zeros))


def scaled_weights(weights: Float[Array, " T"]) -> Float32[Array, " T"]:
    """Divide weights by a power of two, so that the largest is in [1/2, 1) and no sum overflows; nothing is rounded.

    Of float64 only what float32 holds of their ratios is kept.
    """
    if weights.dtype.itemsize > 4:
        weights = weights / jnp.max(weights)
    weights = weights.astype(jnp.float32)
    # The exponent stands above 23 bits of fraction; it is 126 for 1/2 and 254 for 3e38. As 2**-128 is not normal,
    # the division is made in two steps, each by half of the exponent.
    bits = jax.lax.bitcast_convert_type(jnp.maximum(jnp.max(weights), 0), jnp.int32)
    exponent = (bits >> 23) - 126
    half = exponent >> 1
    power = lambda exponent: jax.lax.bitcast_convert_type((127 - exponent) << 23, jnp.float32)
    return weights * power(half) * power(exponent - half)


def uniform_weights(num_tasks: int) -> Float32[Array, " T"]:
    """Give every task the same weight; the weights sum to one.

    Raises:
        ValueError: there is no task.
    """
    if num_tasks < 1:
        raise ValueError(f"num_tasks must be at least 1, got {num_tasks}; load a dataset that has tasks")
    return jnp.asarray(np.full(num_tasks, 1.0 / num_tasks, np.float32))


def _search_method() -> str:
    """Return how a binary search is compiled: on a CPU as a loop, which compiles fast; elsewhere written out."""
    return "scan" if compiles_for_cpu() else "scan_unrolled"
