"""Two primitives: a kernel that was written for a batch, and a call of the C++ library.

The rules of a primitive see what no function sees: which of its results are read, for which platform a program is
lowered, and whether it is exported. This is the one place that asks JAX for interfaces that it has but does not promise
to keep. Where JAX lacks one there is no primitive, and the same bits are computed by ``jax.custom_jvp``,
``jax.custom_batching`` and ``jax.ffi``, slower.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array, PyTree, UInt32

from jaxarc.errors import JaxarcError
from jaxarc.fusion import compiles_for_cpu, refuse_empty_batch

OLDEST_JAX: Final = (0, 8, 3)

Rows = TypeVar("Rows", bound=PyTree[Array])
Kernel = Callable[[Any, Any], Any]  # (rows: arrays with a leading batch axis, shared: arrays of the batch) -> rows
InXla = Callable[..., Sequence[Array]]  # takes the arguments of a call, returns its results
Like = int | tuple[int, tuple[int, ...]]  # an argument, with another shape of as many axes where one is given


class JaxVersionError(JaxarcError, ImportError):
    """The installed JAX is too old."""


if jax.__version_info__ < OLDEST_JAX:
    _oldest = ".".join(map(str, OLDEST_JAX))
    raise JaxVersionError(
        f"jaxarc needs JAX {_oldest} or later, got {jax.__version__}: pip install --upgrade jax jaxlib"
    )


class _ForeignCall(NamedTuple):
    """A call of a function that was registered with ``jax.ffi``."""

    target: str
    in_place: dict[int, int]  # argument -> the result that takes its place
    attributes: dict[str, Any]


def _make_primitive(
    name: str,
    *,
    run: Callable[..., Sequence[Array]],
    results: Callable[..., tuple[Sequence[Any], Any]],
    differentiate: Callable[..., Any],
    leave_out_unused: Callable[[list[bool], Any], tuple[list[bool], Any]],
    batch: Callable[..., Any] | None = None,
    params: Sequence[str] = (),
    on_cpu: Callable[..., _ForeignCall | None] | None = None,
) -> Callable[..., list[Array]] | None:
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


def with_batch_rule(kernel: Kernel, unshared_rule: Callable[[Kernel, Any, Any, Any], Any] | None = None) -> Kernel:
    """Make a function of one environment of a kernel that was written for many.

    ``jax.vmap`` of the result does not vectorize the kernel: its rule folds every further batch axis into the one that
    the kernel has, however the vmaps are nested. So what users ``vmap`` runs the batch kernel. An example, with a
    kernel that sees how many rows need work, which no function of one row can::

        count = with_batch_rule(lambda rows, _: jnp.broadcast_to(rows.sum(), rows.shape))
        jax.vmap(jax.vmap(lambda need: count(need, ())))(needs)  # needs int32[2, 3] -> the kernel runs once, on [6]

    Args:
        kernel: from arrays with a leading batch axis, and others that the whole batch shares, to arrays with that axis.
        unshared_rule: does the work where each of several batches has shared arrays of its own; takes the kernel, a
            pytree of booleans, true for a shared array that has a leading axis, and all arrays with one more axis. None
            for a kernel that shares no arrays.
    """

    def batched(rows: PyTree[Array], shared: PyTree[Array]) -> PyTree[Array]:
        leaves, tree = jax.tree.flatten((rows, shared))

        def fold(size: int, has_axis: Sequence[bool], leaves: Sequence[Array]) -> PyTree[Array]:
            """Turn ``[size, B, ...]`` into ``[size * B, ...]``, run the kernel once, and turn its result back."""
            rows, shared = jax.tree.unflatten(tree, leaves)
            has_rows, has_shared = jax.tree.unflatten(tree, has_axis)
            # What this vmap does not map over is repeated, so that every row array is [size, B, ...].
            rows = jax.tree.map(lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape)), rows, has_rows)
            # `batched` and not `kernel` is called on [size * B, ...]: an outer vmap meets this rule again and folds its
            # axis too, so a vmap over 2 of a vmap over 3 makes one batch of 6.
            if any(jax.tree.leaves(has_shared)):
                assert unshared_rule is not None, "a kernel that shares no arrays was given some"
                return unshared_rule(batched, has_shared, rows, shared)
            return unfold_rows(size, batched(fold_rows(rows), shared))

        if _bind_batched is None:
            return _with_public_rules(lambda *leaves: kernel(*jax.tree.unflatten(tree, leaves)), fold)(*leaves)
        jaxpr, shapes = jax.make_jaxpr(kernel, return_shape=True)(rows, shared)
        kept = range(len(jaxpr.out_avals))
        return jax.tree.unflatten(jax.tree.structure(shapes), _bind_batched(*leaves, jaxpr=jaxpr, fold=fold, kept=kept))

    def single(row: PyTree[Array], shared: PyTree[Array]) -> PyTree[Array]:
        # A batch of one. Outside vmap the kernel runs on it; under vmap the rule makes its axis longer.
        rows = jax.tree.map(lambda x: x[None], row)
        return jax.tree.map(lambda x: x[0], batched(rows, shared))

    return single


def fold_rows(rows: Rows) -> Rows:
    """Make one batch axis of the first two."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)


