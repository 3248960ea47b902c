"""Compute in fewer bits than the parameters have: products in bfloat16, float16 or TensorFloat-32, sums in float32.

A float32 has 8 bits of exponent and 23 of fraction. bfloat16 keeps the exponent and 7 bits of fraction, so it has the
same range and two correct digits. float16 keeps 10 bits of fraction and 5 of exponent: above 65,504 it is infinite, and
gradients below 6e-8 are 0, which is why a loss is multiplied by :data:`LOSS_SCALES` before they are taken.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Float32

from jaxarc.fusion import compiles_for_cpu

DTYPES: Final = {  # of what is cast, by the name in a config
    "float32": jnp.float32,
    "tensorfloat32": jnp.float32,  # the products round, nothing is cast
    "bfloat16": jnp.bfloat16,
    "float16": jnp.float16,
}
LOSS_SCALES: Final = {"float32": 1.0, "tensorfloat32": 1.0, "bfloat16": 1.0, "float16": 1024.0}
_PRODUCTS: Final = {"tensorfloat32": "tensorfloat32", "bfloat16": "BF16_BF16_F32"}


def products_in(precision: str) -> AbstractContextManager[None]:
    """Trace matrix products of float32 with factors rounded to ``precision``; sums are float32 either way.

    ``"tensorfloat32"`` and ``"bfloat16"`` round the factors as the units for products of GPUs and TPUs read them;
    any other name changes nothing. On a CPU factors stay as they are: it has no such products.
    """
    if precision not in _PRODUCTS or compiles_for_cpu():
        return nullcontext()
    return jax.default_matmul_precision(_PRODUCTS[precision])


def cast_floats(tree: Any, dtype: DTypeLike) -> Any:
    """Cast every array of floating-point numbers in a pytree; other leaves stay.

    Cast both the parameters and the inputs: bfloat16 times float32 is computed in float32. The gradient flows back
    through the cast, so that of float32 parameters is float32, rounded to bfloat16 once for each part of a batch.
    """
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree)


def mixed_precision_matmul(
    x: Float[Array, "*B n"], w: Float[Array, "n m"], precision: str = "bfloat16"
) -> Float32[Array, "*B m"]:
    """Multiply matrices whose entries are rounded to ``precision``; sums and result are float32.

    Rounding the sums too, as ``x @ w`` of two bfloat16 matrices does, would leave two correct digits of a sum however
    many numbers it adds: bfloat16 has 8 significant bits, and 257 needs nine, so a sum of ones would stop at 256.

    Raises:
        ValueError: the precision is not one of :data:`DTYPES`, or the shapes do not fit.
    """
    dtype = require_precision(precision, "mixed_precision_matmul")
    if not x.ndim or w.ndim != 2 or x.shape[-1] != w.shape[0]:
        raise ValueError(
            f"mixed_precision_matmul: x of shape {x.shape} and w of shape {w.shape} cannot be multiplied; the last "
            "axis of x has to be as long as the first of the matrix w"
        )
    with products_in(precision):
        return jnp.matmul(x.astype(dtype), w.astype(dtype), preferred_element_type=jnp.float32)


def require_precision(precision: str, function: str) -> DTypeLike:
    """Return the dtype of a precision; ``function`` is named where there is no such precision.

    Raises:
        ValueError: the precision is not one of :data:`DTYPES`.
    """
    if precision not in DTYPES:
        raise ValueError(f"{function}: unknown precision {precision!r}; choose one of {', '.join(DTYPES)}")
    return DTYPES[precision]
