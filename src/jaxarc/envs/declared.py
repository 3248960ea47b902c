"""Arrays as their classes declare them: dtypes and shapes, looked at while a function is traced.

A field ``counts: Int32[Array, "*B 5"]`` is a promise that nobody keeps after ``jax.tree.map``, and the kernels of the
C++ library take the bytes as they are. What depends on values alone is not looked at, so nothing of this runs in a
compiled program but a cast.
"""

import dataclasses
import functools
import types
from typing import Any, Final, TypeVar, Union, get_args, get_origin

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import GetAttrKey, KeyPath, keystr
from jaxtyping import AbstractArray, PyTree

Tree = TypeVar("Tree", bound=PyTree)

_ANY: Final = ("...",)


def as_declared(tree: Tree, name: str, batch: tuple[int, ...] | None = None, **lengths: int) -> Tree:
    """Return a pytree of dataclasses whose arrays have the dtypes that their fields declare.

    An array of another dtype is cast where that can change no value: int16 to int32, float16 to float32. A bool is
    neither a number nor made of one.

    Args:
        tree: a dataclass, with others in it; fields that declare no array are left alone.
        name: what errors call it.
        batch: the shape of the leading axes ``*B``; by default as the first array has it, and the same for all.
        lengths: of other axes, by the names that fields give them; one without a length may have any, the same in all
            fields of one object.

    Raises:
        TypeError: an array has a dtype whose values may not fit; it is named, with both dtypes.
        ValueError: an array has another shape; it is named, with both shapes.
    """
    shapes: dict[str, tuple[int, ...]] = {} if batch is None else {"*B": batch}
    lengths_of: dict[KeyPath, dict[str, int]] = {}

    def convert(path: KeyPath, leaf: Any) -> Any:
        declared = _declared(tree, path)
        if not declared or not isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float):
            return leaf
        field = f"{name}{keystr(path)}"
        array = _in_dtype(leaf, declared, field)
        (one,) = (kind for kind in declared if array.dtype.name in kind.dtypes)
        _require_shape(array.shape, one.dim_str.split(), shapes, lengths_of.setdefault(path[:-1], dict(lengths)), field)
        return array

    return jax.tree_util.tree_map_with_path(convert, tree)


def _declared(tree: Any, path: KeyPath) -> list[Any]:
    """Return the types of an array that its field declares, which is the last key of its path."""
    for key in path[:-1]:
        if not isinstance(key, GetAttrKey):
            return []
        tree = getattr(tree, key.name)
    last: Any = path[-1] if path else None
    return _fields(type(tree)).get(last.name, []) if isinstance(last, GetAttrKey) else []


@functools.cache
def _fields(kind: type) -> dict[str, list[Any]]:
    if not dataclasses.is_dataclass(kind):
        return {}
    return {field.name: _arrays_of(field.type) for field in dataclasses.fields(kind)}


def _arrays_of(annotation: Any) -> list[Any]:
    is_union = get_origin(annotation) in (Union, types.UnionType)
    kinds = get_args(annotation) if is_union else (annotation,)
    is_array = lambda kind: isinstance(kind, type) and issubclass(kind, AbstractArray)
    return [kind for kind in kinds if is_array(kind) and all(isinstance(dtype, str) for dtype in kind.dtypes)]


def _in_dtype(leaf: Any, declared: list[Any], field: str) -> Any:
    array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
    given = array.dtype if isinstance(array, jax.Array) else jax.dtypes.canonicalize_dtype(array.dtype)
    wanted = [dtype for kind in declared for dtype in kind.dtypes if dtype != "bool_"]  # jaxtyping's other name
    if given.name in wanted:
        is_weak = isinstance(array, jax.Array) and jax.typeof(array).weak_type
        return jnp.asarray(array, given) if is_weak or isinstance(array, np.ndarray) else array
    if len(wanted) == 1 and _holds(np.dtype(wanted[0]), given):
        return jnp.asarray(array).astype(wanted[0])
    raise TypeError(
        f"{field} must have dtype {' or '.join(wanted)}, got {given.name}, whose values may not fit; keep the dtypes "
        f"of what made it, or cast it with .astype({wanted[0]!r})"
    )


def _holds(wide: np.dtype, narrow: np.dtype) -> bool:
    """Whether each value of a dtype is one of another, both being integers or both floating-point numbers."""
    if jnp.issubdtype(wide, jnp.integer) and jnp.issubdtype(narrow, jnp.integer):
        low, high = jnp.iinfo(wide).min, jnp.iinfo(wide).max
        return low <= jnp.iinfo(narrow).min and jnp.iinfo(narrow).max <= high
    if jnp.issubdtype(wide, jnp.floating) and jnp.issubdtype(narrow, jnp.floating):
        more, less = jnp.finfo(wide), jnp.finfo(narrow)
        return more.nmant >= less.nmant and more.maxexp >= less.maxexp and more.minexp <= less.minexp
    return False


def _require_shape(
    shape: tuple[int, ...], axes: list[str], shapes: dict[str, tuple[int, ...]], lengths: dict[str, int], field: str
) -> None:
    """Compare a shape with names and numbers of axes, of which those that are new are taken from it."""
    leading = axes[0] if axes and (axes[0].startswith("*") or axes[0] == "...") else None
    own = axes if leading is None else axes[1:]
    split = len(shape) - len(own)
    fits = split == 0 if leading is None else split >= 0
    if fits and leading is not None and leading.startswith("*"):
        fits = shapes.setdefault(leading, shape[:split]) == shape[:split]
    if fits:
        fits = all(
            length == (int(axis) if axis.isdecimal() else lengths.setdefault(axis, length))
            for axis, length in zip(own, shape[split:], strict=True)
        )
    if fits:
        return
    front = shapes.get(leading, _ANY) if leading is not None else ()
    wanted = ", ".join(map(str, (*front, *(lengths.get(axis, axis) for axis in own))))
    raise ValueError(f"{field} must have shape ({wanted}), got {shape}; all arrays are of one batch and one canvas")
