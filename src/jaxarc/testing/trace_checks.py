"""Checks of an environment that only trace it: types, leaked tracers, calls to the host. Nothing is compiled."""

import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
from jax.extend import core
from jaxtyping import PyTree

from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.testing.random_rollout import kind_of, mismatches
from jaxarc.types import PRNGKey

_SCALARS = {"terminated": jnp.bool_, "truncated": jnp.bool_, "discount": jnp.float32}  # what every info has


class Traced(NamedTuple):
    """Shapes and dtypes of what each method returns; leaves are ``jax.ShapeDtypeStruct``."""

    reset: tuple[PyTree, PyTree]  # state, observation
    action: PyTree
    step: tuple[PyTree, PyTree, Any, Any, dict[str, Any]]  # state, observation, reward, done, info
    reset_next: tuple[PyTree, PyTree]
    observe: PyTree
    info: dict[str, Any]


def trace(env: Environment[Any], params: EnvParams, key: PRNGKey) -> Traced:
    """Trace every method once."""
    # Shapes and dtypes only: nothing is compiled or computed, so a wrong type is found in milliseconds.
    reset = jax.eval_shape(env.reset, key, params)
    action = jax.eval_shape(lambda key: env.action_space(params).sample(key), key)
    return Traced(
        reset=reset,
        action=action,
        step=jax.eval_shape(env.step, reset[0], action, params),
        reset_next=jax.eval_shape(env.reset_next, reset[0], params),
        observe=jax.eval_shape(env.observe, reset[0], params),
        info=jax.eval_shape(env.info, reset[0], params),
    )


def states_keep_their_shape(traced: Traced) -> Iterator[str]:
    """Check that all methods return states, and observations, of one structure, shape and dtype."""
    # A scan carries the state, so whatever returns one must return the same types; reset sets the standard.
    first, observation = traced.reset
    for method, state in (("step", traced.step[0]), ("reset_next", traced.reset_next[0])):
        for difference in mismatches(state, first):
            yield (
                f"{method} returns another state than reset: {difference}; a loop over steps needs states of one "
                "structure, shape and dtype, so cast where it is computed, and use jnp constants of a fixed dtype"
            )
    for method, shown in (
        ("step", traced.step[1]),
        ("reset_next", traced.reset_next[1]),
        ("observe", traced.observe),
    ):
        for difference in mismatches(shown, observation):
            yield f"{method} returns another observation than reset: {difference}; build both in one function"


def reports_have_the_agreed_types(traced: Traced) -> Iterator[str]:
    """Check the types of reward, done and the entries of info that every environment has."""
    _, _, reward, done, info = traced.step
    for name, value, dtype in (("reward", reward, jnp.float32), ("done", done, jnp.bool_)):
        if value.shape != () or value.dtype != dtype:
            yield f"step returns a {name} of {kind_of(value)}; make it a {jnp.dtype(dtype).name} scalar"
    for name, dtype in _SCALARS.items():
        if name not in info:
            yield f"info of step has no {name!r}; add it, a {jnp.dtype(dtype).name} scalar"
        elif info[name].shape != () or info[name].dtype != dtype:
            yield f"info[{name!r}] of step is {kind_of(info[name])}; make it a {jnp.dtype(dtype).name} scalar"
    for difference in mismatches(traced.info, info):
        yield f"info(state) differs from the info of step: {difference}; give both the same keys, shapes and dtypes"


def nothing_leaks_out_of_a_trace(env: Environment[Any], params: EnvParams, key: PRNGKey) -> Iterator[str]:
    """Check with ``jax.checking_leaks`` that no traced value outlives its trace."""
    with _LeakCatcher() as leak, jax.checking_leaks():
        trace(env, params, key)
    if leak.found is not None:
        yield (
            f"a value of a traced call outlives it: {leak.found}; return it in the state instead of keeping it in an "
            "attribute, a list or a global"
        )


def no_method_calls_the_host(env: Environment[Any], params: EnvParams, traced: Traced) -> Iterator[str]:
    """Check that no method calls the host. Policy ``raise`` does so in order to raise, so ``noop`` takes its place."""
    # A callback would stop the device in every step and wait for Python.
    quiet = params
    if params.config.action.invalid_action_policy == "raise":
        config = params.config.with_fields(invalid_action_policy="noop")
        quiet = EnvParams(params.tasks, params.weights, config, params.pair_index)
    state = traced.reset[0]
    calls = {
        "reset": lambda: jax.make_jaxpr(env.reset)(jax.random.key(0), quiet),
        "step": lambda: jax.make_jaxpr(env.step)(state, traced.action, quiet),
        "reset_next": lambda: jax.make_jaxpr(env.reset_next)(state, quiet),
    }
    for method, make in calls.items():
        for primitive in sorted(set(_primitives(make().jaxpr))):
            if "callback" in primitive or primitive in ("debug_print", "infeed", "outfeed"):
                yield f"{method} calls back to the host ({primitive}); compute on the device, and log outside the step"


class _LeakCatcher(contextlib.AbstractContextManager["_LeakCatcher"]):
    """Keeps the one error of ``jax.checking_leaks``, which has no class of its own, and lets all others pass."""

    found: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        # Returning true swallows the error, which then counts as a fault of the environment; any other goes on.
        if not str(error).startswith("Leaked "):
            return False
        self.found = " ".join(str(error).split())[:160]
        return True


def _primitives(jaxpr: core.Jaxpr) -> Iterator[str]:
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in _inner(equation.params):
            yield from _primitives(inner)


def _inner(params: Any) -> Iterator[core.Jaxpr]:
    """Yield each program inside the parameters of an equation, such as the body of a scan."""
    # A program stands in a parameter by itself or in a tuple, as the branches of a cond do.
    for value in jax.tree.leaves(list(params.values()), is_leaf=lambda x: isinstance(x, core.Jaxpr | core.ClosedJaxpr)):
        if isinstance(value, core.ClosedJaxpr):
            yield value.jaxpr
        elif isinstance(value, core.Jaxpr):
            yield value
