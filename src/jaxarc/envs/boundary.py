"""The public boundary: compiled, cheap to call from a Python loop, and with errors that read well."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax

Result = TypeVar("Result")


def compiled(may_raise: Callable[..., bool] | None = None) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Compile a function of pytrees of arrays.

    ``eqx.filter_jit`` explains what went wrong, and takes four times as long to call as ``jax.jit``. So the second is
    tried first; a call that fails is repeated with the first, which fails in the same way and says why.

    Args:
        may_raise: tells from the arguments whether the function checks values at run time. Such a check fails no
            sooner than the result is there, so the call waits for it.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        fast, careful = jax.jit(function), eqx.filter_jit(function)

        @functools.wraps(function)
        def call(*args: Any) -> Result:
            try:
                result = fast(*args)
                if may_raise is not None and may_raise(*args):
                    jax.block_until_ready(result)
            except (TypeError, ValueError, RuntimeError):
                return careful(*args)
            return result

        return call

    return decorate
