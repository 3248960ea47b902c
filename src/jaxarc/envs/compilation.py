"""Compile, batch and shard the functions of one environment."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, PyTree, UInt32

Result = TypeVar("Result")


def compiled(may_raise: Callable[..., bool] | None = None) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Compile a function of pytrees of arrays.

    ``eqx.filter_jit`` explains what went wrong, and takes four times as long to call as ``jax.jit``. So the second is
    tried first; a call that fails is repeated with the first, which fails in the same way and says why.

    Args:
        may_raise: tells from the arguments whether the function checks values at run time. Such a check fails no
            sooner than the result is there, so the call waits for it.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        fast, careful = jax.jit(function), eqx.filter_jit(function)

        @functools.wraps(function)
        def call(*args: Any) -> Result:
            try:
                result = fast(*args)
                if may_raise is not None and may_raise(*args):
                    jax.block_until_ready(result)
            except (TypeError, ValueError, RuntimeError):
                return careful(*args)
            return result

        return call

    return decorate


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


Tree = TypeVar("Tree", bound=PyTree[Array])


def vary_like(tree: Tree, words: UInt32[Array, " words"]) -> Tree:
    """Return the same values, as varying over the devices as ``words`` are.

    A fresh state holds constants, which vary over no device; the state after a step does vary. Without this a
    ``lax.scan`` over steps inside ``shard_map`` would refuse the carry. The compiler removes the addition of zero.
    """
    zero = words[0] & jnp.uint32(0)

    def mark(leaf: Array) -> Array:
        return leaf | zero.astype(jnp.bool_) if leaf.dtype == jnp.bool_ else leaf + zero.astype(leaf.dtype)

    return jax.tree.map(mark, tree)
