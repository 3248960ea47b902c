"""Random keys, typed or raw."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, Key, UInt32

from jaxarc.types import PRNGKey


def as_typed_key(key: PRNGKey) -> Key[Array, ""]:
    """Return a single key as a typed one, so that ``jax.random.PRNGKey(0)`` and ``jax.random.key(0)`` act alike.

    Raises:
        TypeError: the argument is not one key.
    """
    if not isinstance(key, jax.Array | np.ndarray):
        raise TypeError(f"a key comes from jax.random.key or jax.random.PRNGKey, got {key!r}")
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        typed = key
    elif key.dtype == jnp.uint32 and key.ndim > 0 and key.shape[-1] in (2, 4):
        typed = from_key_data(key)
    else:
        raise TypeError(f"a key comes from jax.random.key or jax.random.PRNGKey, got {key.dtype}{key.shape}")
    if typed.ndim != 0:
        raise TypeError(f"one key was expected, got {typed.shape}; use batch_reset or jax.vmap for several")
    return typed


class EpisodeKeys(NamedTuple):
    """Random words of one reset, each for one use."""

    task: UInt32[Array, ""]
    pair: UInt32[Array, ""]
    start: UInt32[Array, " words"]  # data of the key of the start grid
    state: UInt32[Array, " words"]  # data of the key of the next episode


def split_for_episode(key: PRNGKey) -> EpisodeKeys:
    """Draw everything that a reset needs from one call of the generator, which costs more than the rest of a reset."""
    words = jax.random.key_data(jax.random.split(as_typed_key(key), 4))
    return EpisodeKeys(words[0, 0], words[1, 0], words[2], words[3])


def from_key_data(words: UInt32[Array, " words"]) -> Key[Array, ""]:
    """Turn stored words into a typed key again."""
    return jax.random.wrap_key_data(words, impl="threefry2x32" if words.shape[-1] == 2 else "rbg")


def fraction(word: UInt32[Array, ""]) -> Float32[Array, ""]:
    """Turn a random word into a number in [0, 1), a multiple of 2**-24."""
    return (word >> jnp.uint32(8)).astype(jnp.float32) * jnp.float32(2.0**-24)


def below(word: UInt32[Array, ""], count: Int32[Array, ""]) -> Int32[Array, ""]:
    """Turn a random word into a number in ``0 .. count - 1``, for counts up to 2**16.

    Each number's chance is within ``count / 2**16`` of uniform, relatively: nothing for the few pairs of a task.
    """
    high = word >> jnp.uint32(16)
    return ((high * count.astype(jnp.uint32)) >> jnp.uint32(16)).astype(jnp.int32)
