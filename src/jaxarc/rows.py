"""Work on the rows of a batch that need it: what few environments need at a time is not done for all of them."""

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int32, PyTree

from jaxarc.fusion import compiles_for_cpu, materialize_call
from jaxarc.primitives import Kernel, with_batch_rule

RESET_FRACTION: Final = 1 / 16  # of a batch, in a block: an episode of 35 random operations lasts about 20 steps

State = TypeVar("State", bound=PyTree[Array])
Out = TypeVar("Out", bound=PyTree[Array])


def reset_where(
    need: Bool[Array, ""],
    reset: Callable[[State, Any, Any], State],
    state: State,
    facts: PyTree[Array],
    params: Any,
) -> State:
    """Replace a state where needed; of the state of ARC's own environment see :func:`jaxarc.envs.executor.start_where`.

    Args:
        need: whether it is.
        reset: makes the new state of one environment from the old one and the facts.
        state: of one environment, or of a batch under ``vmap``.
        facts: what else ``reset`` needs of each environment.
        params: what all environments share.
    """

    def update(rows: tuple[Bool[Array, " B"], State, Any], params: Any, in_blocks: bool | None = None) -> State:
        # Resets are a kernel that few rows need: blocks of those are gathered, reset and put back. With 4,096
        # environments a block has 256 rows.
        one = lambda words, fact: _to_words(reset(_to_keys(words, state), fact, params))
        return update_rows(rows[0], jax.vmap(one), rows[1], rows[2], RESET_FRACTION, in_blocks)

    def reset_apart(_: Kernel, has_axis: Any, rows: tuple[Bool[Array, "A B"], State, Any], params: Any) -> State:
        """Each batch has params of its own: nothing to fold."""
        # All rows: under vmap the loop over blocks would run, in every batch, as long as the batch that needs the most.
        axes = jax.tree.map(lambda has: 0 if has else None, has_axis)
        return jax.vmap(functools.partial(update, in_blocks=False), (0, axes))(rows, params)

    rows = (need, _to_words(state), facts)
    return _to_keys(with_batch_rule(update, reset_apart)(rows, params), state)


def _to_words(state: PyTree[Array]) -> PyTree[Array]:
    """Return a state with the words of its typed keys, as an environment of a user may have them: words have bits."""
    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, state)


def _to_keys(words: State, like: State) -> State:
    """Return the state whose words these are; keys are where ``like`` has them."""
    to_key = lambda leaf, key: jax.random.wrap_key_data(leaf, impl=jax.random.key_impl(key)) if _is_key(key) else leaf
    return jax.tree.map(to_key, words, like)


def _is_key(leaf: Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


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
