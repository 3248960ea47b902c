"""One environment on NumPy arrays: the library steps it, and starts its next episode, without XLA in between.

A call takes half a microsecond, where one of a compiled program takes tens. The arrays are the caller's, and hold a
state and the pairs of its task; the library keeps none of them.
"""

import ctypes
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from jaxarc.native.library import native_library

_ARRAYS: Final[dict[str, Any]] = {  # as in host.h
    **dict.fromkeys(("grid", "clipboard", "target", "kept_boxes"), np.int8),
    "kept_words": np.uint32,
    "sizes": np.int8,
    "counts": np.int32,
    "similarity": np.float32,
    "endings": np.bool_,
    "key": np.uint32,
    "records": np.uint8,
    "mask": np.uint8,
    **dict.fromkeys(("inputs", "outputs", "order", "colors"), np.int8),
    **dict.fromkeys(("first_pair", "num_train", "num_test"), np.int32),
    "sums": np.float32,
    "pair_index": np.int32,
}
_NUMBERS: Final = (
    *("height", "width", "capacity", "record_bytes", "num_pairs", "order_length"),
    *("legal", "flags", "max_submissions", "max_steps", "num_tasks", "mode", "is_in_turn", "is_random_pair"),
)
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
    )

    def point_at(self, arrays: Mapping[str, np.ndarray | None]) -> None:
        """Take the addresses of contiguous arrays; of one that is None or empty there is none.

        The numbers on which their sizes depend are set before.

        Raises:
            TypeError: an array has another dtype or size than the library reads, or is not contiguous.
        """
        for name, array in arrays.items():
            if array is None or array.size == 0:
                setattr(self, name, None)
                continue
            size = self._sizes()[name]
            if array.dtype != _ARRAYS[name] or array.size != size or not array.flags.c_contiguous:
                dtype = np.dtype(_ARRAYS[name])
                raise TypeError(
                    f"{name} must be a contiguous array of {size} {dtype}, got {array.dtype} of shape {array.shape}; "
                    "keep the dtypes and shapes of what made it"
                )
            setattr(self, name, array.ctypes.data)

    def _sizes(self) -> dict[str, int]:
        """How many elements the library reads of each array."""
        cells = self.height * self.width
        return {
            **dict.fromkeys(("grid", "clipboard", "target", "mask"), cells),
            **dict.fromkeys(("inputs", "outputs"), self.num_pairs * cells),
            **dict.fromkeys(("first_pair", "num_train", "num_test", "sums"), self.num_tasks),
            "kept_boxes": 4,
            "kept_words": self.width,
            "sizes": 6,
            "counts": 5,
            "similarity": 1,
            "endings": 2,
            "key": 2,
            "records": self.capacity * self.record_bytes,
            "order": self.order_length,
            "colors": 10,
            "pair_index": 1,
        }


def host_functions() -> tuple[Any, Any] | None:
    """Return the functions that step and reset a :class:`HostEpisode`; None where there is no library.

    Each takes a reference, ``ctypes.byref(episode)``.
    """
    library = native_library()
    if library is None:
        return None
    step, reset = (library.functions[name] for name in ("host_step", "host_reset"))
    step.restype = reset.restype = None
    return step, reset