def unfold_rows(size: int, rows: Rows) -> Rows:
    """Make two axes of the batch axis, the first of this size."""
    return jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), rows)


# A kernel of a batch is a primitive for the sake of two rules: `vmap` makes its batch longer, and what nobody reads of
# its results is not computed. JAX's custom_vmap has the first rule only.


def _run_batched(*leaves: Array, jaxpr: Any, **_: Any) -> list[Array]:
    return jaxpr_as_fun(jaxpr)(*leaves)


def _batch_batched(
    leaves: Sequence[Array], axes: Sequence[int | None], fold: Any, kept: Sequence[int], **_: Any
) -> tuple[list[Array], list[int]]:
    has_axis = [axis is not None for axis in axes]
    leaves = [leaf if axis is None else jnp.moveaxis(leaf, axis, 0) for leaf, axis in zip(leaves, axes, strict=True)]
    (size,) = {leaf.shape[0] for leaf, has in zip(leaves, has_axis, strict=True) if has}
    refuse_empty_batch(size)
    out = jax.tree.leaves(fold(size, has_axis, leaves))
    return [out[i] for i in kept], [0] * len(kept)


def _drop_results(used: list[bool], equation: Any) -> tuple[list[bool], Any]:
    """Leave out the results that nobody reads, and what only they need."""
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    from jax.interpreters.partial_eval import dce_jaxpr  # JAX calls this rule only where it has it

    choose = lambda all_of: [x for x, is_used in zip(all_of, used, strict=True) if is_used]
    jaxpr = equation.params["jaxpr"]
    rest, _ = dce_jaxpr(jaxpr.jaxpr, used, instantiate=True)
    kept = tuple(choose(equation.params["kept"]))
    params = {**equation.params, "jaxpr": type(jaxpr)(rest, jaxpr.consts), "kept": kept}
    return [True] * len(equation.invars), equation.replace(outvars=choose(equation.outvars), params=params)


_bind_batched = _make_primitive(
    "jaxarc_batched",
    run=_run_batched,
    results=lambda *_, jaxpr, **__: (jaxpr.out_avals, jaxpr.effects),
    differentiate=lambda primals, tangents, jaxpr, **_: jax.jvp(jaxpr_as_fun(jaxpr), primals, tangents),
    leave_out_unused=_drop_results,
    batch=_batch_batched,
)


