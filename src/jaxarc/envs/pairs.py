"""The pairs an episode may play: where they lie in a table, and how an operation goes from one to another."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int8, Int32

from jaxarc import constants as c
from jaxarc.envs.canvas import PairTable
from jaxarc.tasks.augmentation import Augmentation, augment_grid, recolor
from jaxarc.tasks.buffer import TaskBuffer, TaskGenerator, buffer_of_task
from jaxarc.types import JaxArcTask, PRNGKey


class PairSource(eqx.Module):
    """Pairs of one task, demonstrations or tests, and how an augmentation changes them; also of a batch of tasks."""

    table: PairTable
    first_row: Int32[Array, "*B"]  # row of pair 0 in the table
    count: Int32[Array, "*B"]  # pairs available, 1 or more
    order: Int8[Array, "*B P"] | None = None  # the pair that comes p-th lies order[p] rows further down; None: p
    colors: Int8[Array, "*B 10"] | None = None  # what the colors of loaded grids become; None: they stay
    num_open: Int32[Array, "*B"] | None = None  # pairs before the first with a hidden output; None: all are alike

    def hides(self, pair_index: Int32[Array, "*B"]) -> Bool[Array, "*B"] | None:
        """Whether the output of a pair is hidden; None where the mode says it of all pairs."""
        return None if self.num_open is None else pair_index >= self.num_open

    def row_of(self, pair_index: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        """Row of a pair in the table."""
        if self.order is None:
            return self.first_row + pair_index
        shown = jnp.take_along_axis(self.order, pair_index[..., None], axis=-1, mode="clip")[..., 0].astype(jnp.int32)
        return self.first_row + jnp.where(pair_index < self.order.shape[-1], shown, pair_index)

    def input_of(self, pair_index: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        """Load the input of a pair."""
        return self._load(self.table.input_rows, pair_index)

    def output_of(self, pair_index: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        """Load the output of a pair."""
        return self._load(self.table.output_rows, pair_index)

    def _load(self, rows_of: Callable[[Array], Array], pair_index: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        grid = rows_of(self.row_of(pair_index))
        return grid if self.colors is None else recolor(grid, self.colors)


def pairs_of_buffer(
    buffer: TaskBuffer, task_index: Int32[Array, "*B"], augmentation: Augmentation | None, mode: str
) -> PairSource:
    """Point at the pairs of one task of a buffer that a mode plays, as the augmentation changes them."""
    first, num_train = buffer.first_pair[task_index], buffer.num_train[task_index]
    table, order, colors = PairTable(buffer.inputs, buffer.outputs, buffer.row_loader), None, None
    if augmentation is not None:
        order, colors = augmentation.order, augmentation.colors
        if augmentation.symmetry is not None:
            first = first + augmentation.symmetry.astype(jnp.int32) * buffer.num_pairs
    if mode == "train":
        return PairSource(table, first, num_train, order, colors)
    num_test = buffer.num_test[task_index]
    if mode == "trials":
        return PairSource(table, first, num_train + num_test, order, colors, num_open=num_train)
    return PairSource(table, first + num_train, num_test, None, colors)


def pairs_of_table(table: PairTable, tasks: TaskGenerator, mode: str) -> PairSource:
    """Point at the pairs of a generated task, augmented already, that a mode plays."""
    if mode == "trials":
        both = jnp.int32(tasks.num_train + tasks.num_test)
        return PairSource(table, jnp.int32(0), both, num_open=jnp.int32(tasks.num_train))
    first, count = (0, tasks.num_train) if mode == "train" else (tasks.num_train, tasks.num_test)
    return PairSource(table, jnp.int32(first), jnp.int32(count))


def show_demonstrations(source: PairSource, num_slots: int, held_out: Int32[Array, ""] | None) -> PairTable:
    """Load all demonstrations of a task; slots past them, and the one that is held out, are all padding."""
    slot = jnp.arange(num_slots, dtype=jnp.int32)
    is_shown = slot < source.count
    if held_out is not None:
        is_shown = is_shown & (slot != held_out)
    load = lambda of: jnp.where(is_shown[:, None], jax.vmap(of)(slot), jnp.int8(c.PADDING))
    return PairTable(load(source.input_of), load(source.output_of))


def generate_pairs(
    key: PRNGKey, tasks: TaskGenerator, task_index: Int32[Array, ""], augmentation: Augmentation | None
) -> PairTable:
    """Make the pairs of a new task, turned and recolored by the augmentation; their order is random anyway."""
    inputs, outputs = tasks.generate(key, task_index)
    if augmentation is None:
        return PairTable(inputs, outputs)
    change = lambda grid: augment_grid(grid.reshape(tasks.grid_shape), augmentation).reshape(-1)
    return PairTable(jax.vmap(change)(inputs), jax.vmap(change)(outputs))


def pairs_of_task(task: JaxArcTask, grid_shape: tuple[int, int], mode: str) -> PairSource:
    """Point at the pairs of a single task that a mode plays, padded to the canvas when it is smaller.

    Raises:
        ValueError: the task is larger than the canvas.
    """
    task = on_canvas(task, grid_shape)
    if mode == "trials":
        return pairs_of_buffer(buffer_of_task(task), jnp.int32(0), None, mode)
    if mode == "train":
        grids, count = (task.input_grids_examples, task.output_grids_examples), task.num_train_pairs
    else:
        grids, count = (task.test_input_grids, task.true_test_output_grids), task.num_test_pairs
    inputs, outputs = (x.reshape(x.shape[0], -1) for x in grids)
    return PairSource(PairTable(inputs, outputs), jnp.int32(0), count)


def on_canvas(task: JaxArcTask, grid_shape: tuple[int, int]) -> JaxArcTask:
    """Pad a task to a canvas that is at least as large.

    Raises:
        ValueError: the task is larger than the canvas.
    """
    height, width = task.grid_shape
    if height > grid_shape[0] or width > grid_shape[1]:
        raise ValueError(
            f"the task is padded to {height}x{width}, which is larger than the canvas "
            f"{grid_shape[0]}x{grid_shape[1]}; raise dataset.max_grid_height and dataset.max_grid_width, or pad the "
            "task to less"
        )
    missing = ((0, 0), (0, grid_shape[0] - height), (0, grid_shape[1] - width))

    def pad(leaf: Array) -> Array:
        return jnp.pad(leaf, missing, constant_values=False if leaf.dtype == jnp.bool_ else c.PADDING)

    return jax.tree.map(lambda leaf: pad(leaf) if leaf.ndim == 3 else leaf, task)


def choose_pair(
    operation: Int32[Array, ""], pair_index: Int32[Array, ""], solved: Int32[Array, ""], count: Int32[Array, ""]
) -> tuple[Int32[Array, ""], Bool[Array, ""]]:
    """Find the pair that operations 35..41 lead to.

    Args:
        operation: any operation; others keep the pair.
        pair_index: the current pair.
        solved: bit ``i`` tells whether pair ``i`` is known to be solved.
        count: pairs available.

    Returns:
        The new pair, and whether the operation can apply: 40 and 41 cannot when every pair is solved.
    """
    is_next = (operation == c.NEXT_DEMO_PAIR) | (operation == c.NEXT_TEST_PAIR)
    is_previous = (operation == c.PREVIOUS_DEMO_PAIR) | (operation == c.PREVIOUS_TEST_PAIR)
    is_primary = (operation == c.FIRST_UNSOLVED_DEMO_PAIR) | (operation == c.FIRST_UNSOLVED_TEST_PAIR)
    unsolved = all_pairs(count) & ~solved
    lowest = unsolved & -unsolved
    first_unsolved = lax.population_count(lowest - 1)
    step = is_next.astype(jnp.int32) - is_previous.astype(jnp.int32)
    exists = ~is_primary | (unsolved != 0)
    beside = pair_index + step
    beside = jnp.where(beside < 0, count - 1, jnp.where(beside >= count, 0, beside))
    chosen = jnp.where(is_primary & exists, first_unsolved, beside)
    return jnp.where(is_next | is_previous | is_primary, chosen, pair_index), exists


def all_pairs(count: Int32[Array, ""]) -> Int32[Array, ""]:
    """The bits of ``count`` solved pairs."""
    return (jnp.int32(1) << count) - 1
