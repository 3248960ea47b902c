"""The library of the search in C++: loaded at first use, and its functions on arrays of NumPy.

Its sources say what stands where: ``native/search/*.h``.
"""

import ctypes
import functools
import subprocess
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64, UInt8

from jaxarc.errors import JaxarcError
from jaxarc.native.library import SEARCH_SOURCES, NativeLibraryError, load_library

_INT, _LONG, _POINTER, _TEXT = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p
_CELLS, _INTS, _LONGS, _BITS, _DOUBLES, _BOOLS = (  # arrays, whose dtype is compared in every call
    np.ctypeslib.ndpointer(dtype, flags="C_CONTIGUOUS")
    for dtype in (np.uint8, np.int32, np.int64, np.uint64, np.float64, np.bool_)
)
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {  # name -> the result, then the arguments, as in search.cc
    "new": (_POINTER, _INT, _INT),
    "delete": (None, _POINTER),
    "num_bytes": (_LONG, _POINTER),
    "num_states": (_LONG, _POINTER),
    "add": (None, _POINTER, _LONG, _INT, _CELLS, _INTS, _LONGS),
    "images": (None, _POINTER, _LONG, _LONGS, _INT, _CELLS, _INTS),
    "sizes": (None, _POINTER, _LONG, _LONGS, _INTS, _INTS),
    "declare": (_INT, _POINTER, _TEXT, _TEXT, _TEXT, _INT, _INT),
    "start": (None, _POINTER, _INTS),
    "expand": (_INT, _POINTER, _INT, _LONG, _LONG, ctypes.c_double, _LONGS),
    "num_image_states": (_LONG, _POINTER),
    "image_states": (None, _POINTER, _INT, _LONGS, _LONGS, _LONGS),
    "program": (_INT, _POINTER, _INT, _INT, _INTS),
    "features": (None, _POINTER, _LONG, _LONGS, _LONG, _CELLS),
    "draw": (None, _POINTER, _LONG, _INT, _LONGS, _INTS, _LONG, _CELLS),
    "new_pieces": (_POINTER, _POINTER, _INT, _INTS, _LONG, _CELLS),
    "delete_pieces": (None, _POINTER),
    "exact_pieces": (_LONG, _POINTER, _LONG, _LONGS, _CELLS),
    "nearest_pieces": (_LONG, _POINTER, _LONG, _LONGS, _CELLS),
    "stacks": (_LONG, _POINTER, _LONG, _LONGS, _CELLS, _BOOLS, _LONG, ctypes.c_double),
    "number_values": (None, _LONG, _LONG, _CELLS, _BOOLS, _CELLS, _LONGS, _BOOLS),
    "tables": (_LONG, _POINTER, _LONG, _LONGS, ctypes.c_double, _LONG, _INTS),
    "table_cost": (_INT, _POINTER, _INTS),
    "growth": (_LONG, _LONG, _INTS, _CELLS, _CELLS, _INT, _INT, _BITS),
    "rules": (
        *(_LONG, _POINTER, _INTS, _INT, _LONG, _LONG, _INTS, _INTS, _LONGS, _CELLS, ctypes.c_uint64, _LONG, _LONG),
        *(_BITS, _INTS, _INTS, _CELLS),
    ),
    "faults": (
        *(None, _LONG, _CELLS, _LONGS, _LONGS, _LONG, _LONGS, _LONGS, _DOUBLES, _BOOLS, _LONG, _LONG, _LONG, _LONG),
        _DOUBLES,
    ),
}


@functools.cache
def search_library() -> dict[str, Any]:
    """Load the library, and build it before if it is not there.

    Raises:
        NativeLibraryError: no wheel brought it, and it cannot be built; the message says why and what to do.
    """
    try:
        _, loaded = load_library(SEARCH_SOURCES, tuple(f"search_{name}" for name in _FUNCTIONS))
    except (JaxarcError, OSError, subprocess.SubprocessError) as error:
        why = " ".join(str(error).split())
        raise NativeLibraryError(
            f"the program search needs its C++ library: {why}; or install the wheel of jaxarc-rl for this system"
        ) from error
    functions = {}
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = loaded[f"search_{name}"]
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    return functions


def call(name: str, *arguments: Any) -> Any:
    """Call a function of the library; arrays are given by their addresses.

    Raises:
        NativeLibraryError: there is no library.
        ctypes.ArgumentError: an argument is of another type, an array of another dtype, or not contiguous.
    """
    return search_library()[name](*arguments)


