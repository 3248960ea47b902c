"""How the functions of one environment are compiled, batched and spread over devices."""

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, PyTree, UInt32

from jaxarc.utils.error_handling import JAXErrorHandler

Result = TypeVar("Result")
Rows = TypeVar("Rows", bound=PyTree[Array])
Shared = PyTree[Array]
Kernel = Callable[[Any, Any], Any]  # (rows: arrays with a leading batch axis, shared: arrays of the batch) -> rows

_RUNTIME_STATUS = re.compile(r"[A-Z]+(_[A-Z]+)*: ")  # begins the text of every error of a program that ran
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
            del mode  # a key of the compilation cache: checks are compiled for one error mode
            return function(*args)

        of_mode.__name__ = of_mode.__qualname__ = function.__name__
        fast = jax.jit(of_mode, static_argnums=0)
        careful = eqx.filter_jit(of_mode)

        @functools.wraps(function)
        def call(*args: Any) -> Result:
            mode = JAXErrorHandler.get_error_mode()
            # A call returns before the device is done, so a failed check would be raised wherever the result is used
            # first. To raise it here, the call waits where checks exist.
            try:
                result = fast(mode, *args)
                if may_raise is not None and may_raise(*args):
                    jax.block_until_ready(result)
            except (TypeError, ValueError, jax.errors.JaxRuntimeError) as error:
                # Three causes: a check of ours failed, the program failed while it ran (out of memory, say), or it
                # never ran because the arguments cannot be traced. Only the last is tried again.
                failed = _FAILED_CHECK.search(str(error))
                if failed is not None:
                    raise eqx.EquinoxRuntimeError(failed.group(1)) from None
                if isinstance(error, jax.errors.JaxRuntimeError) or _RUNTIME_STATUS.match(str(error)):
                    raise
                return careful(mode, *args)
            return result

        return call

    return decorate


def with_batch_rule(kernel: Kernel, unshared_rule: Callable[[Kernel, Any, Any, Any], Any]) -> Kernel:
    """Make a function of one environment of a kernel that was written for many.

    ``jax.vmap`` of the result does not vectorize the kernel: its rule folds every further batch axis into the one that
    the kernel has, however the vmaps are nested. So what users ``vmap`` runs the batch kernel. An example, with a
    kernel that sees how many rows need work, which no function of one row can::

        count = with_batch_rule(lambda rows, _: jnp.broadcast_to(rows.sum(), rows.shape), no_shared_arrays)
        jax.vmap(jax.vmap(lambda need: count(need, ())))(needs)  # needs int32[2, 3] -> the kernel runs once, on [6]

    Args:
        kernel: from arrays with a leading batch axis, and others that the whole batch shares, to arrays with that axis.
        unshared_rule: does the work where each of several batches has shared arrays of its own; takes the kernel, a
            pytree of booleans, true for a shared array that has a leading axis, and all arrays with one more axis.
    """

    @custom_vmap
    def batched(rows: PyTree[Array], shared: Shared) -> PyTree[Array]:
        return kernel(rows, shared)

    @batched.def_vmap
    def fold(size: int, has_axis: Any, rows: PyTree[Array], shared: Shared) -> tuple[PyTree[Array], PyTree[bool]]:
        """Turn ``[size, B, ...]`` into ``[size * B, ...]``, run the kernel once, and turn its result back."""
        # What this vmap does not map over is repeated, so that every row array is [size, B, ...].
        lead = lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape))
        rows = jax.tree.map(lead, rows, has_axis[0])
        # `batched` and not `kernel` is called on [size * B, ...]: an outer vmap meets this rule again and folds its
        # axis too, so a vmap over 2 of a vmap over 3 makes one batch of 6.
        if any(jax.tree.leaves(has_axis[1])):
            out = unshared_rule(batched, has_axis[1], rows, shared)
        else:
            out = unfold_rows(size, batched(fold_rows(rows), shared))
        return out, jax.tree.map(lambda _: True, out)

    def single(row: PyTree[Array], shared: Shared) -> PyTree[Array]:
        # A batch of one. Outside vmap the kernel runs on it; under vmap the rule makes its axis longer.
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
    """The ``unshared_rule`` of a kernel that shares no arrays."""
    raise AssertionError("a kernel that shares no arrays cannot have shared arrays of its own")


def vary_like(tree: Rows, words: UInt32[Array, " words"]) -> Rows:
    """Return the same values, marked as varying over the same devices as ``words``.

    Inside ``jax.shard_map`` JAX tracks over which devices a value varies, and a loop may not change that. A fresh state
    holds constants, which vary over no device; the state after a step does vary. Without this a ``lax.scan`` over steps
    would refuse its carry. The compiler removes the addition of zero.
    """
    # Zero, whatever the words are, but computed from them: it varies over the devices that they vary over.
    zero = words[0] & jnp.uint32(0)

    def mark(leaf: Array) -> Array:
        return leaf | zero.astype(jnp.bool_) if leaf.dtype == jnp.bool_ else leaf + zero.astype(leaf.dtype)

    return jax.tree.map(mark, tree)
