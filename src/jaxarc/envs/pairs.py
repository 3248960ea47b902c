"""The pairs an episode may play: where they lie in a table, and how an operation goes from one to another."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int32

from jaxarc import constants as c
from jaxarc.config import EpisodeConfig
from jaxarc.envs.canvas import PairTable
from jaxarc.tasks.buffer import TaskBuffer
from jaxarc.types import JaxArcTask


class PairSource(eqx.Module):
    """The pairs of one task that a mode plays: demonstrations in training, tests in testing."""

    table: PairTable
    first_row: Int32[Array, ""]  # row of pair 0 in the table
    count: Int32[Array, ""]  # pairs available, 1 or more


def pairs_of_buffer(buffer: TaskBuffer, task_index: Int32[Array, ""], episode: EpisodeConfig) -> PairSource:
    """Point at the pairs of one task of a buffer."""
    first, num_train = buffer.first_pair[task_index], buffer.num_train[task_index]
    table = PairTable(buffer.inputs, buffer.outputs)
    if episode.mode == "train":
        return PairSource(table, first, num_train)
    return PairSource(table, first + num_train, buffer.num_test[task_index])


def pairs_of_task(task: JaxArcTask, grid_shape: tuple[int, int], episode: EpisodeConfig) -> PairSource:
    """Point at the pairs of a single task, padded to the canvas when it is smaller.

    Raises:
        ValueError: the task is larger than the canvas.
    """
    train = episode.mode == "train"
    inputs = task.input_grids_examples if train else task.test_input_grids
    outputs = task.output_grids_examples if train else task.true_test_output_grids
    height, width = task.grid_shape
    if height > grid_shape[0] or width > grid_shape[1]:
        raise ValueError(
            f"the task is padded to {height}x{width}, which is larger than the canvas "
            f"{grid_shape[0]}x{grid_shape[1]}; raise dataset.max_grid_height and dataset.max_grid_width, or pad the "
            "task to less"
        )
    missing = ((0, 0), (0, grid_shape[0] - height), (0, grid_shape[1] - width))
    flat = [jnp.pad(x, missing, constant_values=c.PADDING).reshape(x.shape[0], -1) for x in (inputs, outputs)]
    return PairSource(PairTable(*flat), jnp.int32(0), task.num_train_pairs if train else task.num_test_pairs)


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
    is_first = (operation == c.FIRST_UNSOLVED_DEMO_PAIR) | (operation == c.FIRST_UNSOLVED_TEST_PAIR)
    unsolved = all_pairs(count) & ~solved
    lowest = unsolved & -unsolved
    first_unsolved = lax.population_count(lowest - 1)
    step = is_next.astype(jnp.int32) - is_previous.astype(jnp.int32)
    exists = ~is_first | (unsolved != 0)
    beside = pair_index + step
    beside = jnp.where(beside < 0, count - 1, jnp.where(beside >= count, 0, beside))
    chosen = jnp.where(is_first & exists, first_unsolved, beside)
    return jnp.where(is_next | is_previous | is_first, chosen, pair_index), exists


def all_pairs(count: Int32[Array, ""]) -> Int32[Array, ""]:
    """The bits of ``count`` solved pairs."""
    return (jnp.int32(1) << count) - 1
