"""Samples of a caller as real numbers: an array, or columns with labels, as a data frame of any library has them."""

import numbers
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from jaxarc.host_arrays import HiddenValuesError, to_numpy
from jaxarc.surrogate.batch import LabelledData


@runtime_checkable
class _Frame(Protocol):
    """As pandas and polars have it."""

    @property
    def columns(self) -> Iterable[Any]: ...

    def __getitem__(self, label: Any, /) -> Any: ...


@runtime_checkable
class _Table(Protocol):
    """As pyarrow has it."""

    @property
    def column_names(self) -> Iterable[Any]: ...

    def __getitem__(self, label: Any, /) -> Any: ...


def labels_of(values: Any) -> tuple[str, ...] | None:
    """Return the labels of columns, in their order; None of what has none, such as an array.

    Columns have labels in a data frame, a mapping, an ``xarray.Dataset`` and a structured array.
    """
    columns = _columns_of(values)
    return None if columns is None else tuple(str(label) for label, _ in columns)


def read_numbers(values: Any, name: str) -> Float64[np.ndarray, "..."]:
    """Return real numbers, also flags, decimals and columns that may lack values and lack none, as float64."""
    return _read(values, name, _real_numbers)


def read_flags(values: Any, name: str) -> np.ndarray:
    """Return an array, or columns side by side, as they are; columns of true and false as bool."""
    return _read(values, name, _flags)


def _read(values: Any, name: str, convert: Any) -> np.ndarray:
    columns = _columns_of(values)
    if columns is None:
        return convert(values, name)
    read = [convert(column, f"{name}, column {str(label)!r}:") for label, column in columns]
    shapes = {column.shape for column in read}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise ValueError(f"{name} must have columns of one length, got the shapes {sorted(shapes)}; cut them alike")
    return np.stack(read, axis=-1) if read else np.zeros((0, 0))


def _columns_of(values: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(values, LabelledData):
        values = values.data_vars
    if isinstance(values, Mapping):
        return list(values.items())
    if isinstance(values, np.ndarray):
        return None if values.dtype.names is None else [(label, values[label]) for label in values.dtype.names]
    if not isinstance(values, _Frame | _Table):
        return None
    labels = list(values.column_names if isinstance(values, _Table) else values.columns)
    names = [str(label) for label in labels]
    if twice := [label for label in names if names.count(label) > 1]:
        raise ValueError(f"two columns have the label {twice[0]!r}; rename one")
    return [(label, values[label]) for label in labels]


def _real_numbers(values: Any, name: str) -> np.ndarray:
    array = _array(values, name)
    if array.dtype.kind == "O":
        for where, one in np.ndenumerate(array):
            if not isinstance(one, numbers.Real | Decimal | np.bool_):
                raise TypeError(
                    f"{name} must be real numbers, got {one!r:.40} of the type {type(one).__name__} at {where}; leave "
                    "it out, or write a number for it"
                )
    elif array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers, got {array.dtype}; leave it out, or number what it holds")
    return array.astype(np.float64)


def _flags(values: Any, name: str) -> np.ndarray:
    array = _array(values, name)
    is_bool = array.dtype.kind == "O" and all(isinstance(one, bool | np.bool_) for one in array.flat)
    return array.astype(np.bool_) if is_bool else array


def _array(values: Any, name: str) -> np.ndarray:
    try:
        return to_numpy(values)
    except (TypeError, HiddenValuesError) as error:
        raise type(error)(f"{name} {error}") from None
