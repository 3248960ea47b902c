"""Primitives: the one place that asks JAX for interfaces that it has but does not promise to keep.

The rules of a primitive see what no function sees: which of its results are read, for which platform a program is
lowered, and whether it is exported. Where JAX lacks an interface there is no primitive, and the callers of
:func:`make_primitive` compute the same bits by ``jax.custom_jvp``, ``jax.custom_batching`` and ``jax.ffi``, slower.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import jax
from jaxtyping import Array

from jaxarc.errors import JaxarcError

OLDEST_JAX: Final = (0, 8, 3)


class JaxVersionError(JaxarcError, ImportError):
    """The installed JAX is too old."""


if jax.__version_info__ < OLDEST_JAX:
    _oldest = ".".join(map(str, OLDEST_JAX))
    raise JaxVersionError(
        f"jaxarc needs JAX {_oldest} or later, got {jax.__version__}: pip install --upgrade jax jaxlib"
    )

Bind = Callable[..., list[Array]]


class ForeignCall(NamedTuple):
    """A call of a function that was registered with ``jax.ffi``."""

    target: str
    in_place: dict[int, int]  # argument -> the result that takes its place
    attributes: dict[str, Any]


def make_primitive(
    name: str,
    *,
    run: Callable[..., Sequence[Array]],
    results: Callable[..., tuple[Sequence[Any], Any]],
    differentiate: Callable[..., Any],
    leave_out_unused: Callable[[list[bool], Any], tuple[list[bool], Any]],
    batch: Callable[..., Any] | None = None,
    params: Sequence[str] = (),
    on_cpu: Callable[..., ForeignCall | None] | None = None,
) -> Bind | None:
    """Return the function that binds a new primitive of several results, or None where JAX lacks an interface.

    Args:
        name: of the primitive.
        run: what it does, in JAX, of arrays and parameters.
        results: their shapes and dtypes, and the effects, of those of the arguments.
        differentiate: from primals, tangents and parameters to the same of the results.
        leave_out_unused: from a flag for each result, true where it is read, and the equation, to a flag for each
            argument and the equation with fewer results. JAX does not document this rule: without it, all results are
            computed.
        batch: the rule of ``vmap``.
        params: the names of the parameters, where a call outside of ``jit`` is compiled too.
        on_cpu: the call that does the same on a CPU, of the parameters; ``run`` is taken for None, on other platforms,
            and in an exported program, which may run on another machine.
    """
    try:
        from jax.extend.core import Primitive
        from jax.interpreters.ad import instantiate_zeros, primitive_jvps
        from jax.interpreters.batching import primitive_batchers
        from jax.interpreters.mlir import lower_fun, register_lowering
    except ImportError:
        return None
    primitive = Primitive(name)
    primitive.multiple_results = True
    compiled = jax.jit(primitive.bind, static_argnames=params)

    def run_alone(*arguments: Array, **params: Any) -> Sequence[Array]:
        with jax.disable_jit(False):  # without it, jit would come back to here
            return compiled(*arguments, **params)

    primitive.def_impl(run_alone if params else run)
    primitive.def_effectful_abstract_eval(results)
    if batch is not None:
        primitive_batchers[primitive] = batch
        primitive.to_lojax = run  # from JAX 0.12 on, where its jaxpr has a type that is made of others

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> Any:
        return differentiate(list(primals), [instantiate_zeros(tangent) for tangent in tangents], **params)

    primitive_jvps[primitive] = jvp
    in_xla = lower_fun(run, multiple_results=True)
    register_lowering(primitive, in_xla)
    if on_cpu is not None:

        def lower(context: Any, *arguments: Any, **params: Any) -> Any:
            is_exported = context.module_context.lowering_parameters.for_export
            call = None if is_exported else on_cpu(**params)
            if call is None:
                return in_xla(context, *arguments, **params)
            lower_call = jax.ffi.ffi_lowering(call.target, operand_output_aliases=call.in_place)
            return lower_call(context, *arguments, **call.attributes)

        register_lowering(primitive, lower, platform="cpu")
    with contextlib.suppress(ImportError):
        from jax.interpreters.partial_eval import dce_jaxpr, dce_rules  # noqa: F401

        # Between the two, from JAX 0.12 on, stands which arguments are live.
        dce_rules[primitive] = lambda used, *given: leave_out_unused(used, given[-1])
    return primitive.bind


def without_results(jaxpr: Any, used: list[bool]) -> Any:
    """Return a jaxpr without the results that are not used, nor what only they need; for ``leave_out_unused``."""
    from jax.interpreters.partial_eval import dce_jaxpr

    rest, _ = dce_jaxpr(jaxpr.jaxpr, used, instantiate=True)
    return type(jaxpr)(rest, jaxpr.consts)
