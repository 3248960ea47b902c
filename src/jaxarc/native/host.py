"""One environment on NumPy arrays: the library steps it, and starts its next episode, without XLA in between.

A call takes half a microsecond, where one of a compiled program takes tens. The arrays are the caller's, and hold a
state and the pairs of its task; the library keeps none of them.
"""

import ctypes
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from jaxarc.native.library import native_library

_ARRAYS: Final = (  # as in host.h
    *("grid", "clipboard", "target", "kept_boxes", "kept_words", "sizes", "counts", "similarity", "endings", "key"),
    *("records", "mask", "inputs", "outputs", "order", "colors"),
    *("first_pair", "num_train", "num_test", "sums", "pair_index"),
)
_NUMBERS: Final = (
    *("height", "width", "capacity", "record_bytes", "num_pairs", "order_length"),
    *("legal", "flags", "max_submissions", "max_steps", "num_tasks", "mode", "is_in_turn", "is_random_pair"),
    "rounding",
)
_REWARD_TERMS: Final = (
    *("gamma", "similarity_weight", "step_penalty", "success_bonus", "unsolved_submission_penalty"),
    "invalid_action_penalty",
)
ROUNDINGS: Final = range(3)  # of rewards: apart, together, together past choices; as in host.h
RUNNING, NEWLY_SOLVED, WRONG_SUBMISSION, INVALID = (1, 2, 4, 8)  # bits of the facts of a step, as in step.h


class HostEpisode(ctypes.Structure):
    """What the library reads and writes: addresses of arrays, rules, the action, and what a step returns.

    An address is only as good as its array, so the caller keeps the arrays.
    """

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _ARRAYS),
        *((name, ctypes.c_int64) for name in _NUMBERS),
        ("operation", ctypes.c_int32),
        ("corners", ctypes.c_int32 * 4),  # row, column, row, column
        ("first_row", ctypes.c_int32),
        ("pair_count", ctypes.c_int32),
        ("num_open", ctypes.c_int32),
        ("facts", ctypes.c_int32),
        *((name, ctypes.c_float) for name in _REWARD_TERMS),
        ("reward", ctypes.c_float),
    )

    def point_at(self, arrays: Mapping[str, np.ndarray | None]) -> None:
        """Take the addresses of contiguous arrays; of one that is None or empty there is none."""
        for name, array in arrays.items():
            setattr(self, name, None if array is None or array.size == 0 else array.ctypes.data)


def host_functions() -> tuple[Any, Any, Any] | None:
    """Return the functions that step, restart and reward a :class:`HostEpisode`; None where there is no library.

    Each takes a reference, ``ctypes.byref(episode)``, and the last one the similarity before the step.
    """
    library = native_library()
    if library is None:
        return None
    step, restart, reward = (library.functions[name] for name in ("host_step", "host_restart", "host_reward"))
    for function in (step, restart, reward):
        function.restype = None
    reward.argtypes = (ctypes.c_void_p, ctypes.c_float)
    return step, restart, reward
