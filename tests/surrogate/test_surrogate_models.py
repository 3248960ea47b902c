import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.nn.layers import cast_floats
from jaxarc.profiling import compiled_memory
from jaxarc.surrogate import (
    CandidateScorer,
    CandidateSet,
    SurrogateNetworkConfig,
    SurrogateTrainingConfig,
    surrogate_learning_rate,
)
from jaxarc.surrogate.encoders import MomentEncoder
from jaxarc.surrogate.trunk import Trunk

SIDE, K, FEATURES = 4, 6, 3
SMALL = SurrogateNetworkConfig(latent_size=8, num_layers=2, num_heads=2)
GENERATOR = np.random.default_rng(0)
score = jax.jit(lambda model, data, candidates: model(data, candidates))


@pytest.fixture(scope="module")
def set_scorer():
    return jax.jit(lambda key: CandidateScorer(key, SMALL, FEATURES))(jax.random.key(0))


def candidates(num_rows=SIDE):
    rows, columns = GENERATOR.integers(0, 2, (K, num_rows)), GENERATOR.integers(0, 2, (K, SIDE))
    features = GENERATOR.normal(size=(K, FEATURES))
    return CandidateSet(*(jnp.asarray(x, jnp.float32) for x in (rows, columns, features)), jnp.ones(K, jnp.bool_))


def samples():
    return jnp.asarray(GENERATOR.normal(size=(9, SIDE, 3)), jnp.float32)


def test_logits_change_places_with_their_candidates(set_scorer):
    data, given, order = samples(), candidates(), GENERATOR.permutation(K)
    logits = score(set_scorer, data, given)
    assert logits.shape == (K,)
    assert np.ptp(logits) > 0
    turned = score(set_scorer, data, jax.tree.map(lambda x: x[order], given))
    np.testing.assert_allclose(turned, logits[order], atol=1e-5)


def test_samples_have_no_order_and_variables_no_names(set_scorer):
    data, given = samples(), candidates()
    logits = score(set_scorer, data, given)
    np.testing.assert_allclose(score(set_scorer, data[::-1], given), logits, atol=1e-5)
    order = GENERATOR.permutation(SIDE)
    renamed = eqx.tree_at(lambda c: (c.rows, c.columns), given, (given.rows[:, order], given.columns[:, order]))
    np.testing.assert_allclose(score(set_scorer, data[:, order], renamed), logits, atol=1e-4)


def test_an_empty_region_is_finite(set_scorer):
    empty = eqx.tree_at(lambda c: c.rows, candidates(), jnp.zeros((K, SIDE), jnp.float32))
    gradient = jax.jit(jax.grad(lambda model: score(model, samples(), empty).sum()))(set_scorer)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_a_bfloat16_model_multiplies_in_bfloat16(set_scorer):
    half, data, given = jnp.bfloat16, samples(), candidates()
    low = (cast_floats(set_scorer, half), data, cast_floats(given, half))
    text = str(jax.make_jaxpr(lambda model, data, given: model(data, given))(*low))
    assert "bf16[8,24]" in text  # the weights of attention
    logits = score(*low)
    assert logits.dtype == half
    np.testing.assert_allclose(logits.astype(jnp.float32), score(set_scorer, data, given), atol=0.05)


def test_variables_that_never_change_are_finite():
    encoder = MomentEncoder(jax.random.key(0), 8)
    assert np.isfinite(encoder(jnp.zeros((5, 3, 3), jnp.float32))).all()


def trunk_gradient(remat_every):
    config = SurrogateNetworkConfig(latent_size=16, num_layers=32, num_heads=2, remat_every=remat_every)
    trunk = jax.jit(lambda key: Trunk.create(key, config))(jax.random.key(0))
    cells = jax.random.normal(jax.random.key(1), (16, 8, 8, 16), jnp.float32)
    gradient = jax.jit(jax.grad(lambda trunk, cells: (jax.vmap(trunk)(cells) ** 2).sum()))
    return gradient.lower(trunk, cells).compile(), trunk, cells


def test_recomputing_saves_memory_and_changes_nothing():
    plain, trunk, cells = trunk_gradient(0)
    sparing, same_trunk, _ = trunk_gradient(1)
    before, after = compiled_memory(plain).temp_bytes, compiled_memory(sparing).temp_bytes
    assert before > 5 * after
    gradients = jax.tree.leaves(sparing(same_trunk, cells)), jax.tree.leaves(plain(trunk, cells))
    for ours, theirs in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_learning_rates_rise_and_fall():
    for decay in ("linear", "cosine"):
        rate = surrogate_learning_rate(SurrogateTrainingConfig(decay=decay, num_steps=100, warmup_steps=10))
        assert [float(rate(step)) for step in (0, 10, 100)] == pytest.approx([0, 2e-3, 2e-5], abs=1e-8)
        assert float(rate(5)) == pytest.approx(1e-3)
    constant = surrogate_learning_rate(SurrogateTrainingConfig(decay="constant", warmup_steps=0))
    assert float(constant(7)) == float(constant(900)) == pytest.approx(2e-3)
