"""Tasks with more pairs than an episode shows: each reset draws some of them."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int8, Int32, UInt32

from jaxarc.constants import MAX_TRACKED_PAIRS
from jaxarc.device_arrays import own_arrays
from jaxarc.prng import as_typed_key, to_index
from jaxarc.tasks.buffer import TaskGenerator, packed_pairs
from jaxarc.tasks.packed_tasks import PackedTasks
from jaxarc.tasks.raw_task import NUM_SHOWN, RawTask, check_canvas
from jaxarc.types import PRNGKey


class PairPool(TaskGenerator):
    """Draws the pairs of an episode from all pairs of its task, without repetition; a task has any number of pairs.

    Pairs stand one after the other, task by task: pair ``p`` of task ``t`` is row ``first_pair[t] + p``. The drawn
    pairs are part of the state, as those of a rule are.
    """

    inputs: Int8[Array, "N HW"] = eqx.field(converter=own_arrays)  # colors 0..9, -1 padding
    outputs: Int8[Array, "N HW"] = eqx.field(converter=own_arrays)  # colors 0..9, -1 padding
    first_pair: Int32[Array, " T"] = eqx.field(converter=own_arrays)
    pair_count: Int32[Array, " T"] = eqx.field(converter=own_arrays)  # num_train + num_test or more
    registry_index: Int32[Array, " T"] = eqx.field(converter=own_arrays)  # for jaxarc.tasks.task_id_of
    grid_shape: tuple[int, int] = eqx.field(static=True)  # rows and columns (H, W) of the canvas
    num_train: int = eqx.field(static=True)  # demonstrations that an episode shows
    num_test: int = eqx.field(static=True)  # tests of an episode
    most_pairs: int = eqx.field(static=True)  # of the task that has most

    def __repr__(self) -> str:
        height, width = self.grid_shape
        return (
            f"PairPool({self.num_tasks} tasks, {self.inputs.shape[0]} pairs, {self.num_train} train + "
            f"{self.num_test} test of a task drawn, canvas {height}x{width})"
        )

    def generate(self, key: PRNGKey, task_index: Int32[Array, ""]) -> tuple[Int8[Array, "P HW"], Int8[Array, "P HW"]]:
        """Draw the pairs of one task: inputs and outputs, demonstrations first."""
        drawn = draw_distinct(key, self.pair_count[task_index], self.num_train + self.num_test, self.most_pairs)
        row = self.first_pair[task_index] + drawn
        return self.inputs[row], self.outputs[row]


def draw_distinct(key: PRNGKey, count: Int32[Array, ""], num_drawn: int, most: int) -> Int32[Array, " P"]:
    """Draw different numbers 0 .. count - 1 in random order, each order as likely as any other.

    The second is drawn from one number less, and steps over the first; the third steps over both, the smaller one
    first. From 0 .. 4 the draws 2, 2, 1 give 2, then 3, which steps over the 2, then 1. ``most`` is a static bound of
    ``count``.
    """
    # Words past the first P are the second ones of large draws.
    num_words = num_drawn if most <= 2**16 else 2 * num_drawn
    words: UInt32[Array, " words"] = jax.random.bits(as_typed_key(key), (num_words,), jnp.uint32)
    drawn: list[Array] = []
    taken: list[Array] = []  # the same numbers, the smallest first
    for index in range(num_drawn):
        number = to_index(words[index::num_drawn], count - index, most)
        for one in taken:
            number = number + (number >= one).astype(jnp.int32)
        drawn.append(number)
        # Insert the new number: each comparison keeps the smaller one and carries the larger one on. Into 1 4, the 3
        # stays behind the 1 and before the 4, which is carried to the end: 1 3 4.
        carried = number
        for rank, one in enumerate(taken):
            taken[rank] = jnp.minimum(one, carried)
            carried = jnp.maximum(one, carried)
        taken.append(carried)
    return jnp.stack(drawn)


def pack_pool_tasks(
    tasks: Sequence[RawTask], grid_shape: tuple[int, int], num_train: int = NUM_SHOWN, num_test: int = 1
) -> PairPool:
    """Pad all pairs of some tasks, those of their pools too, to one canvas and put them on the default device.

    Raises:
        ValueError: there is no task, one has fewer pairs than an episode needs or does not fit the canvas, or a number
            is out of range.
    """
    for name, count in (("num_train", num_train), ("num_test", num_test)):
        if not 1 <= count <= MAX_TRACKED_PAIRS:
            raise ValueError(f"{name} must be in 1..{MAX_TRACKED_PAIRS}, got {count}; change it")
    packed = PackedTasks.of(tasks)
    pair_count = packed.counts.sum(axis=1).astype(np.int32)
    for task_id, count in zip(packed.task_ids, pair_count.tolist(), strict=True):
        if count < num_train + num_test:
            raise ValueError(
                f"task {task_id!r} has {count} pairs, and an episode draws {num_train} + {num_test}; lower num_train, "
                "or leave the task out"
            )
    arrays = packed_pairs(packed, grid_shape)
    return PairPool(
        **jax.device_put(arrays | {"pair_count": pair_count}),
        grid_shape=check_canvas(grid_shape),
        num_train=num_train,
        num_test=num_test,
        most_pairs=int(pair_count.max()),
    )
