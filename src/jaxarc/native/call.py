"""A call of a kernel of the library within a compiled program; where the library cannot be called, XLA does the same.

For which platform a program is compiled is known when JAX lowers it, so the choice is made there: the library on a CPU;
XLA's version on every other platform, and in a program that is exported, which may run on another machine.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, mlir, partial_eval
from jaxtyping import Array

from jaxarc.native.library import native_library

InXla = Callable[..., Sequence[Array]]  # takes the arguments, returns the results

Like = int | tuple[int, tuple[int, ...]]  # an argument, with another shape of as many axes where one is given

_PARAMS: Final = ("kernel", "numbers", "like", "num_in_place", "num_optional", "in_xla")
_native_call = Primitive("jaxarc_native_call")
_native_call.multiple_results = True


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
    return _native_call.bind(*arguments, **dict(zip(_PARAMS, values, strict=True)))


_compiled = jax.jit(_native_call.bind, static_argnames=_PARAMS)


@_native_call.def_impl
def _call_alone(*arguments: Array, **params: Any) -> list[Array]:
    with jax.disable_jit(False):  # without it, jit would come back to here
        return _compiled(*arguments, **params)


@_native_call.def_abstract_eval
def _like_arguments(*arguments: Any, like: tuple[Like, ...], **_: Any) -> Sequence[Any]:
    return [arguments[i] if isinstance(i, int) else arguments[i[0]].update(shape=i[1]) for i in like]


def _leave_out_unused(used: list[bool], *given: Any) -> tuple[list[bool], Any]:
    """Drop optional results that nobody reads; compiled programs ask for this, and JAX's transformations."""
    equation = given[-1]  # behind which inputs are live, from JAX 0.12 on
    if not any(used):
        return [False] * len(equation.invars), None
    count = len(used)
    optional = equation.params["num_optional"]
    while optional > 0 and not used[count - 1]:
        count -= 1
        optional -= 1
    params = {**equation.params, "like": equation.params["like"][:count], "num_optional": optional}
    return [True] * len(equation.invars), equation.replace(outvars=equation.outvars[:count], params=params)


def _differentiate(
    primals: Sequence[Array], tangents: Sequence[Any], *, like: tuple[Like, ...], in_xla: InXla, **_: Any
) -> tuple[Sequence[Array], Sequence[Any]]:
    """Differentiate what XLA does."""
    function = lambda *arguments: list(in_xla(*arguments)[: len(like)])
    return jax.jvp(function, list(primals), [ad.instantiate_zeros(tangent) for tangent in tangents])


ad.primitive_jvps[_native_call] = _differentiate
if "dce_rules" in vars(partial_eval):  # JAX does not document it; without it all results are computed, the same
    partial_eval.dce_rules[_native_call] = _leave_out_unused


def _lower_in_xla(
    context: mlir.LoweringRuleContext, *arguments: Any, like: tuple[Like, ...], in_xla: InXla, **_: Any
) -> Any:
    wanted = lambda *arguments: in_xla(*arguments)[: len(like)]
    return mlir.lower_fun(wanted, multiple_results=True)(context, *arguments)


def _lower_on_cpu(
    context: mlir.LoweringRuleContext,
    *arguments: Any,
    kernel: str,
    numbers: tuple[int, ...],
    num_in_place: int,
    **params: Any,
) -> Any:
    library = native_library()
    if library is None or context.module_context.lowering_parameters.for_export:
        return _lower_in_xla(context, *arguments, **params)
    in_place = {i: i for i in range(num_in_place)}
    lower = jax.ffi.ffi_lowering(library.targets[kernel], operand_output_aliases=in_place)
    return lower(context, *arguments, numbers=np.array(numbers, np.int64))


mlir.register_lowering(_native_call, _lower_in_xla)
mlir.register_lowering(_native_call, _lower_on_cpu, platform="cpu")
