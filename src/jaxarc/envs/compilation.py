"""How functions of one environment are compiled for calls from Python, and where the C++ library takes their place."""

import functools
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.errors import JaxRuntimeError
from jaxtyping import Array, PyTree, UInt32

from jaxarc.errors import JaxarcError
from jaxarc.fusion import compiles_for_cpu
from jaxarc.utils.error_handling import JAXErrorHandler

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Rows = TypeVar("Rows", bound=PyTree[Array])

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
    """Resolve ``"auto"`` and ``"native"``: native on a CPU where the library can be had, elsewhere XLA's."""
    if wanted == "xla" or not compiles_for_cpu():
        return "xla"
    from jaxarc.native.library import native_library  # it writes files, and importing the core loads nothing that does

    return "xla" if native_library() is None else "native"


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


class ForkedProcessError(JaxarcError, RuntimeError):
    """This process was forked from one in which JAX ran, and a compiled call in it would wait forever."""


def require_own_jax() -> None:
    """Raise in a process that cannot run JAX, such as a worker that Gymnasium's ``AsyncVectorEnv`` forked.

    Raises:
        ForkedProcessError: saying how to start workers.
    """
    if _was_forked:
        raise ForkedProcessError(
            f"process {os.getpid()} was forked after JAX had started, and JAX hangs in it; start workers with "
            "context='spawn' (gymnasium.make_vec: vector_kwargs={'context': 'spawn'}), or step all environments in one "
            "process with vectorization_mode='vector_entry_point'"
        )


def in_own_process(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Make a compiled function refuse calls in a process that cannot run JAX; see :func:`require_own_jax`."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
        require_own_jax()
        return function(*args, **named)

    return call


_was_forked = False  # after JAX had started


def _note_fork() -> None:
    global _was_forked
    # JAX refuses to change this option once it has started, and has no other public way to ask whether it has.
    name = "jax_num_cpu_devices"
    value = jax.config.values[name]
    try:
        jax.config.update(name, value + 1)
    except RuntimeError:
        _was_forked = True
    else:
        jax.config.update(name, value)


with suppress(AttributeError):  # Windows, where no process forks
    os.register_at_fork(after_in_child=_note_fork)
