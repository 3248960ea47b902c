"""The last actions of an episode, in a ring buffer of bytes.

A record holds the selection (a row and a column, four corners, or packed bits), the operation, the pair and whether
the action was valid. When it was written is not stored: slot ``i`` of a ring that has seen ``n`` steps was last written
at the largest step below ``n`` that is ``i`` modulo the capacity.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, UInt8

from jaxarc.config import JaxArcConfig
from jaxarc.envs.canvas import from_bytes, num_bytes, pack_columns, to_bytes, unpack_columns
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction

STORED_FIELDS = 3  # operation, pair index, valid


def empty_history(config: JaxArcConfig) -> UInt8[Array, "capacity bytes"] | None:
    """Return room for the records of one episode, or None when the history is off."""
    if not config.history.history_enabled:
        return None
    selection = {"point": 2, "bbox": 4, "mask": num_bytes(config.grid_shape)}[config.action.selection_format]
    return jnp.zeros((config.history_capacity, selection + STORED_FIELDS), jnp.uint8)


def append_record(
    history: UInt8[Array, "capacity bytes"],
    action: StructuredAction,
    step_count: Int32[Array, ""],
    pair_index: Int32[Array, ""],
    invalid: Bool[Array, ""],
    running: Bool[Array, ""],
) -> UInt8[Array, "capacity bytes"]:
    """Write an action over the oldest record; numbers of an invalid one are kept as near as a byte can."""
    # Step n goes to slot n % capacity: with a capacity of 3, step 4 overwrites the record of step 1 in slot 1. A state
    # that is done writes to slot 3, which does not exist, and the scatter drops it.
    numbers = [action.operation, pair_index, (~invalid).astype(jnp.int32)]
    record = jnp.concatenate([_selection_bytes(action), _bytes(numbers)])
    capacity = history.shape[0]
    slot = jnp.where(running, step_count % capacity, capacity)
    return history.at[slot].set(record, mode="drop")


def unpack_history(
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
