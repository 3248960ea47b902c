"""In which precision a model computes, whatever its parameters are kept in."""

from typing import Any, Final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

DTYPES: Final = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}  # by the name in SurrogateTrainingConfig


def cast_floats(tree: Any, dtype: DTypeLike) -> Any:
    """Cast every array of floating-point numbers in a pytree; all else stays.

    Parameters and what they meet are both to be cast: bfloat16 times float32 is computed in float32. The gradient goes
    back through the cast: that of float32 parameters is float32, rounded to bfloat16 once for each part of a batch.
    """
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree)
