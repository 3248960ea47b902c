"""Functions of one environment, made of kernels that were written for a batch of them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir, partial_eval
from jaxtyping import Array, PyTree

from jaxarc.fusion import refuse_empty_batch

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
        jaxpr, shapes = jax.make_jaxpr(kernel, return_shape=True)(rows, shared)

        def fold(size: int, has_axis: Sequence[bool], leaves: Sequence[Array]) -> list[Array]:
            """Turn ``[size, B, ...]`` into ``[size * B, ...]``, run the kernel once, and turn its result back."""
            rows, shared = jax.tree.unflatten(tree, leaves)
            has_rows, has_shared = jax.tree.unflatten(tree, has_axis)
            # What this vmap does not map over is repeated, so that every row array is [size, B, ...].
            rows = jax.tree.map(lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape)), rows, has_rows)
            # `batched` and not `kernel` is called on [size * B, ...]: an outer vmap meets this rule again and folds its
            # axis too, so a vmap over 2 of a vmap over 3 makes one batch of 6.
            if any(jax.tree.leaves(has_shared)):
                return jax.tree.leaves(unshared_rule(batched, has_shared, rows, shared))
            return jax.tree.leaves(unfold_rows(size, batched(fold_rows(rows), shared)))

        kept = range(len(jaxpr.out_avals))
        return jax.tree.unflatten(jax.tree.structure(shapes), _batched.bind(*leaves, jaxpr=jaxpr, fold=fold, kept=kept))

    def single(row: PyTree[Array], shared: Shared) -> PyTree[Array]:
        # A batch of one. Outside vmap the kernel runs on it; under vmap the rule makes its axis longer.
        rows = jax.tree.map(lambda x: x[None], row)
        return jax.tree.map(lambda x: x[0], batched(rows, shared))

    return single


# A kernel of a batch, as a primitive for the sake of two rules: `vmap` makes its batch longer, and what nobody reads of
# its results is not computed. JAX's custom_vmap has the first rule, and computes all results.
_batched = Primitive("jaxarc_batched")
_batched.multiple_results = True


@_batched.def_impl
def _run_batched(*leaves: Array, jaxpr: ClosedJaxpr, **_: Any) -> list[Array]:
    return jaxpr_as_fun(jaxpr)(*leaves)


@_batched.def_effectful_abstract_eval
def _results_of_batched(*_: Any, jaxpr: ClosedJaxpr, **__: Any) -> tuple[Any, Any]:
    return jaxpr.out_avals, jaxpr.effects


def _batch_batched(
    leaves: Sequence[Array], axes: Sequence[int | None], fold: Any, kept: Sequence[int], **_: Any
) -> tuple[list[Array], list[int]]:
    has_axis = [axis is not None for axis in axes]
    leaves = [leaf if axis is None else jnp.moveaxis(leaf, axis, 0) for leaf, axis in zip(leaves, axes, strict=True)]
    (size,) = {leaf.shape[0] for leaf, has in zip(leaves, has_axis, strict=True) if has}
    refuse_empty_batch(size)
    out = fold(size, has_axis, leaves)
    return [out[i] for i in kept], [0] * len(kept)


def _differentiate(
    primals: Sequence[Array], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, **_: Any
) -> tuple[list[Array], list[Any]]:
    """Differentiate the kernel as any function."""
    return jax.jvp(jaxpr_as_fun(jaxpr), list(primals), [ad.instantiate_zeros(tangent) for tangent in tangents])


def _leave_out_unused(used: list[bool], *given: Any) -> tuple[list[bool], Any]:
    equation = given[-1]  # behind which inputs are live, from JAX 0.12 on
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    jaxpr = equation.params["jaxpr"]
    rest, _ = partial_eval.dce_jaxpr(jaxpr.jaxpr, used, instantiate=True)
    choose = lambda all_of: [x for x, is_used in zip(all_of, used, strict=True) if is_used]
    kept = tuple(choose(equation.params["kept"]))
    params = {**equation.params, "jaxpr": ClosedJaxpr(rest, jaxpr.consts), "kept": kept}
    return [True] * len(equation.invars), equation.replace(outvars=choose(equation.outvars), params=params)


_batched.to_lojax = _run_batched  # from JAX 0.12 on, where the jaxpr holds a type that is made of others
batching.primitive_batchers[_batched] = _batch_batched
ad.primitive_jvps[_batched] = _differentiate
if "dce_rules" in vars(partial_eval):  # JAX does not document it; without it all results are computed, the same
    partial_eval.dce_rules[_batched] = _leave_out_unused
mlir.register_lowering(_batched, mlir.lower_fun(_run_batched, multiple_results=True))


def fold_rows(rows: Rows) -> Rows:
    """Make one batch axis of the first two."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)


def unfold_rows(size: int, rows: Rows) -> Rows:
    """Make two axes of the batch axis, the first of this size."""
    return jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), rows)


def no_shared_arrays(kernel: Kernel, has_axis: Any, rows: Any, shared: Any) -> Any:
    """The ``unshared_rule`` of a kernel that shares no arrays."""
    raise AssertionError("a kernel that shares no arrays cannot have shared arrays of its own")
