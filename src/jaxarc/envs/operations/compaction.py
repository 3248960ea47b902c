"""How a kernel meets the environments that need it: all of them, or blocks of those that do.

On a CPU most families of operations are rare in a batch, so the rows that need one are gathered into small blocks. On
an accelerator every row is computed and the result is selected. Both give the same bits.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, PyTree

Out = TypeVar("Out", bound=PyTree[Array])
SMALLEST_BLOCK = 16


def update_rows(
    executor: str,
    need: Bool[Array, " B"],
    kernel: Callable[[Out, PyTree[Array]], Out],
    out: Out,
    ins: PyTree[Array],
    divisor: int,
) -> Out:
    """Return ``out`` with ``kernel(out, ins)`` in the rows that ``need`` it, and the other rows as they were.

    Args:
        executor: ``"compact"`` (blocks of ``B / divisor`` rows, as many as needed) or ``"dense"`` (every row).
        need: which rows to update.
        kernel: batch-native function of the rows of ``out`` and ``ins``.
        out: arrays with a leading axis B, of the same structure as the kernel's result.
        ins: arrays with a leading axis B that the kernel only reads.
        divisor: about the share of rows that usually need the kernel.
    """
    if executor == "dense":
        return jax.tree.map(lambda new, old: _select(need, new, old), kernel(out, ins), out)
    batch = need.shape[0]
    if batch == 1:
        # The select is always true here; it makes the branches of one type under shard_map.
        update = lambda out, ins: jax.tree.map(lambda new, old: _select(need, new, old), kernel(out, ins), out)
        return lax.cond(need[0], update, lambda out, _: out, out, ins)
    block = min(batch, max(batch // divisor, SMALLEST_BLOCK))
    rank = jnp.cumsum(need, dtype=jnp.int32)
    nowhere = jnp.int32(batch + block)
    slots = jnp.where(need, rank - 1, nowhere)
    todo = jnp.full((batch + block,), batch, jnp.int32)
    todo = todo.at[slots].set(jnp.arange(batch, dtype=jnp.int32), mode="drop")

    def body(carry: tuple[Out, Array]) -> tuple[Out, Array]:
        current, start = carry
        rows = lax.dynamic_slice(todo, (start,), (block,))
        picked = jax.tree.map(lambda x: jnp.take(x, rows, axis=0, mode="clip"), (current, ins))
        new = kernel(*picked)
        put = lambda old, rows_of: old.at[rows].set(rows_of, mode="drop", indices_are_sorted=True)
        return jax.tree.map(put, current, new), start + block

    return lax.while_loop(lambda carry: carry[1] < rank[-1], body, (out, jnp.int32(0)))[0]


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


def _select(need: Bool[Array, " B"], new: Array, old: Array) -> Array:
    return jnp.where(need.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