def _with_public_rules(function: Callable[..., Any], fold: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function with the rule of ``vmap``, where there is no primitive; all results are computed."""
    # By `jit` the constants of the kernel stay within it: custom_vmap has none that a branch of each row may map over.
    batched = custom_vmap(jax.jit(function))

    @batched.def_vmap
    def longer(size: int, has_axis: Sequence[bool], *leaves: Array) -> tuple[Any, Any]:
        refuse_empty_batch(size)
        out = fold(size, has_axis, leaves)
        return out, jax.tree.map(lambda _: True, out)

    call = jax.custom_jvp(batched)  # custom_vmap alone cannot be differentiated backwards
    call.defjvp(lambda primals, tangents: jax.jvp(function, primals, tangents))
    return call


def choose_executor(wanted: str) -> str:
    """Resolve ``"auto"`` and ``"native"``: native on a CPU where the library can be had, elsewhere XLA's."""
    if wanted == "xla" or not compiles_for_cpu():
        return "xla"
    from jaxarc.native.library import native_library  # it writes files, and importing the core loads nothing that does

    return "xla" if native_library() is None else "native"


def native_call(
    kernel: str,
    numbers: Sequence[int],
    arguments: Sequence[Array],
    like: Sequence[Like],
    num_in_place: int,
    in_xla: InXla,
    num_optional: int = 0,
) -> list[Array]:
    """Call a kernel of the C++ library within a compiled program, inside ``jax.shard_map`` too.

    For which platform a program is compiled is known when JAX lowers it, so the choice is made there: the library on a
    CPU; XLA's version on every other platform, and in a program that is exported, which may run on another machine.

    Args:
        kernel: its name; see ``library.cc``. It knows no vmap: a batch rule folds all axes into one.
        numbers: what is fixed when the caller is compiled, in the kernel's order.
        arguments: the arrays that it takes, in its order.
        like: for each array that it returns, the argument whose dtype it has, and whose shape if none is given.
        num_in_place: how many of them take the place of the argument of the same index, where nobody reads that any
            more.
        in_xla: returns the same, bit for bit; equal calls give the same function.
        num_optional: how many results at the end are left out where nobody reads them, nor those behind them. A kernel
            sees how many are left.
    """
    # Inside shard_map the arguments of a call must vary over the same devices.
    if jax.sharding.get_abstract_mesh().manual_axes:
        words = [x.reshape(-1)[0].astype(jnp.uint32) for x in arguments if x.size]
        arguments = vary_like(list(arguments), jnp.stack(words))
    values = (kernel, tuple(map(int, numbers)), tuple(like), num_in_place, num_optional, in_xla)
    params = dict(zip(_PARAMS, values, strict=True))
    return _call_publicly(*arguments, **params) if _bind_call is None else _bind_call(*arguments, **params)


def vary_like(tree: Rows, words: UInt32[Array, " words"]) -> Rows:
    """Return the same values, marked as varying over the same devices as ``words``.

    Inside ``jax.shard_map`` JAX tracks over which devices a value varies, and a loop may not change that. A fresh state
    holds constants, which vary over no device; the state after a step does vary. Without this a ``lax.scan`` over steps
    would refuse its carry. The compiler removes the addition of zero.
    """
    # Zero, whatever the words are, but computed from them: it varies over the devices that they vary over.
    zero = words[0] & jnp.uint32(0)
    return jax.tree.map(lambda leaf: leaf + zero.astype(leaf.dtype), tree)


_PARAMS: Final = ("kernel", "numbers", "like", "num_in_place", "num_optional", "in_xla")


def _run_call(*arguments: Array, like: tuple[Like, ...], in_xla: InXla, **_: Any) -> Sequence[Array]:
    return in_xla(*arguments)[: len(like)]


def _results_of_call(*arguments: Any, like: tuple[Like, ...], **_: Any) -> list[Any]:
    return [arguments[i] if isinstance(i, int) else arguments[i[0]].update(shape=i[1]) for i in like]


def _drop_optional(used: list[bool], equation: Any) -> tuple[list[bool], Any]:
    """Leave out optional results that nobody reads; compiled programs ask for this, and JAX's transformations."""
    if not any(used):
        return [False] * len(equation.invars), None
    count = len(used)
    optional = equation.params["num_optional"]
    while optional > 0 and not used[count - 1]:
        count -= 1
        optional -= 1
    params = {**equation.params, "like": equation.params["like"][:count], "num_optional": optional}
    return [True] * len(equation.invars), equation.replace(outvars=equation.outvars[:count], params=params)


def _differentiate_call(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> Any:
    """Differentiate what XLA does."""
    return jax.jvp(lambda *arguments: list(_run_call(*arguments, **params)), primals, tangents)


def _on_cpu(kernel: str, numbers: tuple[int, ...], num_in_place: int, **_: Any) -> _ForeignCall | None:
    from jaxarc.native.library import native_library  # as in choose_executor

    library = native_library()
    if library is None:
        return None
    in_place = {i: i for i in range(num_in_place)}
    return _ForeignCall(library.targets[kernel], in_place, {"numbers": np.array(numbers, np.int64)})


_bind_call = _make_primitive(
    "jaxarc_native_call",
    run=_run_call,
    results=lambda *arguments, **params: (_results_of_call(*arguments, **params), set()),
    differentiate=_differentiate_call,
    leave_out_unused=_drop_optional,
    params=_PARAMS,
    on_cpu=_on_cpu,
)


def _call_publicly(*arguments: Array, **params: Any) -> list[Array]:
    """Do the same where there is no primitive: all results are computed, and JAX does not export the call."""
    call = _on_cpu(**params)
    in_xla = lambda *arguments: list(_run_call(*arguments, **params))
    if call is None:
        return in_xla(*arguments)

    def in_library(*arguments: Array) -> list[Array]:
        results = _results_of_call(*map(jax.typeof, arguments), **params)
        of_library = jax.ffi.ffi_call(call.target, results, input_output_aliases=call.in_place)
        return list(of_library(*arguments, **call.attributes))

    @jax.custom_jvp
    def either(*arguments: Array) -> list[Array]:
        return jax.lax.platform_dependent(*arguments, cpu=in_library, default=in_xla)

    either.defjvp(lambda primals, tangents: _differentiate_call(primals, tangents, **params))
    return either(*arguments)
