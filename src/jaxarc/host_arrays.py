"""Arrays of a caller, read into NumPy: from any library, and refused where a mask hides values; without JAX."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike

from jaxarc.errors import JaxarcError


class HiddenValuesError(JaxarcError, ValueError):
    """The mask of a masked array hides values."""


@runtime_checkable
class _NumpyArray(Protocol):
    def __array__(self) -> np.ndarray: ...


@runtime_checkable
class _DlpackArray(Protocol):
    def __dlpack__(self, *, stream: None = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


def is_array(value: Any) -> bool:
    """Return whether a value is an array of any library, or one of its numbers."""
    return isinstance(value, _NumpyArray | _DlpackArray)


def to_numpy(values: Any, dtype: DTypeLike | None = None) -> np.ndarray:
    """Return an array of any library, or a list, as an array of NumPy, which may share its memory.

    Raises:
        HiddenValuesError: a mask hides a value; a masked array that hides none is taken.
        TypeError: its library does not give it, as PyTorch an array on a GPU.
    """
    _refuse_hidden(values)
    try:
        if isinstance(values, _DlpackArray) and not isinstance(values, _NumpyArray):
            return np.asarray(np.from_dlpack(values), dtype)
        return np.asarray(values, dtype)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TypeError(
            f"{type(values).__name__} cannot be read by NumPy ({reason}); pass an array of numbers in the CPU's memory"
        ) from error


def to_lists(value: Any) -> Any:
    """Return nested lists of Python's numbers for lists, and for what in them is an array or a number of one.

    Raises:
        HiddenValuesError, TypeError: as for :func:`to_numpy`.
    """
    if is_array(value):
        return to_numpy(value).tolist()
    return [to_lists(one) for one in value] if isinstance(value, list | tuple) else value


def _refuse_hidden(values: Any) -> None:
    if isinstance(values, list | tuple):
        for one in values:
            _refuse_hidden(one)
    elif isinstance(values, np.ma.MaskedArray) and (hidden := np.ma.getmaskarray(values)).any():
        first = tuple(np.argwhere(hidden)[0].tolist())
        raise HiddenValuesError(
            f"a masked array hides {hidden.sum()} of {hidden.size} values, the first at {first}; leave them out, or "
            "write what they are with its method filled"
        )
