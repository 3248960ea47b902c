"""Numbers that a train step reports."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np


def convert_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Turn what a step returns into plain Python values; waits until the step is done.

    Arrays of one element become numbers, larger ones nested lists, and all else stays. Not for compiled code, where
    a value is not known.
    """
    if not isinstance(metrics, Mapping):
        raise TypeError(f"metrics are a mapping from name to value, got {type(metrics).__name__}; pass a step's")
    return {name: _plain(value) for name, value in metrics.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    return array.item() if array.size == 1 else array.tolist()
