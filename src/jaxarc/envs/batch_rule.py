"""Functions of one environment, made of kernels that were written for a batch of them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array, PyTree

from jaxarc.fusion import refuse_empty_batch
from jaxarc.primitives import Bind, make_primitive, without_results

Rows = TypeVar("Rows", bound=PyTree[Array])
Shared = PyTree[Array]
Kernel = Callable[[Any, Any], Any]  # (rows: arrays with a leading batch axis, shared: arrays of the batch) -> rows


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

    def batched(rows: PyTree[Array], shared: Shared) -> PyTree[Array]:
        leaves, tree = jax.tree.flatten((rows, shared))

        def fold(size: int, has_axis: Sequence[bool], leaves: Sequence[Array]) -> PyTree[Array]:
            """Turn ``[size, B, ...]`` into ``[size * B, ...]``, run the kernel once, and turn its result back."""
            rows, shared = jax.tree.unflatten(tree, leaves)
            has_rows, has_shared = jax.tree.unflatten(tree, has_axis)
            # What this vmap does not map over is repeated, so that every row array is [size, B, ...].
            rows = jax.tree.map(lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape)), rows, has_rows)
            # `batched` and not `kernel` is called on [size * B, ...]: an outer vmap meets this rule again and folds its
            # axis too, so a vmap over 2 of a vmap over 3 makes one batch of 6.
            if any(jax.tree.leaves(has_shared)):
                return unshared_rule(batched, has_shared, rows, shared)
            return unfold_rows(size, batched(fold_rows(rows), shared))

        if bind is None:
            return _with_public_rules(lambda *leaves: kernel(*jax.tree.unflatten(tree, leaves)), fold)(*leaves)
        jaxpr, shapes = jax.make_jaxpr(kernel, return_shape=True)(rows, shared)
        kept = range(len(jaxpr.out_avals))
        return jax.tree.unflatten(jax.tree.structure(shapes), bind(*leaves, jaxpr=jaxpr, fold=fold, kept=kept))

    def single(row: PyTree[Array], shared: Shared) -> PyTree[Array]:
        # A batch of one. Outside vmap the kernel runs on it; under vmap the rule makes its axis longer.
        rows = jax.tree.map(lambda x: x[None], row)
        return jax.tree.map(lambda x: x[0], batched(rows, shared))

    return single


# A kernel of a batch is a primitive for the sake of two rules: `vmap` makes its batch longer, and what nobody reads of
# its results is not computed. JAX's custom_vmap has the first rule only.


def _run_batched(*leaves: Array, jaxpr: Any, **_: Any) -> list[Array]:
    return jaxpr_as_fun(jaxpr)(*leaves)


def _batch_batched(
    leaves: Sequence[Array], axes: Sequence[int | None], fold: Any, kept: Sequence[int], **_: Any
) -> tuple[list[Array], list[int]]:
    has_axis = [axis is not None for axis in axes]
    leaves = [leaf if axis is None else jnp.moveaxis(leaf, axis, 0) for leaf, axis in zip(leaves, axes, strict=True)]
    (size,) = {leaf.shape[0] for leaf, has in zip(leaves, has_axis, strict=True) if has}
    refuse_empty_batch(size)
    out = jax.tree.leaves(fold(size, has_axis, leaves))
    return [out[i] for i in kept], [0] * len(kept)


def _leave_out_unused(used: list[bool], equation: Any) -> tuple[list[bool], Any]:
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    choose = lambda all_of: [x for x, is_used in zip(all_of, used, strict=True) if is_used]
    kept = tuple(choose(equation.params["kept"]))
    params = {**equation.params, "jaxpr": without_results(equation.params["jaxpr"], used), "kept": kept}
    return [True] * len(equation.invars), equation.replace(outvars=choose(equation.outvars), params=params)


bind: Bind | None = make_primitive(
    "jaxarc_batched",
    run=_run_batched,
    results=lambda *_, jaxpr, **__: (jaxpr.out_avals, jaxpr.effects),
    differentiate=lambda primals, tangents, jaxpr, **_: jax.jvp(jaxpr_as_fun(jaxpr), primals, tangents),
    leave_out_unused=_leave_out_unused,
    batch=_batch_batched,
)


def _with_public_rules(function: Callable[..., Any], fold: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function with the rule of ``vmap``, where there is no primitive; all results are computed."""
    # By `jit` the constants of the kernel stay within it: custom_vmap has none that a branch of each row may map over.
    batched = custom_vmap(jax.jit(function))

    @batched.def_vmap
    def longer(size: int, has_axis: Sequence[bool], *leaves: Array) -> tuple[Any, Any]:
        refuse_empty_batch(size)
        out = fold(size, has_axis, leaves)
        return out, jax.tree.map(lambda _: True, out)

    call = jax.custom_jvp(batched)  # custom_vmap alone cannot be differentiated backwards
    call.defjvp(lambda primals, tangents: jax.jvp(function, primals, tangents))
    return call


def fold_rows(rows: Rows) -> Rows:
    """Make one batch axis of the first two."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)


def unfold_rows(size: int, rows: Rows) -> Rows:
    """Make two axes of the batch axis, the first of this size."""
    return jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), rows)


def no_shared_arrays(kernel: Kernel, has_axis: Any, rows: Any, shared: Any) -> Any:
    """The ``unshared_rule`` of a kernel that shares no arrays."""
    raise AssertionError("a kernel that shares no arrays cannot have shared arrays of its own")
