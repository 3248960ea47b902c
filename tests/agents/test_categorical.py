"""One choice among places with logits, of which some are forbidden."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.agents.policy import CategoricalSample, draw

ROWS = 8192
COUNTS = (1, 7, 63, 64, 67, 900)  # one by one, long rows that cut evenly, and a prime that does not

draw_all = jax.jit(draw)


def logits_and_mask(count, seed=0, scale=2.0):
    random = np.random.default_rng(seed)
    allowed = random.random(count) < 0.6
    allowed[random.integers(count)] = True
    return (scale * random.normal(size=count)).astype(np.float32), allowed


def masked(logits, allowed):
    return np.where(allowed, logits, np.float32(-1e9))


def probabilities(logits, allowed):
    weights = np.where(allowed, np.exp(logits.astype(np.float64) - logits[allowed].max()), 0)
    return weights / weights.sum()


def draw_many(chance, logits, allowed):
    spread = lambda x: jnp.broadcast_to(jnp.asarray(x), (len(chance), len(x)))
    return np.asarray(draw_all(jnp.asarray(chance), spread(masked(logits, allowed)), spread(allowed)))


@pytest.mark.parametrize("count", COUNTS)
def test_evenly_spread_chances_draw_each_place_as_often_as_its_probability(count):
    logits, allowed = logits_and_mask(count)
    chance = ((np.arange(ROWS) + 0.5) / ROWS).astype(np.float32)
    places = draw_many(chance, logits, allowed)
    assert allowed[places].all()
    frequency = np.bincount(places, minlength=count) / ROWS
    np.testing.assert_allclose(frequency, probabilities(logits, allowed), atol=2 / ROWS)


@pytest.mark.parametrize("count", [7, 900])
@pytest.mark.parametrize("scale", [0.0, 100.0, 1e4])
def test_a_forbidden_place_is_never_drawn_however_extreme_the_chance_and_the_logits(count, scale):
    chance = np.array([0.0, 1e-30, 0.5, 1 - 2**-23, 1.0], np.float32)  # the last but one is the largest that JAX draws
    for seed in range(8):
        logits, allowed = logits_and_mask(count, seed, scale)
        allowed[[0, -1]] = False
        allowed[count // 2] = True
        places = draw_many(chance, logits, allowed)
        assert allowed[places].all()
        assert (logits[places[:-1]] > logits[allowed].max() - 104).all()  # exp(-104) is 0 in float32


def choice_of(logits, allowed, place):
    return CategoricalSample.make(0, lambda number, x, mask: place, logits, allowed)


def batch(count, seeds, scale=2.0):
    rows = [logits_and_mask(count, seed, scale) for seed in range(seeds)]
    return tuple(np.stack(part) for part in zip(*rows, strict=True))


def test_log_probability_and_entropy_are_those_of_the_allowed_places():
    logits, allowed = batch(9, 5)
    place = np.argmax(allowed, axis=1).astype(np.int32)
    choice = jax.jit(choice_of)(logits, allowed, place)
    for row in range(5):
        chances = probabilities(logits[row], allowed[row])
        positive = chances[chances > 0]
        np.testing.assert_allclose(choice.log_prob[row], np.log(chances[place[row]]), rtol=1e-5)
        np.testing.assert_allclose(choice.entropy[row], -(positive * np.log(positive)).sum(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_gradients_are_finite_and_nothing_flows_to_forbidden_places(scale):
    logits, allowed = batch(9, 5, scale)
    place = np.argmax(allowed, axis=1).astype(np.int32)

    def total(logits):
        choice = choice_of(logits, allowed, place)
        return choice.log_prob.sum() + choice.entropy.sum()

    gradient = np.asarray(jax.jit(jax.grad(total))(logits))
    assert np.isfinite(gradient).all()
    assert not gradient[~allowed].any()


def test_the_gradient_is_that_of_the_textbook_formulas():
    logits, allowed = batch(9, 5)
    place = np.argmax(allowed, axis=1).astype(np.int32)

    def plainly(logits):
        log_probs = jax.nn.log_softmax(jnp.where(allowed, logits, -1e9), axis=-1)
        entropy = -(jnp.exp(log_probs) * jnp.where(allowed, log_probs, 0.0)).sum(axis=-1)
        return 2 * jnp.take_along_axis(log_probs, place[:, None], axis=-1).sum() + entropy.sum()

    def ours(logits):
        choice = choice_of(logits, allowed, place)
        return 2 * choice.log_prob.sum() + choice.entropy.sum()

    np.testing.assert_allclose(jax.grad(ours)(logits), jax.grad(plainly)(logits), rtol=1e-4, atol=1e-5)