_TABLE_ARRAYS: Final[dict[str, Any]] = {  # of a TableTask, with their dtypes
    **dict.fromkeys(("values", "codes", "asked_codes", "colors", "pairs"), np.uint8),
    **dict.fromkeys(("num_values", "costs", "counts"), np.int64),
    "have_colors": np.bool_,
}


_USUAL_TABLES: Final = 10_000  # of which there are rarely more


class TableTask(ctypes.Structure):
    """Sources and cells for which tables are tried; see ``TableTask`` in tables.h."""

    _fields_ = (
        *((name, _POINTER) for name in _TABLE_ARRAYS),
        *((name, _LONG) for name in ("num_sources", "count", "num_asked", "most_rows", "keeps_unknown")),
        *((name, _LONG) for name in ("unknown_cost", "unforeseen_cost", "rows_of_one_cost")),
    )

    def __init__(self) -> None:
        super().__init__()
        self._arrays: dict[str, np.ndarray] = {}

    def set(self, **values: np.ndarray | int | None) -> None:
        """Set numbers, and addresses of contiguous arrays.

        Raises:
            TypeError: an array has another dtype, or is not contiguous.
        """
        for name, value in values.items():
            if not isinstance(value, np.ndarray):
                setattr(self, name, value)
                continue
            wanted = np.dtype(_TABLE_ARRAYS[name])
            if value.dtype != wanted or not value.flags.c_contiguous:
                raise TypeError(f"{name} must be a contiguous array of {wanted}, got {value.dtype}; cast it")
            setattr(self, name, value.ctypes.data)
            self._arrays[name] = value  # as only its address is held

    def right_tables(self, sample: Int64[np.ndarray, "2 S"], seconds: float) -> Int32[np.ndarray, "N 6"]:
        """Return the tables that no cell contradicts, in the order of trying, as far as the time lasts.

        Args:
            sample: pairs of cells, of which the hardest to tell apart choose the sources that are tried.
            seconds: from now on.

        Returns:
            Four sources, -1 for none; the source that is copied, or -1; the cost.
        """
        found, count = np.empty((0, 6), np.int32), _USUAL_TABLES
        while count > len(found):
            found = np.empty((count, 6), np.int32)
            count = call("tables", ctypes.byref(self), sample.shape[1], sample, seconds, count, found)
        return found[:count]

    def cost(self, chosen: Sequence[int]) -> int:
        """Return what a table of one to four sources costs."""
        return call("table_cost", ctypes.byref(self), np.array([*chosen, -1, -1, -1][:4], np.int32))


def numbered_values(
    values: UInt8[np.ndarray, "K M"], have_colors: Bool[np.ndarray, " K"]
) -> tuple[UInt8[np.ndarray, "K M"], Int64[np.ndarray, " K"], Bool[np.ndarray, " K"]]:
    """Number the values of each source from 0, count them, and say which source is unlike all before.

    Sources are alike if their values are, or, for those that are no colors, if the numbered values are.
    """
    codes, num_values, are_new = np.empty_like(values), np.empty(len(values), np.int64), np.empty(len(values), np.bool_)
    call("number_values", *values.shape, values, have_colors, codes, num_values, are_new)
    return codes, num_values, are_new


def faults(
    codes: UInt8[np.ndarray, "K D"],
    num_values: Int64[np.ndarray, " K"],
    rows: Int64[np.ndarray, " D"],
    colors: Int64[np.ndarray, " D"],
    pairs: Int64[np.ndarray, " D"],
    weights: Float64[np.ndarray, " D"],
    are_copied: Bool[np.ndarray, " D"],
    most_rows: int,
) -> Float64[np.ndarray, " K"]:
    """Return how many cells tables with one more source do not foresee, infinite where a table is too large.

    A row votes for a color, or for that of the input, and counts what its demonstration did not vote for. With votes
    ``2 0`` of one demonstration and ``1 3`` of another, the first foresees one cell of the second, and the second none
    of the first.
    """
    found = np.full(len(codes), np.inf)
    num_pairs, num_colors = int(pairs.max()) + 1, int(colors.max()) + 1
    given = (rows, int(rows.max()) + 1, colors, pairs, weights, are_copied, len(colors), num_pairs, num_colors)
    call("faults", len(codes), codes, num_values, *given, most_rows, found)
    return found
