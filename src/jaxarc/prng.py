"""Random keys, typed or raw, and random numbers that are cheap on a CPU and the same everywhere."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, Key, UInt32

from jaxarc.device_arrays import device_array
from jaxarc.types import PRNGKey

THREEFRY = "threefry2x32"


def keys_of_seeds(seeds: Sequence[int]) -> Key[Array, " K"]:
    """Return the key of each seed, 0 .. 2^31 - 1; stacked ones count as used where JAX checks keys for reuse."""
    return jax.vmap(jax.random.key)(device_array(seeds, jnp.int32))


def as_typed_key(key: PRNGKey) -> Key[Array, ""]:
    """Return a single key as a typed one, so that ``jax.random.PRNGKey(0)`` and ``jax.random.key(0)`` act alike.

    What XLA draws from a key of ``rbg`` or ``unsafe_rbg`` under ``jax.vmap`` depends on the batch, so such a key gives
    its words to a key of Threefry, and equal keys give equal episodes.

    Raises:
        TypeError: the argument is not one key.
    """
    if not isinstance(key, jax.Array | np.ndarray):
        raise TypeError(f"a key comes from jax.random.key or jax.random.PRNGKey, got {key!r}")
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        typed = key if jax.random.key_impl(key) == THREEFRY else from_key_data(jax.random.key_data(key))
    elif key.dtype == jnp.uint32 and key.ndim > 0 and key.shape[-1] in (2, 4):
        typed = from_key_data(device_array(key))
    else:
        raise TypeError(f"a key comes from jax.random.key or jax.random.PRNGKey, got {key.dtype}{key.shape}")
    if typed.ndim != 0:
        raise TypeError(f"one key was expected, got {typed.shape}; use batch_reset or jax.vmap for several")
    return typed


def split_words(key: Key[Array, ""], count: int) -> UInt32[Array, "count 2"]:
    """Return the data of ``jax.random.split(key, count)``, of Threefry, whichever way JAX is configured to split."""
    if not splits_by_counter(key):
        return jax.random.key_data(jax.random.split(key, count))
    # Where JAX splits "partitionably", key i is Threefry of the counter (0, i), whatever the count: so are these rows.
    return jnp.stack(threefry(jax.random.key_data(key), jnp.arange(count, dtype=jnp.uint32)), axis=-1)


def splits_by_counter(key: Key[Array, ""]) -> bool:
    """Whether JAX splits a key "partitionably": key ``i`` is Threefry of the counter ``(0, i)``."""
    is_partitionable = jax.config.jax_threefry_partitionable  # pyright: ignore[reportAttributeAccessIssue]
    return jax.random.key_impl(key) == THREEFRY and bool(is_partitionable)


def random_bits(key: Key[Array, ""], count: int) -> UInt32[Array, " count"]:
    """Draw random words from a Threefry key."""
    # Each counter gives two words, of which the left ones are used.
    return threefry(jax.random.key_data(key), jnp.arange(count, dtype=jnp.uint32))[0]


def fast_bits(key: Key[Array, ""], count: int) -> UInt32[Array, " count"]:
    """Draw many words that only have to look fair: a counter, mixed with one random word, then with another.

    For a word a third of the work of :func:`random_bits`.
    """
    # The constant is 2**32 over the golden ratio, odd: its multiples meet every word once before any comes again. Two
    # keys whose first words differ by a multiple of it would give shifted copies of one sequence, if the second word
    # were not mixed in.
    first, second = random_bits(key, 2)
    return _mix(_mix(first + jnp.arange(count, dtype=jnp.uint32) * jnp.uint32(0x9E3779B9)) + second)


def _mix(words: UInt32[Array, " n"]) -> UInt32[Array, " n"]:
    """Change about half of the bits when one bit changes: lowbias32 (Wellons 2018)."""
    # A shift brings high bits down, a product carries low bits up; in turn they spread each bit over the whole word.
    words = (words ^ (words >> jnp.uint32(16))) * jnp.uint32(0x7FEB352D)
    words = (words ^ (words >> jnp.uint32(15))) * jnp.uint32(0x846CA68B)
    return words ^ (words >> jnp.uint32(16))


def threefry(key: UInt32[Array, " 2"], counter: UInt32[Array, " n"]) -> tuple[UInt32[Array, " n"], UInt32[Array, " n"]]:
    """Encrypt the counters ``(0, counter)`` with Threefry-2x32, 20 rounds (Salmon et al. 2011).

    The same words as JAX's own, whose rounds are a loop on a CPU: written out they fuse into one kernel. A round adds,
    rotates and mixes; with words of 8 bits, left 00000101, right 00000011 and a rotation by 6::

        left  = 00000101 + 00000011             = 00001000
        right = 00001000 ^ (00000011 rotated)   = 00001000 ^ 11000000 = 11001000

    After every four rounds, a group, one of three key words is added to each half, and the group's number to the right.
    """
    # The third key word makes the exclusive or of all three a constant of the cipher. The block's left half is the
    # counter's upper word, 0, plus key word 0; its right half is the counter plus key word 1.
    keys = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(0x1BD11BDA))
    left = jnp.full_like(counter, keys[0])
    right = counter + keys[1]
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            left = left + right
            right = left ^ ((right << jnp.uint32(turn)) | (right >> jnp.uint32(32 - turn)))
        # Group 0 adds the key words 1 and 2, group 1 the words 2 and 0, group 2 the words 0 and 1, and so on.
        left = left + keys[(group + 1) % 3]
        right = right + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return left, right


def from_key_data(words: UInt32[Array, " words"]) -> Key[Array, ""]:
    """Turn stored words into a typed key again; the four of other generators become the two of Threefry."""
    if words.shape[-1] == 4:
        # The first two encrypt the others: of the two blocks, one half each.
        flat = words.reshape(-1, 4)
        left, right = jax.vmap(lambda words: threefry(words[:2], words[2:]))(flat)
        words = jnp.stack([left[:, 0], right[:, 1]], axis=-1).reshape(*words.shape[:-1], 2)
    return jax.random.wrap_key_data(words, impl=THREEFRY)


def to_uniform(word: UInt32[Array, ""]) -> Float32[Array, ""]:
    """Turn a random word into a number in [0, 1), a multiple of 2**-24."""
    # 24 bits, as many as a float32 holds exactly: nothing is rounded, and so never up to 1.
    return (word >> jnp.uint32(8)).astype(jnp.float32) * jnp.float32(2.0**-24)


def to_randint(word: UInt32[Array, ""], count: Int32[Array, ""]) -> Int32[Array, ""]:
    """Turn a random word into a number in ``0 .. count - 1``, for counts up to 2**16.

    The upper 16 bits, as a fraction of 2**16, times the count: for 5 and the upper bits 0xC000, 3/4, it is 3. Each
    number's chance is within ``count / 2**16`` of uniform, relatively, which does not matter for the pairs of a task.
    """
    # The product of 16 bits and a count up to 2**16 fits 32 bits; its upper half is the number: 0xC000 * 5 = 0x3C000,
    # 3.
    high = word >> jnp.uint32(16)
    return ((high * count.astype(jnp.uint32)) >> jnp.uint32(16)).astype(jnp.int32)


def to_index(words: UInt32[Array, " words"], count: Int32[Array, ""], most: int) -> Int32[Array, ""]:
    """Turn two random words into an index of a table, ``0 .. count - 1``, for tables of any size.

    Up to 2**16 entries it is :func:`to_randint` of the first word. Above, both words are a fraction of 2**64, and each
    index's chance is within ``count / 2**64`` of uniform, relatively.

    Args:
        words: the first two count.
        count: entries of the table.
        most: the largest ``count``, static; up to 2**16 the second word is not read, and nothing is computed with it.
    """
    index = to_randint(words[0], count)
    if most <= 2**16:
        return index
    # The upper word of the product of a 64-bit fraction and a 32-bit count. With digits of 4 bits instead of 32, the
    # fraction 0x9C and the count 7: 7 * 9 = 0x3F and 7 * 12 = 0x54, so 0x3F0 + 0x54 = 0x444, whose upper digit is 4.
    size = count.astype(jnp.uint32)
    high, low = _multiply(words[0], size)
    carry = low + _multiply(words[1], size)[0] < low  # the sum of two digits wraps around where it carries
    return jnp.where(count <= 2**16, index, (high + carry.astype(jnp.uint32)).astype(jnp.int32))


def _multiply(word: UInt32[Array, ""], other: UInt32[Array, ""]) -> tuple[UInt32[Array, ""], UInt32[Array, ""]]:
    """Return the upper and the lower word of a product, by halves of 16 bits as on paper: no dtype has 64 bits here."""
    # With words of 8 bits and halves of 4, 0x3C * 0x25 = 0x08AC: lows = 0xC * 5 = 0x3C, first = 3 * 5 + 3 = 0x12,
    # second = 0xC * 2 + 2 = 0x1A, and the upper word is 3 * 2 + 1 + 1 = 8.
    half = jnp.uint32(16)
    low_half = jnp.uint32(0xFFFF)
    lows = (word & low_half) * (other & low_half)
    first = (word >> half) * (other & low_half) + (lows >> half)
    second = (word & low_half) * (other >> half) + (first & low_half)
    return (word >> half) * (other >> half) + (first >> half) + (second >> half), word * other


def mixed_radix_ints(word: UInt32[Array, ""], bases: Sequence[int]) -> list[Int32[Array, ""]]:
    """Turn a random word into one number below each base: its digits in a mixed radix, lowest first.

    The word 47 with the bases 3, 4 and 5 gives 2, 3 and 3, because 47 = 2 + 3 * (3 + 4 * 3). Together they are
    within ``prod(bases) / 2**32`` of uniform, relatively: 1e-5 for an operation and a cell.
    """
    numbers = []
    for base in bases:
        numbers.append((word % jnp.uint32(base)).astype(jnp.int32))
        word = word // jnp.uint32(base)
    return numbers
