"""Arrays of any library as those of NumPy: what speaks ``__array__`` or DLPack, such as JAX and PyTorch."""

from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class _NumpyArray(Protocol):
    def __array__(self) -> np.ndarray: ...


@runtime_checkable
class _DlpackArray(Protocol):
    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


def is_array(value: Any) -> bool:
    """Return whether a value is an array of any library, or one of its numbers."""
    return isinstance(value, _NumpyArray | _DlpackArray)


def to_numpy(array: Any) -> np.ndarray:
    """Return what :func:`is_array` takes as an array of NumPy.

    Raises:
        TypeError: its library does not give it, as PyTorch an array on a GPU.
    """
    try:
        return np.asarray(array) if isinstance(array, _NumpyArray) else np.from_dlpack(array)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TypeError(
            f"{type(array).__name__} cannot be read by NumPy ({reason}); copy it to the CPU as integers"
        ) from error


def to_lists(value: Any) -> Any:
    """Return nested lists of Python's numbers for lists, and for what in them is an array or a number of one.

    Raises:
        TypeError: as for :func:`to_numpy`.
    """
    if is_array(value):
        return to_numpy(value).tolist()
    return [to_lists(one) for one in value] if isinstance(value, list | tuple) else value
