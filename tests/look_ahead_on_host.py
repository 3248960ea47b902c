"""Candidate actions looked at in plain NumPy, one after the other: what the compiled look has to agree with."""

import copy
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int8

from jaxarc.experts.expert import Action, ActionFormat
from jaxarc.experts.host_canvas import HostCanvas


def look_ahead_on_host(
    canvas: HostCanvas, target: Int8[np.ndarray, "h w"], actions: Sequence[Action], action_format: ActionFormat
) -> Float[np.ndarray, " k"]:
    """Play each of k actions on a copy of a canvas, and tell how similar the grid then is to the target, 0 .. 1."""
    return np.array([_similarity_after(canvas, target, action, action_format) for action in actions])


def _similarity_after(
    canvas: HostCanvas, target: Int8[np.ndarray, "h w"], action: Action, action_format: ActionFormat
) -> float:
    edited = copy.copy(canvas)
    edited.grid = canvas.grid.copy()
    edited.apply(action, action_format)
    (height, width), (wanted_height, wanted_width) = edited.grid.shape, target.shape
    rows, columns = min(height, wanted_height), min(width, wanted_width)
    matches = np.count_nonzero(edited.grid[:rows, :columns] == target[:rows, :columns])
    return matches / (max(height, wanted_height) * max(width, wanted_width))
