"""What an agent is shown and told, in plain NumPy, for many episodes at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reference.canvas import PADDING, PASTE

NUM_COLORS = 10
HISTORY_NUMBERS = 4  # operation, timestamp, pair index, valid: what a record holds beside its selection


def encode(grids: np.ndarray, grid_format: str) -> np.ndarray:
    """Returns padded int8[..., H, W] grids as planes, one-hot channels or tokens."""
    if grid_format == "planes":
        return grids
    if grid_format == "tokens":
        return grids.reshape(*grids.shape[:-2], -1).astype(np.int32) + 1
    if grid_format == "one_hot":
        channels = np.array([*range(NUM_COLORS), PADDING], np.int8)
        return (grids[..., None] == channels).astype(np.int8)
    raise ValueError(f"grid_format is {grid_format!r}; allowed: 'planes', 'one_hot', 'tokens'")


def useful_operations(legal: np.ndarray, clipboards: np.ndarray) -> np.ndarray:
    """Returns bool[B, 42]: legal and able to do something, which a paste is not while nothing is on the clipboard.

    Args:
        legal: bool[42].
        clipboards: int8[B, H, W].
    """
    useful = np.repeat(legal[None], len(clipboards), axis=0)
    others = legal.copy()
    others[PASTE] = False
    if others.any():
        useful[:, PASTE] &= (clipboards >= 0).any(axis=(1, 2))
    return useful


def demonstrations(
    inputs: np.ndarray, outputs: np.ndarray, played: np.ndarray | None, grid_format: str
) -> dict[str, np.ndarray]:
    """Returns the entry ``demonstrations`` of an observation.

    Args:
        inputs: int8[B, slots, H, W], all -1 in a slot past the last demonstration.
        outputs: the same of the outputs.
        played: int[B], the slot that is left out of each; None: none is.
        grid_format: how grids are shown.
    """
    if played is not None:
        inputs, outputs = inputs.copy(), outputs.copy()
        inputs[np.arange(len(played)), played] = PADDING
        outputs[np.arange(len(played)), played] = PADDING
    mask = inputs[:, :, 0, 0] >= 0
    return {
        "inputs": encode(inputs, grid_format),
        "outputs": encode(outputs, grid_format),
        "mask": mask,
        "count": mask.sum(axis=1, dtype=np.int32),
    }


class History:
    """The records of the last actions of many episodes, in rings.

    Args:
        num_envs: B.
        capacity: records that are kept of each.
        selection_numbers: how many numbers say what an action selects.
        highest: each of them, where coordinates are clipped to the canvas.
    """

    def __init__(self, num_envs: int, capacity: int, selection_numbers: int, highest: Sequence[int] | None = None):
        self.highest = np.full(selection_numbers, 255) if highest is None else np.array(highest)
        self.records = np.zeros((num_envs, capacity, selection_numbers + HISTORY_NUMBERS), np.float32)

    def forget(self, env: int) -> None:
        """Starts a new episode."""
        self.records[env] = 0

    def remember(
        self,
        envs: np.ndarray,
        selections: np.ndarray,
        operations: np.ndarray,
        timestamps: np.ndarray,
        pairs: np.ndarray,
        valid: np.ndarray,
    ) -> None:
        """Writes one action of each of some episodes; numbers out of range are kept as near as a byte can.

        Args:
            envs: int[n], whose.
            selections: [n, selection_numbers].
            operations: int[n].
            timestamps: int[n], steps before this one.
            pairs: int[n], the pair that was played.
            valid: bool[n].
        """
        slots = timestamps % self.records.shape[1]
        numbers = np.stack([np.clip(operations, 0, 255), timestamps, pairs, valid], axis=1)
        self.records[envs, slots] = np.concatenate([np.clip(selections, 0, self.highest), numbers], axis=1)
