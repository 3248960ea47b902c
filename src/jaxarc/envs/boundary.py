"""The public boundary: compiled, cheap to call from a Python loop, and with errors that read well."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
from jaxtyping import Array

Result = TypeVar("Result")


def compiled(checked: Callable[[Any], Array] | None = None) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Compile a function of pytrees of arrays.

    ``eqx.filter_jit`` explains what went wrong, and takes four times as long to call as ``jax.jit``. So the second is
    tried first; a call that fails is repeated with the first, which fails in the same way and says why.

    Args:
        checked: picks an array of the result to wait for, because a check at run time fails no sooner; None when the
            function has no such check.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        fast, careful = jax.jit(function), eqx.filter_jit(function)

        @functools.wraps(function)
        def call(*args: Any) -> Result:
            try:
                result = fast(*args)
                if checked is not None:
                    jax.block_until_ready(checked(result))
            except (TypeError, ValueError, RuntimeError):
                return careful(*args)
            return result

        return call

    return decorate
