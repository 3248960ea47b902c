"""Kernels of a whole batch, reached from the code of one environment.

``jax.vmap`` of code that calls such a kernel does not vectorise the kernel: its rule folds every further batch axis
into the one that the kernel has, however the vmaps are nested. So what users vmap runs what was written for batches.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, PyTree

Rows = TypeVar("Rows", bound=PyTree[Array])
Kernel = Callable[[Any, Any], Any]  # (rows, shared arrays) -> rows


def with_batch_rule(kernel: Kernel, unshared_rule: Callable[[Kernel, Any, Any, Any], Any]) -> Kernel:
    """Make a function of one environment of a kernel of many.

    Args:
        kernel: from arrays with a leading batch axis, and others that the whole batch shares, to arrays with that axis.
        unshare: does the work where each of several batches has shared arrays of its own; takes the kernel, a pytree
            of booleans that tells which shared arrays have a leading axis, and all arrays with one batch axis more.
    """

    @custom_vmap
    def batched(rows: Any, shared: Any) -> Any:
        return kernel(rows, shared)

    @batched.def_vmap
    def fold(size: int, has_axis: Any, rows: Any, shared: Any) -> tuple[Any, Any]:
        lead = lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape))
        rows = jax.tree.map(lead, rows, has_axis[0])
        if any(jax.tree.leaves(has_axis[1])):
            out = unshared_rule(batched, has_axis[1], rows, shared)
        else:
            out = unfold_rows(size, batched(fold_rows(rows), shared))
        return out, jax.tree.map(lambda _: True, out)

    def single(row: Any, shared: Any) -> Any:
        rows = jax.tree.map(lambda x: x[None], row)
        return jax.tree.map(lambda x: x[0], batched(rows, shared))

    return single


def fold_rows(rows: Rows) -> Rows:
    """Make one batch axis of the first two."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)


def unfold_rows(size: int, rows: Rows) -> Rows:
    """Make two axes of the batch axis, the first of this size."""
    return jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), rows)


def no_shared_arrays(kernel: Kernel, has_axis: Any, rows: Any, shared: Any) -> Any:
    """The ``unshare`` of a kernel that shares nothing."""
    raise AssertionError("a kernel that shares nothing cannot have shared arrays of its own")
