"""The state of an episode: its arrays, and views of them under the names that users read."""

import dataclasses
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32, UInt8, UInt32

from jaxarc.constants import PADDING
from jaxarc.envs import canvas as layout
from jaxarc.envs.canvas import Canvas, unpack_columns
from jaxarc.envs.history import unpack_history
from jaxarc.envs.pairs import PairTable
from jaxarc.notebooks import notebook_picture
from jaxarc.tasks.augmentation import Augmentation, augment_task, restore_task
from jaxarc.types import JaxArcTask

STEP, SUBMISSION, TASK, PAIR, SOLVED = range(5)


class ArcEnvState(eqx.Module):
    """One episode, or a batch of them: every view works on batched states too.

    Few leaves make a call cheap, so counters share one array; read them by name. Grids have shape ``(*B, H, W)``.
    """

    canvas: Canvas
    counts: Int32[Array, "*B 5"]  # steps, submissions, task index, pair index, solved pairs as bits
    similarity_score: Float32[Array, "*B"]  # 0 .. 1, of the working grid and the target
    endings: Bool[Array, "*B 2"]  # terminated, truncated
    key: UInt32[Array, "*B words"]  # for the next episode; never used in this one
    action_records: UInt8[Array, "*B capacity bytes"] | None  # None when the history is off
    augmentation: Augmentation | None  # how the task that is played differs from the one in the data; None: it does not
    task_data: JaxArcTask | None  # the task as it is played, in the guide API; None where tasks live in the params
    pairs: PairTable | None  # the pairs of a generated task; None where tasks are given
    demonstrations: PairTable | None  # what an observation shows of them; None where it shows none
    grid_shape: tuple[int, int] = eqx.field(static=True)
    selection_format: str = eqx.field(static=True)

    @property
    def working_grid(self) -> Int8[Array, "*B H W"]:
        """Colors 0..9, -1 outside the active area."""
        return self._grid(self.canvas.grid)

    @property
    def working_grid_mask(self) -> Bool[Array, "*B H W"]:
        return self.working_grid > PADDING

    @property
    def target_grid(self) -> Int8[Array, "*B H W"]:
        """The output of the current pair, the hidden one in test mode."""
        return self._grid(self.canvas.target)

    @property
    def target_grid_mask(self) -> Bool[Array, "*B H W"]:
        return self.target_grid > PADDING

    @property
    def clipboard(self) -> Int8[Array, "*B H W"]:
        """Copied cells, the box's corner at the origin; -1 where nothing is held."""
        return self._grid(self.canvas.clipboard)

    @property
    def selected(self) -> Bool[Array, "*B H W"]:
        """The cells that the last applied operation used, moved along by a move."""
        stored = self.canvas.selection
        height, width = self.grid_shape
        if self.selection_format == "mask":
            return self._grid(unpack_columns(jnp.asarray(stored), self.grid_shape))
        top, left, bottom, right = (stored[..., i, None, None] for i in range(4))
        rows = jnp.arange(height, dtype=jnp.int8)[:, None]
        columns = jnp.arange(width, dtype=jnp.int8)
        # Bounds [*B, 1, 1] against rows [1.., H, 1] and columns [1.., 1, W]: the four comparisons give [*B, H, W]. The
        # empty box (0, 0, -1, -1) has no row that is at most -1.
        lead = (1,) * (stored.ndim - 1)
        rows = rows.reshape(*lead, height, 1)
        columns = columns.reshape(*lead, 1, width)
        return (rows >= top) & (rows <= bottom) & (columns >= left) & (columns <= right)

    @property
    def grid_size(self) -> Int8[Array, "*B 2"]:
        """Height and width of the active area."""
        return self.canvas.sizes[..., layout.HEIGHT : layout.WIDTH + 1]

    @property
    def step_count(self) -> Int32[Array, "*B"]:
        return self.counts[..., STEP]

    @property
    def submission_count(self) -> Int32[Array, "*B"]:
        return self.counts[..., SUBMISSION]

    @property
    def task_index(self) -> Int32[Array, "*B"]:
        """Index of the task: in the registry in the guide API, in the buffer in the agent API."""
        return self.counts[..., TASK]

    @property
    def pair_index(self) -> Int32[Array, "*B"]:
        """Index of the pair among those of the task, in the order in which the episode shows them."""
        return self.counts[..., PAIR]

    @property
    def solved_pairs(self) -> Int32[Array, "*B"]:
        """Bit ``i`` is set once pair ``i`` is solved; only bit 0 is used where pairs cannot be switched."""
        return self.counts[..., SOLVED]

    @property
    def is_solved(self) -> Bool[Array, "*B"]:
        """Whether a submit has solved a pair of this episode."""
        return self.solved_pairs != 0

    @property
    def terminated(self) -> Bool[Array, "*B"]:
        return self.endings[..., 0]

    @property
    def truncated(self) -> Bool[Array, "*B"]:
        return self.endings[..., 1]

    @property
    def done(self) -> Bool[Array, "*B"]:
        return self.endings[..., 0] | self.endings[..., 1]

    @property
    def action_history(self) -> Float32[Array, "*B capacity fields"]:
        """Records of the last actions: selection, operation, timestamp, pair index, valid; zeros where there is none.

        Raises:
            ValueError: the history is off.
        """
        if self.action_records is None:
            raise ValueError("the action history is off; make the state with history.history_enabled=True")
        return unpack_history(jnp.asarray(self.action_records), self.step_count, self.selection_format, self.grid_shape)

    @property
    def original_task(self) -> JaxArcTask | None:
        """The task as it stands in the data, in the guide API; of one environment, not a batch."""
        if self.task_data is None or self.augmentation is None:
            return self.task_data
        return restore_task(self.task_data, self.augmentation)

    def with_task(self, task: JaxArcTask) -> Self:
        """Return the state with this task, as it stands in the data, attached and reported as its own."""
        counts = self.counts.at[..., TASK].set(task.task_index)
        played = task if self.augmentation is None else augment_task(task, self.augmentation)
        return dataclasses.replace(self, task_data=played, counts=counts)

    def _repr_svg_(self) -> str | None:
        return notebook_picture(self)

    def _grid(self, flat: Array) -> Array:
        return flat.reshape(*flat.shape[:-1], *self.grid_shape)
