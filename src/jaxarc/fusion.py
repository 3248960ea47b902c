"""A fusion barrier: compute intermediate results once, instead of again for every cell that reads them.

XLA fuses a producer into each of its consumers. Where one number decides about many cells, a fused kernel computes it
once per cell: ``rows = hash(key); grid[rows[cell]]`` hashes 900 times for a canvas of 30x30. Fusion does not cross a
branch, so on a CPU the work passes through one that is always taken. Elsewhere a branch costs more than it saves.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, PyTree

Values = TypeVar("Values", bound=PyTree[Array])
Out = TypeVar("Out", bound=PyTree[Array])


def materialize(values: Values) -> Values:
    """Return ``values``, arrays, computed for the whole batch before anything that uses them.

    >>> bits = materialize(random_bits(key, 4))  # four words are computed, then 900 cells read them
    """
    return materialize_call(lambda values: values, values)


def materialize_call(function: Callable[..., Out], *args: PyTree[Array], predicate_of: Array | None = None) -> Out:
    """Return ``materialize(function(*args))``, with the function inside the branch, which saves a copy of its result.

    Args:
        function: of arrays; works on a whole batch, or on one environment under ``vmap``.
        args: its arguments, pytrees of arrays with at least one element.
        predicate_of: the array whose first element decides the branch; the first of the arguments when left out. Calls
            that share one share the predicate too, which is then computed once.
    """
    if not compiles_for_cpu():
        return function(*args)
    return _in_branch(function)(jax.tree.leaves(args)[0] if predicate_of is None else predicate_of, *args)


def compute_once(values: Values) -> Values:
    """Return ``values``, on an accelerator stored before anything reads them; on a CPU as they are.

    There XLA repeats in each kernel, and for each gather in it, what an index or a flag follows from.
    """
    return values if compiles_for_cpu() else jax.lax.optimization_barrier(values)


def compiles_for_cpu() -> bool:
    """Whether programs are compiled for a CPU: there a loop and a branch are cheap, and each large array costs time.

    On an accelerator each kernel that is launched costs microseconds, and a loop or branch whose end depends on data
    makes the host wait.
    """
    return jax.default_backend() == "cpu"


def compiles_triton() -> bool:
    """Whether the GPU takes kernels written for Triton: XLA refuses them below compute capability 8.0."""
    device = jax.devices()[0]
    # A program may be compiled for a GPU on a machine without one. AMD's capabilities are names, such as "gfx90a".
    major = device.compute_capability.partition(".")[0] if device.platform == "gpu" else ""
    return not major.isdigit() or int(major) >= 8


def _in_branch(function: Callable[..., Out]) -> Callable[..., Out]:
    @custom_vmap
    def call(predicate_of: Array, *args: PyTree[Array]) -> Out:
        is_true = _opaque_true(predicate_of)
        shapes = jax.eval_shape(function, *args)
        # Never runs. The number comes from the predicate, so that under ``shard_map`` both branches give values that
        # vary over the same devices, which ``cond`` asks for.
        fill = lambda *_: jax.tree.map(lambda x: jnp.full(x.shape, is_true.astype(x.dtype)), shapes)
        return jax.lax.cond(is_true, function, fill, *args)

    @call.def_vmap
    def one_branch(
        size: int, is_batched: list[PyTree[bool]], predicate_of: Array, *args: PyTree[Array]
    ) -> tuple[Out, PyTree[bool]]:
        """Keep one branch for the whole batch: ``vmap`` of ``cond`` is a select, which fusion crosses."""
        refuse_empty_batch(size)
        # The batch goes into the function, not around the branch; a further vmap meets this rule again.
        axes = tuple(jax.tree.map(lambda has: 0 if has else None, has) for has in is_batched[1:])
        out = _in_branch(jax.vmap(function, axes, axis_size=size))(predicate_of, *args)
        return out, jax.tree.map(lambda _: True, out)

    return call


def refuse_empty_batch(size: int) -> None:
    """Raise where a batch has no environment: there is no first one from which a branch could follow.

    Raises:
        ValueError: the size is 0.
    """
    if size == 0:
        raise ValueError("a batch has at least one environment, got an axis of size 0; leave the call out")


def _opaque_true(values: Array) -> Bool[Array, ""]:
    """True, computed from the first of some values in a way that XLA does not see through: ``x | 1`` is never 0."""
    # The first element as an integer, of whatever type it is: 0.5 as the bits 0x3F000000. With the lowest bit set it is
    # not 0, and XLA does not find that out, so it keeps the branch.
    first = values[(0,) * values.ndim]
    if first.dtype == jnp.bool_:
        number = first.astype(jnp.int32)
    elif jnp.issubdtype(first.dtype, jnp.integer):
        number = first
    else:
        number = jax.lax.bitcast_convert_type(first.astype(jnp.float32), jnp.int32)
    return (number | jnp.ones((), number.dtype)) != 0
