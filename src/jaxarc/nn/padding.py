"""Shapes that do not depend on values, so that a program compiles once, and shapes that accelerators like."""

from typing import Final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Shaped

TPU_LANES: Final = 128  # elements, not bytes, that a vector unit of a TPU handles at once


def padded_fn(
    x: Shaped[Array, "m *rest"], n: int | Int[Array, ""], max_n: int = 10
) -> tuple[Shaped[Array, "max_n*m *rest"], Bool[Array, " max_n*m"]]:
    """Repeat an array ``n`` times along its first axis, with zeros up to ``max_n`` times.

    The shape depends on ``max_n`` alone, so compiled code takes any ``n``, a traced one too::

        padded_fn([1, 2], n=2, max_n=3)  ->  [1, 2, 1, 2, 0, 0], [True, True, True, True, False, False]

    Returns:
        The padded array, and true where it is no padding.

    Raises:
        ValueError: ``x`` is a scalar, or ``max_n`` is below 1.
        EquinoxRuntimeError: ``n`` is not within 0 .. ``max_n``.
    """
    if not x.ndim or max_n < 1:
        raise ValueError(
            f"padded_fn: x needs an axis to repeat and max_n must be at least 1, got the shape {x.shape} and {max_n}"
        )
    n = jnp.asarray(n)
    n = eqx.error_if(n, (n < 0) | (n > max_n), f"padded_fn: n must be within 0 .. max_n={max_n}; pass a larger max_n")
    is_real = jnp.arange(max_n * x.shape[0]) < n * x.shape[0]
    repeated = jnp.tile(x, (max_n, *[1] * (x.ndim - 1)))
    return jnp.where(is_real.reshape(-1, *[1] * (x.ndim - 1)), repeated, jnp.zeros((), x.dtype)), is_real


def make_tpu_friendly_shape(size: int) -> int:
    """Round a size of an axis up to a multiple of 128, the lanes of a TPU: 1 -> 128, 128 -> 128, 129 -> 256."""
    if size < 1:
        raise ValueError(f"make_tpu_friendly_shape: a size is at least 1, got {size}; leave an empty axis out")
    return -(-size // TPU_LANES) * TPU_LANES
