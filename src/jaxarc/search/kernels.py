"""The library of the search in C++: loaded at first use, and its functions on arrays of NumPy.

Its sources say what stands where: ``native/search/*.h``.
"""

import ctypes
import functools
import subprocess
import warnings
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8

from jaxarc.errors import JaxarcError
from jaxarc.native.library import SEARCH_SOURCES, NativeLibraryWarning, load_library

_INT, _LONG, _POINTER, _TEXT = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {  # name -> the result, then the arguments, as in search.cc
    "new": (_POINTER, _INT, _INT),
    "delete": (None, _POINTER),
    "num_images": (_LONG, _POINTER),
    "num_states": (_LONG, _POINTER),
    "add": (None, _POINTER, _LONG, _INT, _POINTER, _POINTER, _POINTER),
    "images": (None, _POINTER, _LONG, _POINTER, _INT, _POINTER, _POINTER),
    "sizes": (None, _POINTER, _LONG, _POINTER, _POINTER, _POINTER),
    "declare": (_INT, _POINTER, _TEXT, _TEXT, _TEXT, _POINTER),
    "start": (None, _POINTER, _POINTER),
    "level_size": (_LONG, _POINTER, _INT, _INT),
    "unknown": (_LONG, _POINTER, _INT, _INT, _INT, _POINTER),
    "learn": (None, _POINTER, _INT, _LONG, _POINTER, _POINTER),
    "expand": (None, _POINTER, _INT, _INT, _INT, _LONG, _LONG, _INT, _INT),
    "num_image_states": (_LONG, _POINTER),
    "image_states": (None, _POINTER, _INT, _POINTER, _POINTER, _POINTER),
    "program": (_INT, _POINTER, _INT, _INT, _POINTER),
    "draw": (None, _POINTER, _LONG, _INT, _POINTER, _POINTER, _LONG, _POINTER),
    "pieces": (
        *(_LONG, _POINTER, _LONG, _INT, _POINTER, _POINTER, _LONG, _POINTER, _LONG, _POINTER, _LONG),
        *(_POINTER, _POINTER, _POINTER),
    ),
    "lay_out": (None, _LONG, _LONG, *[_POINTER] * 5),
    "gains": (None, _LONG, _LONG, *[_POINTER] * 4),
    "stack": (_LONG, _LONG, _LONG, *[_POINTER] * 4, _LONG, _LONG, _POINTER),
    "tables": (_LONG, _POINTER, _LONG, _POINTER),
    "faults": (None, _LONG, *[_POINTER] * 3, _LONG, *[_POINTER] * 4, _LONG, _LONG, _LONG, _LONG, _POINTER),
}


@functools.cache
def search_library() -> dict[str, Any] | None:
    """Load the library, and build it before if it is not there; None, with one warning, where that fails."""
    try:
        _, loaded = load_library(SEARCH_SOURCES, tuple(f"search_{name}" for name in _FUNCTIONS))
    except (JaxarcError, OSError, subprocess.SubprocessError) as error:
        why = " ".join(str(error).split())
        warnings.warn_explicit(
            f"the search runs on NumPy, which is slower: {why}; set CXX to a C++ compiler and JAXARC_CACHE to a folder "
            "of your own",
            NativeLibraryWarning,
            filename=str(SEARCH_SOURCES),
            lineno=1,
        )
        return None
    functions = {}
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = loaded[f"search_{name}"]
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    return functions


def call(name: str, *arguments: Any) -> Any:
    """Call a function of the library, which is there; arrays are given by their addresses, and must be contiguous."""
    library = search_library()
    assert library is not None
    return library[name](*(_address(one) if isinstance(one, np.ndarray) else one for one in arguments))


def _address(array: np.ndarray) -> int:
    assert array.flags.c_contiguous
    return array.ctypes.data


class TableTask(ctypes.Structure):
    """Sources and cells for which tables are tried; see ``TableTask`` in tables.h.

    It holds addresses of arrays, so the caller keeps the arrays.
    """

    _fields_ = (
        *((name, _POINTER) for name in ("bits", "allowed", "are_few", "codes", "asked_codes", "num_values", "costs")),
        *((name, _POINTER) for name in ("colors", "pairs", "copied")),
        *((name, _LONG) for name in ("num_sources", "words", "count", "num_asked", "base_cost", "most_rows", "tried")),
        *((name, _LONG) for name in ("keeps_unknown", "unknown_cost", "unforeseen_cost", "rows_of_one_cost")),
    )

    def set(self, **values: np.ndarray | int | None) -> None:
        """Set numbers, and addresses of contiguous arrays."""
        for name, value in values.items():
            setattr(self, name, _address(value) if isinstance(value, np.ndarray) else value)

    def right_tables(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return cost and sources of the tables that no cell contradicts, in the order in which they are tried."""
        room = 1024
        while True:
            found = np.empty((room, 4), np.int32)
            count = call("tables", ctypes.byref(self), room, found)
            if count <= room:
                rows = found[:count].tolist()
                return [(cost, tuple(one for one in chosen if one >= 0)) for *chosen, cost in rows]
            room = count


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
    """Return how many cells tables with one more source do not foresee, infinite where a table is too large."""
    found = np.full(len(codes), np.inf)
    num_pairs, num_colors = int(pairs.max()) + 1, int(colors.max()) + 1
    given = (rows, int(rows.max()) + 1, colors, pairs, weights, are_copied, len(colors), num_pairs, num_colors)
    call("faults", len(codes), codes, num_values, *given, most_rows, found)
    return found
