"""Random words: JAX's own bits where they are promised, fair bits elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.prng import (
    as_typed_key,
    fast_bits,
    from_key_data,
    keys_of_seeds,
    mixed_radix_ints,
    random_bits,
    split_words,
    threefry,
    to_index,
)


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_splitting_gives_the_words_of_jax(seed):
    key = jax.random.key(seed)
    np.testing.assert_array_equal(split_words(key, 7), jax.random.key_data(jax.random.split(key, 7)))


@pytest.mark.parametrize("seed", [0, 77])
def test_threefry_is_the_block_cipher_that_jax_folds_in_with(seed):
    key, counters = jax.random.key(seed), jnp.array([0, 1, 5, 2**32 - 1], jnp.uint32)
    folded = jax.vmap(lambda data: jax.random.key_data(jax.random.fold_in(key, data)))(counters)
    # fold_in encrypts the counter (0, data), as a split does.
    np.testing.assert_array_equal(jnp.stack(threefry(jax.random.key_data(key), counters), 1), folded)


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_keys_of_other_generators_become_different_keys_of_threefry(impl):
    keys = [jax.random.key(seed, impl=impl) for seed in range(3)]
    swapped = jnp.array([[0, 1, 0, 2], [0, 2, 0, 1]], jnp.uint32)
    keys += [jax.random.wrap_key_data(words, impl=impl) for words in swapped]
    typed = [as_typed_key(key) for key in keys]
    assert all(jax.random.key_impl(key) == "threefry2x32" for key in typed)
    assert len({tuple(jax.random.key_data(key).tolist()) for key in typed}) == len(keys)


def test_splitting_follows_the_way_in_which_jax_splits():
    key = jax.random.key(3)
    with jax.threefry_partitionable(False):
        np.testing.assert_array_equal(split_words(key, 4), jax.random.key_data(jax.random.split(key, 4)))
    np.testing.assert_array_equal(split_words(key, 4), jax.random.key_data(jax.random.split(key, 4)))


def test_a_key_that_is_stored_and_read_again_splits_as_before():
    """Stored words do not say which of the two generators of four words they are of."""
    for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
        key = as_typed_key(jax.random.key(5, impl=impl))
        read = from_key_data(jax.random.key_data(key))
        np.testing.assert_array_equal(split_words(key, 3), split_words(read, 3))


@pytest.mark.parametrize("draw", [random_bits, fast_bits])
def test_every_bit_is_fair_and_follows_no_other(draw):
    keys = jax.random.split(jax.random.key(0), 4096)
    words = np.asarray(jax.vmap(lambda key: draw(key, 6))(keys))
    bits = (words[..., None] >> np.arange(32, dtype=np.uint32)) & 1
    bits = bits.reshape(len(words), -1).astype(np.float64)
    assert np.abs(bits.mean(0) - 0.5).max() < 5 * 0.5 / np.sqrt(len(bits))  # five standard deviations
    correlation = np.corrcoef(bits.T)
    np.fill_diagonal(correlation, 0)
    assert np.abs(correlation).max() < 6 / np.sqrt(len(bits))
    assert len(np.unique(words, axis=0)) == len(words)


def test_digits_cover_every_combination_evenly():
    words = jax.random.bits(jax.random.key(1), (60_000,), jnp.uint32)
    first, second, third = (np.asarray(x) for x in mixed_radix_ints(words, [3, 4, 5]))
    counts = np.bincount(first + 3 * (second + 4 * third), minlength=60)
    assert counts.size == 60
    assert np.abs(counts - 1000).max() < 6 * np.sqrt(1000)


def test_the_keys_of_seeds_are_those_of_each():
    seeds = (0, 5, 2**31 - 1)
    expected = [jax.random.key_data(jax.random.key(seed)) for seed in seeds]
    np.testing.assert_array_equal(jax.random.key_data(keys_of_seeds(seeds)), expected)


def test_an_index_is_exact_for_tables_of_every_size():
    words = jax.random.bits(jax.random.key(2), (2000, 2), jnp.uint32)
    words = words.at[:4].set(jnp.array([[0, 0], [0, 2**32 - 1], [2**32 - 1, 0], [2**32 - 1, 2**32 - 1]], jnp.uint32))
    for count in (2**16 + 1, 100_000, 2**24 - 3, 2**31 - 1):
        found = jax.jit(jax.vmap(lambda words, count=count: to_index(words, jnp.int32(count), 2**31 - 1)))(words)
        expected = [((int(high) << 32 | int(low)) * count) >> 64 for high, low in words.tolist()]
        assert found.tolist() == expected


@pytest.mark.parametrize("count", [1, 7, 2**16])
def test_an_index_of_a_small_table_is_drawn_from_one_word(count):
    words = jax.random.bits(jax.random.key(3), (100, 2), jnp.uint32)
    expected = [(int(word) >> 16) * count >> 16 for word in words[:, 0]]
    for most in (count, 2**31 - 1):
        found = jax.vmap(lambda words, most=most: to_index(words, jnp.int32(count), most))(words)
        assert found.tolist() == expected
