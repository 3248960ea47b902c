"""Kernels of the library on arrays of NumPy: a host calls the handlers that XLA calls, without XLA in between.

A call takes half a microsecond, where one of a compiled program takes tens.
"""

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from jaxarc.native.library import native_library

RUNNING, NEWLY_SOLVED, WRONG_SUBMISSION, INVALID = (1, 2, 4, 8)  # bits of the facts of a step, as in step.h
_TYPES: Final = {"bool": 1, "int8": 2, "int32": 4, "uint8": 6, "uint32": 8, "float32": 11}  # as XLA_FFI_DataType


class _Array(ctypes.Structure):
    """As XLA_FFI_Buffer."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )


class _Call(ctypes.Structure):
    """As HostCall in call.h: three lists, each with its length."""

    _fields_ = (
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
        ("num_arguments", ctypes.c_int64),
        ("results", ctypes.POINTER(ctypes.c_void_p)),
        ("num_results", ctypes.c_int64),
        ("numbers", ctypes.POINTER(ctypes.c_int64)),
        ("num_numbers", ctypes.c_int64),
    )


def host_call(
    kernel: str, numbers: Sequence[int], arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]
) -> Callable[[], bytes | None]:
    """Return a call of a kernel, ``"step"`` or ``"reset"``, on these arrays; it returns None, or why it is refused.

    Args:
        kernel: where there is a library; see ``library.cc``.
        numbers: what it begins with, in its order.
        arguments: the arrays that it takes, in its order.
        results: those that it returns. One that is an argument too is changed in place.

    Raises:
        TypeError: an array is not contiguous, or has a dtype that no kernel reads.
    """
    library = native_library()
    assert library is not None, "the caller has looked whether there is a library"
    function = library.functions[f"host_{kernel}"]
    function.restype = ctypes.c_char_p
    lists: list[Any] = []
    for arrays in (arguments, results):
        described = [_described(array) for array in arrays]
        lists += [(ctypes.c_void_p * len(arrays))(*map(ctypes.addressof, described)), len(arrays)]
        lists[-2].kept = (arrays, described)  # an address is only as good as what it is the address of
    call = _Call(*lists, (ctypes.c_int64 * len(numbers))(*numbers), len(numbers))
    call.kept = lists
    return functools.partial(function, ctypes.byref(call))


def _described(array: np.ndarray) -> _Array:
    if not array.flags.c_contiguous or array.dtype.name not in _TYPES:
        raise TypeError(
            f"the library reads contiguous arrays of {', '.join(_TYPES)}, got {array.dtype} of shape {array.shape} "
            f"and strides {array.strides}; keep the arrays of what made them"
        )
    dims = (ctypes.c_int64 * array.ndim)(*array.shape)
    return _Array(ctypes.sizeof(_Array), None, _TYPES[array.dtype.name], array.ctypes.data, array.ndim, dims)
