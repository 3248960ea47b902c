"""Memory in use on the devices, and memory that a compiled program will need."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.stages import Compiled

from jaxarc.files import write_whole


class DeviceMemory(NamedTuple):
    """Memory of one device, in bytes; None where the backend gives no number."""

    device: str
    bytes_in_use: int
    peak_bytes: int | None  # most in use since the process started
    limit_bytes: int | None  # that JAX may use of the device


class CompiledMemory(NamedTuple):
    """Memory of one compiled program on one device, in bytes; None where the backend gives no number."""

    argument_bytes: int | None
    output_bytes: int | None
    temp_bytes: int | None  # between the first and the last operation
    alias_bytes: int | None  # outputs in the memory of donated arguments
    generated_code_bytes: int | None


class MemoryReport(NamedTuple):
    """The memory of a train step on one device, in bytes; None where that is not known."""

    parameters: int
    optimizer: int  # its state, such as the two means of Adam
    gradients: int  # as many as parameters
    activations: int | None  # what the forward pass keeps for the backward pass; None where no loss was given
    temporaries: int | None  # all others between the first and the last operation
    others: int | None  # other arguments, such as the batch, or environments and tasks

    @property
    def total(self) -> int | None:
        """All of them together, which XLA may stay below; results take the memory of donated arguments."""
        if self.temporaries is None or self.others is None:
            return None
        held = (self.parameters, self.optimizer, self.gradients, self.temporaries, self.others)
        return sum(held) + (self.activations or 0)


def device_memory() -> list[DeviceMemory]:
    """Return the memory of every local device.

    If the backend does not count (the CPU), ``bytes_in_use`` is the size of all live arrays; arrays that share a
    buffer are counted twice.
    """
    return [_memory_of(device) for device in jax.local_devices()]


def compiled_memory(compiled: Compiled) -> CompiledMemory:
    """Return the memory that a program needs, before it runs: ``compiled_memory(jax.jit(f).lower(x).compile())``."""
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"a compiled program was expected, got {type(compiled).__name__}; see jax.jit(f).lower(x).compile()"
        )
    sizes = compiled.memory_analysis()
    if sizes is None:
        return CompiledMemory(None, None, None, None, None)
    return CompiledMemory(
        argument_bytes=sizes.argument_size_in_bytes,
        output_bytes=sizes.output_size_in_bytes,
        temp_bytes=sizes.temp_size_in_bytes,
        alias_bytes=sizes.alias_size_in_bytes,
        generated_code_bytes=sizes.generated_code_size_in_bytes,
    )


def memory_report(
    compiled: Compiled, params: Any, opt_state: Any, loss: Callable[[Any], Any] | None = None
) -> MemoryReport:
    """Return what the memory of a compiled train step is for, before it runs.

    Gradients are as large as their parameters, and XLA counts gradients and activations among its temporaries. A
    program that never holds all of them at once, because it fuses operations or takes a batch in parts, may have fewer
    temporaries than that; the other ones are then 0.

    Args:
        compiled: such as ``train_step.compile(model, opt_state, batch)`` of a surrogate.
        params: a pytree; its arrays of floating-point numbers are the parameters. Shapes are enough.
        opt_state: the state of the optimizer. Shapes are enough.
        loss: from parameters to the loss on the batch, to count activations; it is traced, not run.

    Raises:
        TypeError: ``compiled`` is no compiled program.
    """
    sizes = compiled_memory(compiled)
    parameters = sum(map(_num_bytes, filter(_is_inexact, _arrays_of(params))))
    optimizer = sum(map(_num_bytes, _arrays_of(opt_state)))
    activations = None if loss is None else _kept_bytes(loss, params)
    known = parameters + (activations or 0)  # of the temporaries
    return MemoryReport(
        parameters,
        optimizer,
        gradients=parameters,
        activations=activations,
        temporaries=None if sizes.temp_bytes is None else max(0, sizes.temp_bytes - known),
        others=None if sizes.argument_bytes is None else max(0, sizes.argument_bytes - parameters - optimizer),
    )


def _kept_bytes(loss: Callable[[Any], Any], params: Any) -> int:
    """Count what JAX keeps of a loss for its gradient, besides what the caller holds anyway."""
    inexact, rest = eqx.partition(params, lambda leaf: _is_array(leaf) and _is_inexact(leaf))

    def keep(inexact: Any) -> list[Any]:
        # The pullback is a pytree, whose leaves are what it needs of the forward pass.
        pullback = jax.vjp(lambda inexact: loss(eqx.combine(inexact, rest)), inexact)[1]
        return [leaf for leaf in jax.tree.leaves(pullback) if eqx.is_array(leaf)]

    # For mean(tanh(x @ w)) that is x, which the caller holds, and 1 - tanh(x @ w)^2, which an operation makes.
    program = jax.make_jaxpr(keep)(inexact).jaxpr
    kept = set(map(id, program.outvars))
    made = [variable for equation in program.eqns for variable in equation.outvars]
    return sum(_num_bytes(variable.aval) for variable in made if id(variable) in kept)


def _arrays_of(tree: Any) -> list[Any]:
    return [leaf for leaf in jax.tree.leaves(tree) if _is_array(leaf)]


def _is_array(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _is_inexact(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.inexact)


def _num_bytes(leaf: Any) -> int:
    return math.prod(leaf.shape) * leaf.dtype.itemsize


def save_memory_profile(path: str | Path) -> Path:
    """Write the live arrays by the line of code that allocated them, as a gzipped pprof profile.

    The file is written whole, to a temporary name and then renamed. Open it with ``pprof --web PATH``.

    Returns:
        The path.

    Raises:
        OSError: the folder cannot be written, or the disk is full; an older file is then untouched.
    """
    return write_whole(path, jax.profiler.device_memory_profile())


def _memory_of(device: Any) -> DeviceMemory:
    stats = device.memory_stats()
    if stats is None:
        return DeviceMemory(str(device), _live_bytes(device), None, None)
    return DeviceMemory(str(device), stats["bytes_in_use"], stats.get("peak_bytes_in_use"), stats.get("bytes_limit"))


def _live_bytes(device: Any) -> int:
    # Of an array that is split over devices each holds one shard, of a copied one the whole.
    on_device = [x for x in jax.live_arrays() if device in x.sharding.addressable_devices]
    return sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in on_device)
