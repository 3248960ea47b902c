"""The state of an episode: its arrays, views of them under the names that users read, and the record of its actions.

The last actions are kept in a ring buffer of bytes. A record holds the selection (a row and a column, four corners, or
packed bits), the operation, the pair and whether the action was valid. When it was written is not stored: slot ``i`` of
a ring that has seen ``n`` steps was last written at the largest step below ``n`` that is ``i`` modulo the capacity.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float32, Int8, Int32, UInt8, UInt32

from jaxarc.compilation import as_declared
from jaxarc.config import JaxArcConfig
from jaxarc.constants import PADDING
from jaxarc.envs import canvas as layout
from jaxarc.envs.canvas import Canvas, from_bytes, num_bytes, pack_columns, to_bytes, unpack_columns
from jaxarc.envs.pairs import PairTable
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.notebooks import notebook_picture
from jaxarc.tasks.augmentation import Augmentation, augment_task, restore_task
from jaxarc.types import JaxArcTask

STEP, SUBMISSION, TASK, PAIR, SOLVED = range(5)
_COUNTERS = {"step_count": STEP, "submission_count": SUBMISSION, "task_index": TASK, "pair_index": PAIR}
_GRIDS = {"working_grid": "grid", "target_grid": "target"}  # views and the canvas's fields
STORED_FIELDS = 3  # of a record of an action, besides its selection: operation, pair index, valid


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
    def discount(self) -> Float32[Array, "*B"]:
        """0 where the episode terminated, 1 elsewhere, truncation included."""
        return jnp.where(self.terminated, jnp.float32(0), jnp.float32(1))

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
        return _unpack_history(
            jnp.asarray(self.action_records), self.step_count, self.selection_format, self.grid_shape
        )

    @property
    def original_task(self) -> JaxArcTask | None:
        """The task as it stands in the data, in the guide API; of one environment, not a batch."""
        if self.task_data is None or self.augmentation is None:
            return self.task_data
        return restore_task(self.task_data, self.augmentation)

    def __repr__(self) -> str:
        """``ArcEnvState(30x30, bbox, task 3, pair 0, step 2, similarity 0.83)``; the shape of a batch."""
        kind = f"{self.grid_shape[0]}x{self.grid_shape[1]}, {self.selection_format}"
        arrays = (self.counts, self.similarity_score, self.endings)
        if any(isinstance(leaf, Tracer) or not isinstance(leaf, jax.Array | np.ndarray) for leaf in arrays):
            return f"ArcEnvState({kind}, {eqx.tree_pformat(self.counts)})"
        if self.counts.ndim != 1:
            return f"ArcEnvState({kind}, batch of {'x'.join(map(str, self.counts.shape[:-1]))})"
        facts = [kind, f"task {self.task_index}", f"pair {self.pair_index}", f"step {self.step_count}"]
        facts.append(f"similarity {float(self.similarity_score):.2f}")
        facts += [name for name, holds in zip(("terminated", "truncated"), self.endings, strict=True) if holds]
        return f"ArcEnvState({', '.join(facts)})"

    def replace(self, **changes: Any) -> "ArcEnvState":
        """Return a state with fields replaced, or grids and counters by the names of their views.

        The views are ``working_grid``, ``target_grid``, ``step_count``, ``submission_count``, ``task_index`` and
        ``pair_index``: ``state.replace(working_grid=grid, step_count=0)``. The similarity follows the grids.
        ``eqx.tree_at`` replaces fields, not views.

        Raises:
            TypeError: there is no such field or view.
            ValueError: a grid or a counter has another shape.
        """
        views = {name: changes.pop(name) for name in [*_GRIDS, *_COUNTERS] if name in changes}
        unknown = sorted(changes.keys() - {field.name for field in dataclasses.fields(self)})
        if unknown:
            raise TypeError(
                f"a state has no field or view {unknown[0]!r} to replace; views are {', '.join([*_GRIDS, *_COUNTERS])}"
            )
        state = dataclasses.replace(self, **changes)
        for name, value in views.items():
            array = jnp.asarray(value)
            wanted = state.step_count.shape + (state.grid_shape if name in _GRIDS else ())
            if array.shape != wanted:
                raise ValueError(f"{name} of this state has shape {wanted}, got {array.shape}; pad or batch it alike")
            state = state._with_grid(name, array) if name in _GRIDS else state._with_counter(name, array)
        return state

    def _with_counter(self, name: str, value: Array) -> "ArcEnvState":
        counts = self.counts.at[..., _COUNTERS[name]].set(value.astype(jnp.int32))
        return dataclasses.replace(self, counts=counts)

    def _with_grid(self, name: str, grid: Array) -> "ArcEnvState":
        flat = grid.astype(jnp.int8).reshape(*grid.shape[:-2], -1)
        canvas = dataclasses.replace(self.canvas, **{_GRIDS[name]: flat})
        height, width = layout.grid_size(flat, self.grid_shape)
        first = layout.HEIGHT if name == "working_grid" else layout.TARGET_HEIGHT
        sizes = canvas.sizes.at[..., first].set(height).at[..., first + 1].set(width)
        score = layout.similarity(layout.count_matches(canvas.grid, canvas.target), layout.count_union(sizes[..., :4]))
        return dataclasses.replace(self, canvas=dataclasses.replace(canvas, sizes=sizes), similarity_score=score)

    def with_task(self, task: JaxArcTask) -> "ArcEnvState":
        """Return the state with this task, as it stands in the data, attached and reported as its own."""
        counts = jnp.where(np.arange(self.counts.shape[-1]) == TASK, task.task_index, self.counts)
        played = task if self.augmentation is None else augment_task(task, self.augmentation)
        return dataclasses.replace(self, task_data=played, counts=counts)

    def _repr_svg_(self) -> str | None:
        return notebook_picture(self)

    def _grid(self, flat: Array) -> Array:
        return flat.reshape(*flat.shape[:-1], *self.grid_shape)


def empty_history(config: JaxArcConfig) -> UInt8[Array, "capacity bytes"] | None:
    """Return room for the records of one episode, or None when the history is off."""
    if not config.history.history_enabled:
        return None
    size = record_bytes(config.action.selection_format, config.grid_shape)
    return jnp.zeros((config.history_capacity, size), jnp.uint8)


def record_bytes(selection_format: str, grid_shape: tuple[int, int]) -> int:
    """Return how many bytes the record of an action has."""
    selection = num_bytes(grid_shape) if selection_format == "mask" else {"point": 2, "bbox": 4}[selection_format]
    return selection + STORED_FIELDS


def declared_state(state: ArcEnvState, batch: tuple[int, ...] | None = None) -> ArcEnvState:
    """Return a state, or states, with the dtypes and shapes that it declares; see :func:`as_declared`."""
    height, width = state.grid_shape
    size = record_bytes(state.selection_format, state.grid_shape)
    return as_declared(state, "state", batch, HW=height * width, columns=width, bytes=size)


def append_record(
    history: UInt8[Array, "capacity bytes"],
    action: StructuredAction,
    step_count: Int32[Array, ""],
    pair_index: Int32[Array, ""],
    invalid: Bool[Array, ""],
    running: Bool[Array, ""],
) -> UInt8[Array, "capacity bytes"]:
    """Write an action over the oldest record; numbers that no byte has, of an invalid one, are cut to 0 .. 255.

    Under the policy ``clip`` the action comes with the coordinates that were used.
    """
    # Step n goes to slot n % capacity: with a capacity of 3, step 4 overwrites the record of step 1 in slot 1. A state
    # that is done writes to slot 3, which does not exist, and the scatter drops it.
    numbers = [action.operation, pair_index, (~invalid).astype(jnp.int32)]
    record = jnp.concatenate([_selection_bytes(action), _bytes(numbers)])
    capacity = history.shape[0]
    slot = jnp.where(running, step_count % capacity, capacity)
    return history.at[slot].set(record, mode="drop")


def _unpack_history(
    history: UInt8[Array, "*B capacity bytes"],
    step_count: Int32[Array, "*B"],
    selection_format: str,
    grid_shape: tuple[int, int],
) -> Float32[Array, "*B capacity fields"]:
    """Show the records as numbers: selection, operation, timestamp, pair index, valid; zeros where none was written.

    Args:
        history: the stored records.
        step_count: steps taken, each of which wrote one record.
        selection_format: ``"point"``, ``"bbox"`` or ``"mask"``.
        grid_shape: rows and columns of the canvas, (H, W).
    """
    capacity = history.shape[-2]
    selection = history[..., :-STORED_FIELDS]
    operation, pair, valid = jnp.moveaxis(history[..., -3:], -1, 0)
    if selection_format == "mask":
        selection = unpack_columns(from_bytes(selection, grid_shape), grid_shape)
    # Which step wrote a slot is known without being stored. After 5 steps in 3 slots, last = 4, and the slots 0, 1, 2
    # hold the steps 4 - 4 % 3 = 3, 4 - 3 % 3 = 4 and 4 - 2 % 3 = 2. After 2 steps, slot 2 gives 1 - -1 % 3 = -1: never
    # written.
    last = step_count[..., None] - 1
    slots = jnp.arange(capacity, dtype=jnp.int32)
    timestamp = last - (last - slots.reshape((1,) * (last.ndim - 1) + (-1,))) % capacity
    written = timestamp >= 0
    tail = jnp.stack([x.astype(jnp.float32) for x in (operation, timestamp, pair, valid)], axis=-1)
    records = jnp.concatenate([selection.astype(jnp.float32), tail], axis=-1)
    return jnp.where(written[..., None], records, jnp.float32(0))


def _bytes(numbers: list[Int32[Array, ""]]) -> UInt8[Array, " fields"]:
    return jnp.clip(jnp.stack(numbers), 0, 255).astype(jnp.uint8)


def _selection_bytes(action: StructuredAction) -> UInt8[Array, " bytes"]:
    match action:
        case PointAction():
            return _bytes([action.row, action.col])
        case BboxAction():
            return _bytes([action.r1, action.c1, action.r2, action.c2])
        case MaskAction():
            shape = (action.selection.shape[-2], action.selection.shape[-1])
            return to_bytes(pack_columns(action.selection.reshape(-1), shape), shape)
