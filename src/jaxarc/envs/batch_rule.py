"""Functions of one environment, made of kernels that were written for a batch; kernels on those rows that need them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array, Bool, Int32, PyTree

from jaxarc.fusion import compiles_for_cpu, materialize_call, refuse_empty_batch
from jaxarc.primitives import Bind, make_primitive, without_results

Rows = TypeVar("Rows", bound=PyTree[Array])
Out = TypeVar("Out", bound=PyTree[Array])
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


SMALLEST_BLOCK: Final = 16
WIDE_ROW: Final = 64  # elements from which on a row is put back by a gather, which skips other rows, not by a scatter
HUGE_ROW: Final = 1024  # elements from which on rows are put back one by one: to look at all of them would take longer


def update_rows(
    need: Bool[Array, " B"],
    kernel: Callable[[Out, PyTree[Array]], Out],
    out: Out,
    ins: PyTree[Array],
    block_fraction: float,
    in_blocks: bool | None = None,
) -> Out:
    """Return ``out`` with ``kernel(out, ins)`` in the rows that need it, and the other rows as they were.

    On a CPU a loop takes blocks of fixed size: gather the rows of a block, run the kernel on them, put its results
    back, and go on while rows are left. With blocks of two, the order 1 3 4 of three rows that need the kernel and
    B = 5::

        block 1: rows 1 3 -> kernel -> put back into 1 and 3
        block 2: rows 4 5 -> kernel -> put back into 4; 5 is past the last row and is dropped

    An accelerator runs the kernel on all rows and selects: the host would wait for the end of a loop.

    Args:
        need: which rows to update.
        kernel: batch-native function of the rows of ``out`` and ``ins``.
        out: arrays with a leading axis B, of the same structure as the kernel's result.
        ins: arrays with a leading axis B that the kernel only reads.
        block_fraction: rows of a block over rows of the batch; best about half of the share that usually needs it.
        in_blocks: whether to take blocks; by default as the backend likes it. The results are the same bit for bit.
    """
    batch = need.shape[0]
    update = lambda out, ins: jax.tree.map(lambda new, old: _select(need, new, old), kernel(out, ins), out)
    if not (compiles_for_cpu() if in_blocks is None else in_blocks):
        return update(out, ins)
    if batch == 1:  # the select is always true here; it makes the branches of one type under shard_map
        return lax.cond(need[0], update, lambda out, _: out, out, ins)
    # With B = 4,096 and the fraction 1/64 a block has 64 rows; with B = 256 it would have 4, and has 16.
    size = min(batch, max(int(batch * block_fraction), SMALLEST_BLOCK))
    # rank: how many rows up to this one need the kernel, one more than its index among them. Need 0 1 0 1 1 has the
    # ranks 0 1 1 2 3 and the order 1 3 4 5 5 5 5 with blocks of two, which may begin at any row.
    rank = _running_sum(need.astype(jnp.int32))
    total = rank[-1]
    order = jnp.full((batch + size,), batch, jnp.int32)
    index = jnp.where(need, rank - 1, batch + size)  # behind the end, where the scatter drops it
    order = order.at[index].set(jnp.arange(batch, dtype=jnp.int32), mode="drop")

    def update_block(carry: tuple[Out, Int32[Array, ""]]) -> tuple[Out, Int32[Array, ""]]:
        current, start = carry
        # int32[size], row numbers. Behind the last row comes B, which "clip" makes row B - 1. The kernel runs on it as
        # well, and its results are not put back.
        block = lax.dynamic_slice(order, (start,), (size,))
        picked = jax.tree.map(lambda x: jnp.take(x, block, axis=0, mode="clip"), (current, ins))
        new = materialize_call(kernel, *picked)
        # The same assignment twice: `index` says for each row of the batch where in the block it is, for a gather, and
        # `block` says for each row of the block where in the batch it belongs, for a scatter.
        index = rank - 1 - start
        is_here = need & (index >= 0) & (index < size)

        def put(old: Array, new: Array) -> Array:
            # Sizes, a few numbers a row, are scattered; grids are gathered and selected; larger rows are copied one by
            # one.
            if old[0].size < WIDE_ROW:
                return old.at[block].set(new, mode="drop")
            if old[0].size >= HUGE_ROW:
                return _put_each(old, new, block, jnp.minimum(total - start, size))
            return _select(is_here, jnp.take(new, index, axis=0, mode="clip"), old)

        return jax.tree.map(put, current, new), start + size

    return lax.while_loop(lambda carry: carry[1] < total, update_block, (out, jnp.int32(0)))[0]


def _running_sum(numbers: Int32[Array, " B"]) -> Int32[Array, " B"]:
    """Sums up to and including each entry, by doubling: ``jnp.cumsum`` takes five times as long on a CPU.

    Each pass adds the array to itself, moved right by 1, 2, 4, ... entries::

        1 0 1 1 1  ->  1 1 1 2 2  ->  1 1 2 3 3  ->  1 1 2 3 4
    """
    add = lambda sums, step: sums + jnp.pad(sums[:-step], (step, 0))
    sums = numbers
    step = 1
    while step < numbers.shape[0]:
        sums = materialize_call(functools.partial(add, step=step), sums, predicate_of=numbers)
        step *= 2
    return sums


def _put_each(old: Array, new: Array, taken: Int32[Array, " K"], count: Int32[Array, ""]) -> Array:
    """Put the first ``count`` of the new rows into rows ``taken`` of the old ones, in place."""

    def put(i: Int32[Array, ""], rows: Array) -> Array:
        return lax.dynamic_update_index_in_dim(rows, lax.dynamic_index_in_dim(new, i), taken[i], 0)

    return lax.fori_loop(jnp.int32(0), count, put, old)


def _select(need: Bool[Array, " B"], new: Array, old: Array) -> Array:
    """Choose row by row; rows are flat, because XLA's CPU backend is slow on more axes."""
    flat = lambda x: x.reshape(x.shape[0], -1)
    return jnp.where(need[:, None], flat(new), flat(old)).reshape(old.shape)
