"""How the functions of one environment are compiled, batched, and run on the rows of a batch that need them.

On a CPU most families of operations are rare in a batch, so the rows that need one are gathered into small blocks. On
an accelerator every row is computed and the result is selected. Both give bitwise identical results.
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.errors import JaxRuntimeError
from jaxtyping import Array, Bool, Int32, PyTree, UInt32

from jaxarc.config import JaxArcConfig
from jaxarc.envs.canvas import GridShape
from jaxarc.envs.forks import require_own_jax
from jaxarc.fusion import compiles_for_cpu, materialize_call
from jaxarc.utils.error_handling import JAXErrorHandler

Result = TypeVar("Result")
Rows = TypeVar("Rows", bound=PyTree[Array])
Out = TypeVar("Out", bound=PyTree[Array])

SMALLEST_BLOCK = 16
WIDE_ROW = 64  # elements from which on a row is put back by a gather, which skips the rows not meant, not by a scatter
HUGE_ROW = 1024  # elements from which on rows are put back one by one: to look at all of them would take longer

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
            with JAXErrorHandler.compiling(mode):  # a key of the cache: checks are compiled for one error mode
                return with_axes_of_xla(function)(*args)

        of_mode.__name__ = of_mode.__qualname__ = function.__name__
        fast = jax.jit(of_mode, static_argnums=0)
        careful = eqx.filter_jit(of_mode)

        @functools.wraps(function)
        def call(*args: Any) -> Result:
            require_own_jax()
            mode = JAXErrorHandler.mode_to_compile()
            # A call returns before the device is done, so a failed check would be raised wherever the result is used
            # first. To raise it here, the call waits where checks exist.
            try:
                result = fast(mode, *args)
                if may_raise is not None and may_raise(*args):
                    jax.block_until_ready(result)
            except (TypeError, ValueError, JaxRuntimeError) as error:
                # Three causes: a check of ours failed, the program failed while it ran (out of memory, say), or it
                # never ran because the arguments cannot be traced. Only the last is tried again.
                failed = _FAILED_CHECK.search(str(error))
                if failed is not None:
                    raise eqx.EquinoxRuntimeError(failed.group(1)) from None
                if isinstance(error, JaxRuntimeError) or _RUNTIME_STATUS.match(str(error)):
                    raise
                return careful(mode, *args)
            return result

        return call

    return decorate


def with_axes_of_xla(function: Callable[..., Result]) -> Callable[..., Result]:
    """Let XLA lay out what is computed for one environment, where the mesh in use has explicit axes.

    A gather by indices of another layout than its operand's has no one layout, and a step has many. The batch keeps the
    layout of its axis, because that is the one of ``jax.vmap``.
    """

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Result:
        arrays, rest = eqx.partition((args, named), lambda leaf: isinstance(leaf, jax.Array))
        meshes = [jax.sharding.get_abstract_mesh(), *(jax.typeof(x).sharding.mesh for x in jax.tree.leaves(arrays))]
        mesh = next((mesh for mesh in meshes if mesh.explicit_axes), None)
        if mesh is None:
            return function(*args, **named)

        def on_arrays(arrays: Any) -> Result:
            args, named = eqx.combine(arrays, rest)
            return function(*args, **named)

        with jax.sharding.use_abstract_mesh(mesh):
            laid_out: Any = jax.sharding.auto_axes(on_arrays, out_sharding=jax.sharding.PartitionSpec())
            return laid_out(arrays)

    return call


def choose_executor(wanted: str) -> str:
    """Resolve ``"auto"`` and ``"native"``: dense on accelerators; on a CPU native where the library can be had.

    Elsewhere on a CPU they are compact, with one warning.
    """
    if wanted in ("compact", "dense"):
        return wanted
    if not compiles_for_cpu():
        return "dense"
    from jaxarc.native.library import native_library  # it writes files, and importing the core loads nothing that does

    return "compact" if native_library() is None else "native"


@dataclasses.dataclass(frozen=True)
class KernelStatics:
    """The static arguments of the kernels of a step."""

    shape: GridShape  # rows and columns of the canvas, (H, W)
    executor: str  # "native", "compact" or "dense"; the results are the same bit for bit
    operations: tuple[int, ...]  # the only ones that can occur; families that cannot are left out
    is_fused: bool = False  # dense on an accelerator: what a CPU does in several passes is one kernel

    def has(self, operations: Container[int]) -> bool:
        """Whether any operation of the set can occur."""
        return any(operation in operations for operation in self.operations)


def statics_of(config: JaxArcConfig, operations: tuple[int, ...]) -> KernelStatics:
    """Return the statics of kernels for a config and the backend that programs are compiled for."""
    executor = choose_executor(config.environment.executor)
    return KernelStatics(config.grid_shape, executor, operations, executor == "dense" and not compiles_for_cpu())


class CompactedRows(NamedTuple):
    """The rows of a batch that need a kernel, in the order in which blocks take them."""

    need: Bool[Array, " B"]
    rank: Int32[Array, " B"]  # how many rows up to this one need it
    order: Int32[Array, " 2B"]  # the rows that need any kernel, kernel by kernel; B behind the last
    first: Int32[Array, ""]  # where this kernel's rows begin in the order
    total: Int32[Array, ""]  # how many rows need it


def compact(needs: Sequence[Bool[Array, " B"]]) -> list[CompactedRows]:
    """Order the rows that need a kernel; of several kernels, a row needs at most one.

    The running sum of a mask counts the rows up to each, which is one more than the row's index among those that need
    the kernel. One scatter then writes the row numbers of all kernels. Five rows and two kernels::

        need of the first   0 1 0 0 1    rank 0 1 1 1 2    first 0   total 2
        need of the second  1 0 0 1 0    rank 1 1 1 2 2    first 2   total 2
        index in the order  2 0 - 3 1    (first + rank - 1 where needed)
        order               1 4 0 3 5 5 5 5 5 5
    """
    batch = needs[0].shape[0]
    # int32[F, B] for F kernels; the last entry of each row is the kernel's total.
    ranks = _running_sums(jnp.stack(needs).astype(jnp.int32))
    totals = [rank[-1] for rank in ranks]
    # The kernels' rows follow one another: totals 2, 3 and 1 begin at 0, 2 and 5.
    firsts = list(itertools.accumulate(totals[:-1], initial=jnp.int32(0)))
    # A row that no kernel needs keeps the index 2 B, behind the end, and the scatter drops it. The order has 2 B
    # entries and not B, so that a block of up to B entries may begin at any kernel's row without being moved back.
    index = jnp.full((batch,), 2 * batch, jnp.int32)
    for need, rank, first in zip(needs, ranks, firsts, strict=True):
        index = jnp.where(need, first + rank - 1, index)
    order = jnp.full((2 * batch,), batch, jnp.int32)
    order = order.at[index].set(jnp.arange(batch, dtype=jnp.int32), mode="drop")
    of_kernel = zip(needs, ranks, firsts, totals, strict=True)
    return [CompactedRows(need, rank, order, first, total) for need, rank, first, total in of_kernel]


def update_rows(
    executor: str,
    rows: CompactedRows | Bool[Array, " B"],
    kernel: Callable[[Out, PyTree[Array]], Out],
    out: Out,
    ins: PyTree[Array],
    block_fraction: float,
) -> Out:
    """Return ``out`` with ``kernel(out, ins)`` in the rows that need it, and the other rows as they were.

    The compact executor loops over blocks of fixed size: gather the rows of a block, run the kernel on them, put its
    results back, and go on while rows are left. With blocks of two, the order 1 4 0 of three rows that need the kernel
    and B = 5::

        block 1: rows 1 4 -> kernel -> put back into 1 and 4
        block 2: rows 0 5 -> kernel -> put back into 0; 5 is past the last row and is dropped

    Args:
        executor: ``"dense"`` (every row), or another (blocks of ``block_fraction * B`` rows, as many as needed).
        rows: which rows to update; ordered by :func:`compact`, or still to be.
        kernel: batch-native function of the rows of ``out`` and ``ins``.
        out: arrays with a leading axis B, of the same structure as the kernel's result.
        ins: arrays with a leading axis B that the kernel only reads.
        block_fraction: rows of a block over rows of the batch; best about half of the share that usually needs it.
    """
    need = rows.need if isinstance(rows, CompactedRows) else rows
    batch = need.shape[0]
    # Dense: run the kernel on all B rows and keep its result where it is needed.
    update = lambda out, ins: jax.tree.map(lambda new, old: _select(need, new, old), kernel(out, ins), out)
    if executor == "dense":
        return update(out, ins)
    if batch == 1:  # the select is always true here; it makes the branches of one type under shard_map
        return lax.cond(need[0], update, lambda out, _: out, out, ins)
    if not isinstance(rows, CompactedRows):
        (rows,) = compact([need])
    rank = rows.rank
    order = rows.order
    first = rows.first
    total = rows.total
    # With B = 4,096 and the fraction 1/64 a block has 64 rows; with B = 256 it would have 4, and has 16.
    size = min(batch, max(int(batch * block_fraction), SMALLEST_BLOCK))

    def update_block(carry: tuple[Out, Int32[Array, ""]]) -> tuple[Out, Int32[Array, ""]]:
        current, start = carry
        # int32[size], row numbers. Behind the kernel's last row come those of the next kernel, or B, which "clip" makes
        # row B - 1. The kernel runs on them as well, and their results are not put back.
        block = lax.dynamic_slice(order, (first + start,), (size,))
        picked = jax.tree.map(lambda x: jnp.take(x, block, axis=0, mode="clip"), (current, ins))
        new = materialize_call(kernel, *picked)
        index = rank - 1 - start  # of a row within this block
        # The same assignment twice: `index` says for each row of the batch where in the block it is, for a gather, and
        # `taken` says for each row of the block where in the batch it belongs, for a scatter.
        is_here = need & (index >= 0) & (index < size)
        taken = jnp.where(start + jnp.arange(size, dtype=jnp.int32) < total, block, batch)

        def put(old: Array, new: Array) -> Array:
            # Sizes, a few numbers a row, are scattered; grids are gathered and selected; larger rows are copied one by
            # one.
            if old[0].size < WIDE_ROW:
                return old.at[taken].set(new, mode="drop")
            if old[0].size >= HUGE_ROW:
                return _put_each(old, new, taken, jnp.minimum(total - start, size))
            return _select(is_here, jnp.take(new, index, axis=0, mode="clip"), old)

        return jax.tree.map(put, current, new), start + size

    return lax.while_loop(lambda carry: carry[1] < total, update_block, (out, jnp.int32(0)))[0]


def call_native(
    kernel: str,
    numbers: Sequence[int],
    arguments: Sequence[Array],
    like: Sequence[Any],
    num_in_place: int,
    in_xla: Any,
    num_optional: int = 0,
) -> list[Array]:
    """Call a kernel of the C++ library, inside ``jax.shard_map`` too; see :func:`jaxarc.native.call.native_call`."""
    from jaxarc.native.call import native_call  # as in choose_executor

    # Inside shard_map the arguments of a call must vary over the same devices.
    if jax.sharding.get_abstract_mesh().manual_axes:
        words = [x.reshape(-1)[0].astype(jnp.uint32) for x in arguments if x.size]
        arguments = vary_like(list(arguments), jnp.stack(words))
    return native_call(kernel, numbers, arguments, like, num_in_place, in_xla, num_optional)


def vary_like(tree: Rows, words: UInt32[Array, " words"]) -> Rows:
    """Return the same values, marked as varying over the same devices as ``words``.

    Inside ``jax.shard_map`` JAX tracks over which devices a value varies, and a loop may not change that. A fresh state
    holds constants, which vary over no device; the state after a step does vary. Without this a ``lax.scan`` over steps
    would refuse its carry. The compiler removes the addition of zero.
    """
    # Zero, whatever the words are, but computed from them: it varies over the devices that they vary over.
    zero = words[0] & jnp.uint32(0)
    return jax.tree.map(lambda leaf: leaf + zero.astype(leaf.dtype), tree)


def _running_sums(numbers: Int32[Array, "F B"]) -> Int32[Array, "F B"]:
    """Sums up to and including each entry, by doubling: ``jnp.cumsum`` takes five times as long on a CPU.

    Each pass adds the array to itself, moved right by 1, 2, 4, ... entries::

        1 0 1 1 1  ->  1 1 1 2 2  ->  1 1 2 3 3  ->  1 1 2 3 4
    """
    add = lambda sums, step: sums + jnp.pad(sums[:, :-step], ((0, 0), (step, 0)))
    sums = numbers
    step = 1
    while step < numbers.shape[1]:
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
