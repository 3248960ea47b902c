"""Random keys, typed or raw."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from jaxarc.types import PRNGKey


def as_typed_key(key: PRNGKey) -> Key[Array, ""]:
    """Return a single key as a typed one, so that ``jax.random.PRNGKey(0)`` and ``jax.random.key(0)`` act alike.

    Raises:
        TypeError: the argument is not one key.
    """
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        typed = key
    elif key.dtype == jnp.uint32 and key.ndim > 0 and key.shape[-1] in (2, 4):
        typed = jax.random.wrap_key_data(key, impl="threefry2x32" if key.shape[-1] == 2 else "rbg")
    else:
        raise TypeError(f"a key comes from jax.random.key or jax.random.PRNGKey, got {key.dtype}{key.shape}")
    if typed.ndim != 0:
        raise TypeError(f"one key was expected, got {typed.shape}; use batch_reset or jax.vmap for several")
    return typed
