"""Calls from Python: compiled, in a process that can run JAX, with arguments in our order, and arrays as declared.

A field ``counts: Int32[Array, "*B 5"]`` is a promise that nobody keeps after ``jax.tree.map``, and the kernels of the
C++ library take the bytes as they are; :func:`as_declared` looks at dtypes and shapes while a function is traced. What
depends on values alone is not looked at, so nothing of this runs in a compiled program but a cast.
"""

import dataclasses
import functools
import os
import re
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, ParamSpec, TypeVar, Union, get_args, get_origin

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.errors import JaxRuntimeError
from jax.tree_util import GetAttrKey, KeyPath, keystr
from jaxtyping import AbstractArray, PyTree

from jaxarc.device_arrays import own_arrays
from jaxarc.errors import JaxarcError
from jaxarc.utils.error_handling import JAXErrorHandler

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Tree = TypeVar("Tree", bound=PyTree)

_RUNTIME_STATUS = re.compile(r"[A-Z]+(_[A-Z]+)*: ")  # begins the text of every error of a program that ran
_ANY: Final = ("...",)
_FAILED_CHECK = re.compile(r"_EquinoxRuntimeError: (.*?)\n\n\n-{10}", re.DOTALL)


def compiled(may_raise: Callable[..., bool] | None = None) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Compile a function of pytrees of arrays for calls from a Python loop.

    ``eqx.filter_jit`` words errors well, and takes four times as long to call as ``jax.jit``, so calls go to
    ``jax.jit``. A call that fails while it runs is not run again: its error is raised with the text of the check. A
    call that fails before it runs, because of its arguments, is traced again by ``eqx.filter_jit``, which takes
    arguments of any type and lets the function itself say what is wrong with them.

    Args:
        may_raise: says of the arguments whether the function checks values at run time. Such a check fails no sooner
            than the result is there, so the call waits for it.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        def of_mode(mode: str, *args: Any) -> Result:
            with JAXErrorHandler.compiling(mode):  # a key of the cache: checks are compiled for one error mode
                return with_axes_of_xla(function)(*args)

        of_mode.__name__ = of_mode.__qualname__ = function.__name__
        fast = jax.jit(of_mode, static_argnums=0)
        careful = eqx.filter_jit(of_mode)

        @functools.wraps(function)
        def call(*args: Any) -> Result:
            require_own_jax()
            # A key or a flat action. Leaves of states and params are arrays of JAX already: their classes and the
            # environment made them, and to look at each would take a tenth of a step.
            args = tuple(own_arrays(arg) if isinstance(arg, np.ndarray) else arg for arg in args)
            mode = JAXErrorHandler.mode_to_compile()
            # A call returns before the device is done, so a failed check would be raised wherever the result is used
            # first. To raise it here, the call waits where checks exist.
            try:
                result = fast(mode, *args)
                if may_raise is not None and may_raise(*args):
                    jax.block_until_ready(result)
            except (TypeError, ValueError, JaxRuntimeError) as error:
                # Three causes: a check of ours failed, the program failed while it ran (out of memory, say), or it
                # never ran because the arguments cannot be traced. Only the last is tried again.
                failed = _FAILED_CHECK.search(str(error))
                if failed is not None:
                    raise eqx.EquinoxRuntimeError(failed.group(1)) from None
                if isinstance(error, JaxRuntimeError) or _RUNTIME_STATUS.match(str(error)):
                    raise
                return careful(mode, *args)
            return result

        return call

    return decorate


def with_axes_of_xla(function: Callable[..., Result]) -> Callable[..., Result]:
    """Let XLA lay out what is computed for one environment, where the mesh in use has explicit axes.

    A gather by indices of another layout than its operand's has no one layout, and a step has many. The batch keeps the
    layout of its axis, because that is the one of ``jax.vmap``.
    """

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Result:
        arrays, rest = eqx.partition((args, named), lambda leaf: isinstance(leaf, jax.Array))
        meshes = [jax.sharding.get_abstract_mesh(), *(jax.typeof(x).sharding.mesh for x in jax.tree.leaves(arrays))]
        mesh = next((mesh for mesh in meshes if mesh.explicit_axes), None)
        if mesh is None:
            return function(*args, **named)

        def on_arrays(arrays: Any) -> Result:
            args, named = eqx.combine(arrays, rest)
            return function(*args, **named)

        with jax.sharding.use_abstract_mesh(mesh):
            laid_out: Any = jax.sharding.auto_axes(on_arrays, out_sharding=jax.sharding.PartitionSpec())
            return laid_out(arrays)

    return call


class ForkedProcessError(JaxarcError, RuntimeError):
    """This process was forked from one in which JAX ran, and a compiled call in it would wait forever."""


def require_own_jax() -> None:
    """Raise in a process that cannot run JAX, such as a worker that Gymnasium's ``AsyncVectorEnv`` forked.

    Raises:
        ForkedProcessError: saying how to start workers.
    """
    if _was_forked:
        raise ForkedProcessError(
            f"process {os.getpid()} was forked after JAX had started, and JAX hangs in it; start workers with "
            "context='spawn' (gymnasium.make_vec: vector_kwargs={'context': 'spawn'}), or step all environments in one "
            "process with vectorization_mode='vector_entry_point'"
        )


def in_own_process(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Make a compiled function refuse calls in a process that cannot run JAX; see :func:`require_own_jax`."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
        require_own_jax()
        return function(*args, **named)

    return call


_was_forked = False  # after JAX had started


def _note_fork() -> None:
    global _was_forked
    # JAX refuses to change this option once it has started, and has no other public way to ask whether it has.
    name = "jax_num_cpu_devices"
    value = jax.config.values[name]
    try:
        jax.config.update(name, value + 1)
    except RuntimeError:
        _was_forked = True
    else:
        jax.config.update(name, value)


with suppress(AttributeError):  # Windows, where no process forks
    os.register_at_fork(after_in_child=_note_fork)


def in_our_order(step: Callable[..., Result]) -> Callable[..., Result]:
    """Refuse a call in gymnax's order, which begins with a key; nothing in a step is random."""

    @functools.wraps(step)
    def call(self: Any, *args: Any, **named: Any) -> Result:
        if len(args) > 3:
            raise TypeError(
                f"env.step takes 3 arguments, (state, action, params), got {len(args)}; gymnax's order, "
                "(key, state, action, params), needs jaxarc.adapters.GymnaxEnvironment"
            )
        return step(self, *args, **named)

    return call


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
