"""The pairs an episode may play: where they are stored, and how an operation goes from one to another."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int8, Int32, UInt32

from jaxarc import constants as c
from jaxarc.envs.structured_actions import TO_FIRST_UNSOLVED_PAIR, TO_NEXT_PAIR, TO_PREVIOUS_PAIR
from jaxarc.primitives import Kernel, fold_rows, unfold_rows
from jaxarc.prng import from_key_data
from jaxarc.tasks.augmentation import Augmentation, augment_grid, recolor
from jaxarc.tasks.buffer import TaskBuffer, TaskGenerator, TaskSource, buffer_of_task
from jaxarc.types import JaxArcTask


class PairTable(eqx.Module):
    """Inputs and outputs of pairs, one row each."""

    inputs: Int8[Array, "*B N HW"]
    outputs: Int8[Array, "*B N HW"]


def load_grids(
    grids: Int8[Array, "*T N HW"], row: Int32[Array, "*B"], colors: Int8[Array, "*B 10"] | None = None
) -> Int8[Array, "*B HW"]:
    """Load grids from the table that all share, or one from each table; a row past the last one is the last.

    Args:
        grids: the inputs or outputs of a :class:`PairTable`.
        row: of each grid to load.
        colors: the new color of each color; None: they stay.
    """
    # [B, N, HW], a table for each environment, as with generated tasks: take one row of each.
    if grids.ndim > 2:
        grid = jnp.take_along_axis(grids, row[..., None, None], axis=-2, mode="clip")[..., 0, :]
    else:
        grid = jnp.take(grids, row, axis=0, mode="clip")
    return grid if colors is None else recolor(grid, colors)


def stack_tables(
    with_row: Callable[[Any, Int32[Array, "A 1"]], Any], kernel: Kernel, has_axis: Any, rows: Any, pairs: PairTable
) -> Any:
    """Make one table of those of several batches: row 2 of the second table of 5 rows becomes row 7.

    Args:
        with_row: adds an offset, for each batch, to the row of the table that rows of a batch load.
        kernel: reads one table, as a rule of :func:`~jaxarc.primitives.with_batch_rule`.
        has_axis: whether the arrays of the table have an axis of their own for the batches.
        rows: of the batches.
        pairs: their tables.
    """
    # Each of the `size` batches has a table [N, HW] of its own, and the kernel reads one. So the tables are put one
    # below the other, [size * N, HW], and the rows of batch k move down by k * N: with N = 5, rows 0 2 | 1 2 become
    # 0 2 6 7.
    size = jax.tree.leaves(rows)[0].shape[0]
    pairs = jax.tree.map(lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape)), pairs, has_axis)
    offset = jnp.arange(size, dtype=jnp.int32)[:, None] * pairs.inputs.shape[1]
    return unfold_rows(size, kernel(fold_rows(with_row(rows, offset)), fold_rows(pairs)))


class PairSource(eqx.Module):
    """Pairs of one task, demonstrations or tests, and how an augmentation changes them; also of a batch of tasks."""

    table: PairTable
    first_row: Int32[Array, "*B"]  # row of pair 0 in the table
    count: Int32[Array, "*B"]  # pairs available, 1 or more
    order: Int8[Array, "*B P"] | None = None  # pair p is order[p] rows further down; None: p rows
    colors: Int8[Array, "*B 10"] | None = None  # the new color of each color of a loaded grid; None: they stay
    num_open: Int32[Array, "*B"] | None = None  # pairs from here on hide their output; None: see hides_all
    hides_all: bool = eqx.field(static=True, default=False)  # whether all pairs hide their output, or none

    def hides(self, pair_index: Int32[Array, "*B"]) -> Bool[Array, "*B"]:
        """Whether the output of a pair is hidden from the agent: no similarity, and a score only on request.

        Where a mode hides all pairs or none this is a constant, and the compiler drops what depends on it.
        """
        return jnp.full(pair_index.shape, self.hides_all) if self.num_open is None else pair_index >= self.num_open

    def row_of(self, pair_index: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        """Row of a pair in the table."""
        if self.order is None:
            return self.first_row + pair_index
        # With first_row 10 and the order 2 0 1, pair 0 is row 12 and pair 1 is row 10. A pair beyond the order's
        # entries, a test in trials mode, is where it is stored: pair 3 is row 13.
        shown = jnp.take_along_axis(self.order, pair_index[..., None], axis=-1, mode="clip")[..., 0].astype(jnp.int32)
        return self.first_row + jnp.where(pair_index < self.order.shape[-1], shown, pair_index)

    def input_of(self, pair_index: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        """Load the input of a pair."""
        return load_grids(self.table.inputs, self.row_of(pair_index), self.colors)

    def output_of(self, pair_index: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        """Load the output of a pair."""
        return load_grids(self.table.outputs, self.row_of(pair_index), self.colors)


def pairs_in_play(
    tasks: TaskSource,
    generated: PairTable | None,
    task_index: Int32[Array, "*B"],
    augmentation: Augmentation | None,
    mode: str,
) -> PairSource:
    """Point at the pairs of a task that a mode plays, as the augmentation changes them.

    Args:
        tasks: where the task is from.
        generated: the pairs of a generated task, augmented already, as the state holds them; None where ``tasks`` does.
        task_index: index of the task in ``tasks``.
        augmentation: what changes stored pairs.
        mode: ``"train"`` plays demonstrations, ``"test"`` tests, ``"trials"`` both, demonstrations first.
    """
    # A generated task has a table of its own, which begins at row 0. Stored tasks share one table.
    first_row = jnp.zeros_like(task_index)
    order = None
    colors = None
    if generated is None:
        assert isinstance(tasks, TaskBuffer), "a state of a task generator holds its pairs"
        table = PairTable(tasks.inputs, tasks.outputs)
        first_row = tasks.first_pair[task_index]
        if augmentation is not None:
            order = augmentation.order
            colors = augmentation.colors
            # All pairs are stored once for each symmetry, block after block: with 100 pairs, row 7 under symmetry 3 is
            # row 307.
            if augmentation.symmetry is not None:
                first_row = first_row + augmentation.symmetry.astype(jnp.int32) * tasks.num_pairs
    else:
        table = generated
    num_train = tasks.num_train_of(task_index)
    num_test = tasks.num_test_of(task_index)
    # Rows of a task: demonstrations, then tests. With 3 + 1 pairs from row 10 on, training plays rows 10..12, test mode
    # row 13, and trials all four, of which pair 3, from num_open on, is hidden.
    if mode == "train":
        return PairSource(table, first_row, num_train, order, colors)
    if mode == "trials":
        return PairSource(table, first_row, num_train + num_test, order, colors, num_open=num_train)
    return PairSource(table, first_row + num_train, num_test, None, colors, hides_all=True)


def show_demonstrations(source: PairSource, num_slots: int, held_out: Int32[Array, ""] | None) -> PairTable:
    """Load all demonstrations of a task; slots past them, and the one that is held out, are all padding."""
    slot = jnp.arange(num_slots, dtype=jnp.int32)
    is_shown = slot < source.count
    if held_out is not None:
        is_shown = is_shown & (slot != held_out)
    # Slots without a demonstration load a row of another task or of a test; the mask replaces all of it by padding.
    load = lambda of: jnp.where(is_shown[:, None], jax.vmap(of)(slot), jnp.int8(c.PADDING))
    return PairTable(load(source.input_of), load(source.output_of))


def generate_pairs(
    words: UInt32[Array, " words"], tasks: TaskSource, task_index: Int32[Array, ""], augmentation: Augmentation | None
) -> PairTable | None:
    """Make the pairs of a new task, by the words of a key, turned and recolored; None where tasks are stored.

    Their order is random anyway.
    """
    if not isinstance(tasks, TaskGenerator):
        return None
    inputs, outputs = tasks.generate(from_key_data(words), task_index)
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
        return pairs_in_play(buffer_of_task(task), None, jnp.int32(0), None, mode)
    if mode == "train":
        grids = (task.input_grids_examples, task.output_grids_examples)
        count = task.num_train_pairs
    else:
        grids = (task.test_input_grids, task.true_test_output_grids)
        count = task.num_test_pairs
    inputs, outputs = (x.reshape(x.shape[0], -1) for x in grids)
    return PairSource(PairTable(inputs, outputs), jnp.int32(0), count, hides_all=mode == "test")


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

    pad = lambda grids: jnp.pad(grids, missing, constant_values=c.PADDING)
    return jax.tree.map(lambda leaf: pad(leaf) if leaf.ndim == 3 else leaf, task)


def choose_pair(
    operation: Int32[Array, ""], pair_index: Int32[Array, ""], solved: Int32[Array, ""], count: Int32[Array, ""]
) -> tuple[Int32[Array, ""], Bool[Array, ""]]:
    """Find the pair that operations 35..41 lead to.

    Next and previous wrap around. The first unsolved pair is the lowest bit that is not set: with 5 pairs of which 0
    and 2 are solved, bit 0 on the right::

        solved 00101    unsolved = 11111 & ~00101 = 11010    lowest = unsolved & -unsolved = 00010    index 1

    Args:
        operation: any operation; others keep the pair.
        pair_index: the current pair.
        solved: bit ``i`` says whether pair ``i`` is known to be solved.
        count: pairs available.

    Returns:
        The new pair, and whether the operation can apply: 40 and 41 cannot when every pair is solved.
    """
    is_next = TO_NEXT_PAIR.has(operation)
    is_previous = TO_PREVIOUS_PAIR.has(operation)
    is_first = TO_FIRST_UNSOLVED_PAIR.has(operation)
    unsolved = all_pairs(count) & ~solved
    lowest = unsolved & -unsolved
    # One less than 00010 is 00001, which has as many ones as the bit has zeros below it: its index, 1.
    first_unsolved = lax.population_count(lowest - 1)
    exists = ~is_first | (unsolved != 0)
    neighbor = pair_index + is_next.astype(jnp.int32) - is_previous.astype(jnp.int32)
    # -1 becomes the last pair and `count` becomes pair 0.
    neighbor = jnp.where(neighbor < 0, count - 1, jnp.where(neighbor >= count, 0, neighbor))
    chosen = jnp.where(is_first & exists, first_unsolved, neighbor)
    return jnp.where(is_next | is_previous | is_first, chosen, pair_index), exists


def all_pairs(count: Int32[Array, ""]) -> Int32[Array, ""]:
    """``count`` solved pairs as bits; 3 pairs are 111."""
    return (jnp.int32(1) << count) - 1
