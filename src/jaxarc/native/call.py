"""A call of a kernel of the library within a compiled program; where the library cannot be called, XLA does the same.

For which platform a program is compiled is known when JAX lowers it, so the choice is made there: the library on a CPU;
XLA's version on every other platform, and in a program that is exported, which may run on another machine.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import numpy as np
from jaxtyping import Array

from jaxarc.native.library import native_library
from jaxarc.primitives import Bind, ForeignCall, make_primitive

InXla = Callable[..., Sequence[Array]]  # takes the arguments, returns the results

Like = int | tuple[int, tuple[int, ...]]  # an argument, with another shape of as many axes where one is given

_PARAMS: Final = ("kernel", "numbers", "like", "num_in_place", "num_optional", "in_xla")


def native_call(
    kernel: str,
    numbers: Sequence[int],
    arguments: Sequence[Array],
    like: Sequence[Like],
    num_in_place: int,
    in_xla: InXla,
    num_optional: int = 0,
) -> list[Array]:
    """Call a kernel; result ``i`` has the dtype of argument ``like[i]``, and its shape or the one that is given.

    Args:
        kernel: its name; see ``library.cc``. It knows no vmap: a batch rule folds all axes into one.
        numbers: what is fixed when the caller is compiled, in the kernel's order.
        arguments: the arrays that it takes, in its order.
        like: for each array that it returns, the index of an argument.
        num_in_place: how many of them take the place of the argument of the same index, where nobody reads that any
            more.
        in_xla: returns the same, bit for bit; equal calls give the same function.
        num_optional: how many results at the end are left out where nobody reads them, nor those behind them. A kernel
            sees how many are left.
    """
    values = (kernel, tuple(map(int, numbers)), tuple(like), num_in_place, num_optional, in_xla)
    params = dict(zip(_PARAMS, values, strict=True))
    return _call_publicly(*arguments, **params) if bind is None else bind(*arguments, **params)


def _run(*arguments: Array, like: tuple[Like, ...], in_xla: InXla, **_: Any) -> Sequence[Array]:
    return in_xla(*arguments)[: len(like)]


def _results(*arguments: Any, like: tuple[Like, ...], **_: Any) -> list[Any]:
    return [arguments[i] if isinstance(i, int) else arguments[i[0]].update(shape=i[1]) for i in like]


def _leave_out_unused(used: list[bool], equation: Any) -> tuple[list[bool], Any]:
    """Drop optional results that nobody reads; compiled programs ask for this, and JAX's transformations."""
    if not any(used):
        return [False] * len(equation.invars), None
    count = len(used)
    optional = equation.params["num_optional"]
    while optional > 0 and not used[count - 1]:
        count -= 1
        optional -= 1
    params = {**equation.params, "like": equation.params["like"][:count], "num_optional": optional}
    return [True] * len(equation.invars), equation.replace(outvars=equation.outvars[:count], params=params)


def _differentiate(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> Any:
    """Differentiate what XLA does."""
    return jax.jvp(lambda *arguments: list(_run(*arguments, **params)), primals, tangents)


def _on_cpu(kernel: str, numbers: tuple[int, ...], num_in_place: int, **_: Any) -> ForeignCall | None:
    library = native_library()
    if library is None:
        return None
    in_place = {i: i for i in range(num_in_place)}
    return ForeignCall(library.targets[kernel], in_place, {"numbers": np.array(numbers, np.int64)})


bind: Bind | None = make_primitive(
    "jaxarc_native_call",
    run=_run,
    results=lambda *arguments, **params: (_results(*arguments, **params), set()),
    differentiate=_differentiate,
    leave_out_unused=_leave_out_unused,
    params=_PARAMS,
    on_cpu=_on_cpu,
)


def _call_publicly(*arguments: Array, **params: Any) -> list[Array]:
    """Do the same where there is no primitive: all results are computed, and JAX does not export the call."""
    call = _on_cpu(**params)
    in_xla = lambda *arguments: list(_run(*arguments, **params))
    if call is None:
        return in_xla(*arguments)

    def in_library(*arguments: Array) -> list[Array]:
        results = _results(*map(jax.typeof, arguments), **params)
        of_library = jax.ffi.ffi_call(call.target, results, input_output_aliases=call.in_place)
        return list(of_library(*arguments, **call.attributes))

    @jax.custom_jvp
    def either(*arguments: Array) -> list[Array]:
        return jax.lax.platform_dependent(*arguments, cpu=in_library, default=in_xla)

    either.defjvp(lambda primals, tangents: _differentiate(primals, tangents, **params))
    return either(*arguments)
