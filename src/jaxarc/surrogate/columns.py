"""Data of a caller, an array or columns with labels as any library has them: as arrays of JAX, or as real numbers."""

import numbers
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float64

from jaxarc.device_arrays import device_array
from jaxarc.host_arrays import HiddenValuesError, to_numpy


@runtime_checkable
class LabelledData(Protocol):
    """Data by name, as an ``xarray.Dataset`` has it; xarray itself is not needed."""

    @property
    def data_vars(self) -> Mapping[Any, Any]:
        """Arrays, or what NumPy makes arrays of, by name."""
        ...


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


def to_arrays(data: Mapping[str, Any] | LabelledData) -> dict[str, Array]:
    """Return the variables of labelled data as JAX arrays, which compiled code can take, in the order of the data.

    Labels of axes are left out: JAX knows arrays and containers of arrays alone. Numbers keep their kind, in 32 bits
    unless ``jax_enable_x64`` is set.

    Args:
        data: a mapping, or an object with ``data_vars``, such as an ``xarray.Dataset``.

    Raises:
        TypeError: there is no name to go by, or a variable does not hold numbers; its name is in the message.
    """
    named = data.data_vars if isinstance(data, LabelledData) else data
    if not isinstance(named, Mapping):
        raise TypeError(
            f"to_arrays: labelled data have names, got {type(data).__name__}; pass a mapping from name to array, or an "
            "object with data_vars, as xarray.Dataset is one"
        )
    return {str(name): _numbers(values, name) for name, values in named.items()}


def _numbers(values: Any, name: Any) -> Array:
    try:
        array = to_numpy(values)
    except (TypeError, HiddenValuesError) as error:
        raise TypeError(f"to_arrays: {name!r} cannot be made an array: {error}; leave it out") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"to_arrays: {name!r} holds {array.dtype}, no numbers; leave it out, or number its values")
    return device_array(array)


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
