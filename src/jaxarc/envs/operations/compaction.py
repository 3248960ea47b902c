"""How a kernel meets the environments that need it: all of them, or blocks of those that do.

On a CPU most families of operations are rare in a batch, so the rows that need one are gathered into small blocks. On
an accelerator every row is computed and the result is selected. Both give the same bits.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int32, PyTree

Out = TypeVar("Out", bound=PyTree[Array])
Stage = Callable[..., Any]  # calls a kernel, by itself or behind a branch: ``staged`` with its first arguments bound
SMALLEST_BLOCK = 16
WIDE_ROW = 64  # elements from which on a row is put back by a gather, which skips the rows not meant, not by a scatter
HUGE_ROW = 1024  # elements from which on rows are put back one by one: to look at all of them would take longer


def choose_executor(wanted: str) -> str:
    """Resolve ``"auto"``: compact on a CPU, dense on accelerators."""
    if wanted != "auto":
        return wanted
    return "compact" if jax.default_backend() == "cpu" else "dense"


class CompactedRows(NamedTuple):
    """The rows of a batch that need a kernel, in the order in which blocks take them."""

    need: Bool[Array, " B"]
    rank: Int32[Array, " B"]  # how many rows up to this one need it
    order: Int32[Array, " 2B"]  # the rows that need any kernel, kernel by kernel; B behind the last
    first: Int32[Array, ""]  # where this kernel's rows begin in the order
    total: Int32[Array, ""]  # how many rows need it


def compact(needs: Sequence[Bool[Array, " B"]]) -> list[CompactedRows]:
    """Line up the rows that need a kernel; of several kernels, a row needs at most one."""
    batch = needs[0].shape[0]
    ranks = _running_sums(jnp.stack(needs).astype(jnp.int32))
    totals = [rank[-1] for rank in ranks]
    firsts = list(itertools.accumulate(totals[:-1], initial=jnp.int32(0)))
    place = jnp.full((batch,), 2 * batch, jnp.int32)
    for need, rank, first in zip(needs, ranks, firsts, strict=True):
        place = jnp.where(need, first + rank - 1, place)
    order = jnp.full((2 * batch,), batch, jnp.int32)
    order = order.at[place].set(jnp.arange(batch, dtype=jnp.int32), mode="drop")
    return [
        CompactedRows(need, rank, order, *place)
        for need, rank, *place in zip(needs, ranks, firsts, totals, strict=True)
    ]


def update_rows(
    executor: str,
    blocks: CompactedRows | Bool[Array, " B"],
    kernel: Callable[[Out, PyTree[Array]], Out],
    out: Out,
    ins: PyTree[Array],
    block_fraction: float,
) -> Out:
    """Return ``out`` with ``kernel(out, ins)`` in the rows that need it, and the other rows as they were.

    Args:
        executor: ``"compact"`` (blocks of ``block_fraction * B`` rows, as many as needed) or ``"dense"`` (every row).
        blocks: which rows to update; lined up by :func:`compact`, or still to be.
        kernel: batch-native function of the rows of ``out`` and ``ins``.
        out: arrays with a leading axis B, of the same structure as the kernel's result.
        ins: arrays with a leading axis B that the kernel only reads.
        divisor: about the share of rows that usually need the kernel.
    """
    need = blocks.need if isinstance(blocks, CompactedRows) else blocks
    batch = need.shape[0]
    update = lambda out, ins: jax.tree.map(lambda new, old: _select(need, new, old), kernel(out, ins), out)
    if executor == "dense":
        return update(out, ins)
    if batch == 1:  # the select is always true here; it makes the branches of one type under shard_map
        return lax.cond(need[0], update, lambda out, _: out, out, ins)
    if not isinstance(blocks, CompactedRows):
        (blocks,) = compact([need])
    rank, order, first = blocks.rank, blocks.order, blocks.first
    size = min(batch, max(int(batch * block_fraction), SMALLEST_BLOCK))

    def body(carry: tuple[Out, Array]) -> tuple[Out, Array]:
        current, start = carry
        rows = lax.dynamic_slice(order, (first + start,), (size,))
        picked = jax.tree.map(lambda x: jnp.take(x, rows, axis=0, mode="clip"), (current, ins))
        new = staged(executor, start < blocks.total, kernel, *picked)
        place = rank - 1 - start
        here = need & (place >= 0) & (place < size)
        taken = jnp.where(start + jnp.arange(size, dtype=jnp.int32) < blocks.total, rows, batch)

        def put(old: Array, new: Array) -> Array:
            if old[0].size < WIDE_ROW:
                return old.at[taken].set(new, mode="drop")
            if old[0].size >= HUGE_ROW:
                return _put_each(old, new, taken, jnp.minimum(blocks.total - start, size))
            return _select(here, jnp.take(new, place, axis=0, mode="clip"), old)

        return jax.tree.map(put, current, new), start + size

    return lax.while_loop(lambda carry: carry[1] < blocks.total, body, (out, jnp.int32(0)))[0]


def staged(executor: str, always: Bool[Array, ""], kernel: Callable[..., Out], *args: PyTree[Array]) -> Out:
    """Return ``kernel(*args)``, computed once: XLA's CPU fusion would otherwise repeat it in every consumer.

    Args:
        executor: ``"compact"`` puts the kernel behind a branch that fusion does not cross; ``"dense"`` calls it.
        always: a run-time value that is true, unknown to the compiler.
        kernel: the stage.
        args: its arguments.
    """
    if executor == "dense":
        return kernel(*args)
    shapes = jax.eval_shape(kernel, *args)
    # Never taken; made from the predicate, so that shard_map sees both branches vary over the same devices.
    zeros = lambda *_: jax.tree.map(lambda x: jnp.full(x.shape, always.astype(x.dtype)), shapes)
    return lax.cond(always, kernel, zeros, *args)


def call(kernel: Callable[..., Out], *args: PyTree[Array]) -> Out:
    """Return ``kernel(*args)``: the stage that is none."""
    return kernel(*args)


def _running_sums(numbers: Int32[Array, "F B"]) -> Int32[Array, "F B"]:
    """Sums up to and including each entry, by doubling: ``jnp.cumsum`` takes five times as long on a CPU."""
    always, step = jnp.all(numbers >= 0), 1
    add = lambda sums, step: sums + jnp.pad(sums[:, :-step], ((0, 0), (step, 0)))
    while step < numbers.shape[1]:
        numbers = staged("compact", always, functools.partial(add, step=step), numbers)
        step *= 2
    return numbers


def _put_each(old: Array, new: Array, taken: Int32[Array, " K"], count: Int32[Array, ""]) -> Array:
    """Put the first so many of the new rows into their places, in place."""

    def put(i: Int32[Array, ""], rows: Array) -> Array:
        return lax.dynamic_update_index_in_dim(rows, lax.dynamic_index_in_dim(new, i), taken[i], 0)

    return lax.fori_loop(jnp.int32(0), count, put, old)


def _select(need: Bool[Array, " B"], new: Array, old: Array) -> Array:
    """Choose row by row; rows are flat, because XLA's CPU backend is slow on more axes."""
    flat = lambda x: x.reshape(x.shape[0], -1)
    return jnp.where(need[:, None], flat(new), flat(old)).reshape(old.shape)
