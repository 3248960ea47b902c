"""Device arrays of a caller's NumPy arrays, copied before JAX sees them.

JAX takes its copy of a NumPy array when the device is free. While a step runs, ``jnp.array``, ``jax.device_put`` and
compiled functions read later, in silence (JAX 0.8 to 0.12, on a CPU, at addresses that are multiples of 64)::

    selection = jnp.array(buffer)  # while a step runs
    buffer[:] = 1  # what the next step needs; selection may be all ones

So a caller's arrays become device arrays by these functions alone.
"""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Shaped

from jaxarc.host_arrays import to_numpy

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Tree = TypeVar("Tree")


def device_array(values: Any, dtype: DTypeLike | None = None) -> Shaped[Array, "..."]:
    """Return ``jnp.asarray(values, dtype)`` that no later write into the caller's memory changes.

    Raises:
        HiddenValuesError, TypeError: as for :func:`~jaxarc.host_arrays.to_numpy`.
    """
    if isinstance(values, jax.Array | int | float) or _holds_jax(values):
        return jnp.asarray(values, dtype)
    return jnp.asarray(np.array(to_numpy(values)), dtype)


def own_arrays(tree: Tree) -> Tree:
    """Return a pytree whose NumPy arrays are copies; the rest of it stays as it is.

    Raises:
        HiddenValuesError: a mask hides a value.
    """
    leaves, structure = jax.tree.flatten(tree)
    if not any(isinstance(leaf, np.ndarray) for leaf in leaves):
        return tree
    own = [np.array(to_numpy(leaf)) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    return jax.tree.unflatten(structure, own)


def with_own_arrays(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Make a compiled function copy the NumPy arrays among its arguments at each call; it keeps its ``lower``."""
    program: Any = function

    def call(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
        args, named = own_arrays((args, named))
        return function(*args, **named)

    wrapper: Any = functools.wraps(function)(call)
    wrapper.lower = program.lower
    return wrapper


def _holds_jax(values: Any) -> bool:
    return isinstance(values, list | tuple) and any(isinstance(one, jax.Array) or _holds_jax(one) for one in values)
