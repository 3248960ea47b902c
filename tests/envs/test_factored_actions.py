"""Factor by factor, probabilities multiply to those of whole actions; what is masked has none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import constants as c
from jaxarc.envs import BboxAction, MaskAction, PointAction
from jaxarc.envs.factored_actions import ActionFactors, MaskedCategorical, independent
from jaxarc.testing import create_test_config

H, W = CANVAS = (2, 3)
LOGITS = jnp.array([0.5, -1.0, 2.0, 0.0])
MASK = jnp.array([True, False, True, True])
FACTORS = {name: ActionFactors(name, CANVAS) for name in ("point", "bbox")}
ANYTHING = lambda chosen: jnp.ones((1,), jnp.bool_)


def random_logits(selection_format, seed=0):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.normal(size=size), jnp.float32) for size in FACTORS[selection_format].sizes]


def random_masks(selection_format, seed=1):
    rng = np.random.default_rng(seed)
    masks = [rng.random(size) < 0.6 for size in FACTORS[selection_format].sizes]
    for mask in masks:
        mask[0] = True
    return independent([jnp.asarray(mask) for mask in masks])


# One factor.
def test_probabilities_are_the_softmax_over_the_allowed_places():
    places = MaskedCategorical(LOGITS, MASK)
    allowed = np.exp(np.array([0.5, 2.0, 0.0]))
    expected = np.insert(allowed / allowed.sum(), 1, 0.0)
    np.testing.assert_allclose(jnp.exp(places.log_probs), expected, rtol=1e-6)
    assert jnp.exp(places.log_prob(jnp.int32(1))) == 0
    probs = expected[[0, 2, 3]]
    np.testing.assert_allclose(places.entropy(), -(probs * np.log(probs)).sum(), rtol=1e-6)


def test_forbidden_places_are_never_drawn_and_others_as_often_as_they_should():
    places = MaskedCategorical(jnp.tile(LOGITS, (4000, 1)), jnp.tile(MASK, (4000, 1)))
    shares = np.bincount(places.sample(jax.random.key(2)), minlength=4) / 4000
    assert shares[1] == 0
    np.testing.assert_allclose(shares, jnp.exp(places.log_probs[0]), atol=0.03)
    assert (places.mode() == 2).all()


VALUES = {"log_prob": lambda places: places.log_prob(jnp.int32(2)), "entropy": lambda places: places.entropy()}


@pytest.mark.parametrize("forbidden_logit", [-1.0, 1e30, jnp.inf, jnp.nan])
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_gradients_are_finite_and_none_reaches_a_forbidden_place(forbidden_logit, value):
    logits = LOGITS.at[1].set(forbidden_logit)
    gradient = jax.grad(lambda logits: value(MaskedCategorical(logits, MASK)))(logits)
    assert np.isfinite(gradient).all()
    assert gradient[1] == 0
    assert np.abs(gradient).max() > 0.01


def test_single_allowed_place_is_certain():
    places = MaskedCategorical(jnp.array([3.0, -80.0]), jnp.array([False, True]))
    assert places.sample(jax.random.key(2)) == places.mode() == 1
    assert places.log_prob(jnp.int32(1)) == 0
    assert places.entropy() == 0


def test_half_precision_logits_give_single_precision_probabilities():
    places = MaskedCategorical(LOGITS.astype(jnp.bfloat16), MASK)
    assert places.log_probs.dtype == places.entropy().dtype == jnp.float32
    np.testing.assert_allclose(jnp.exp(places.log_probs).sum(), 1, rtol=1e-6)


def test_mask_that_forbids_everything_is_refused():
    with pytest.raises(ValueError, match="a mask forbids every choice; allow at least one"):
        MaskedCategorical(jnp.zeros((2, 3)), jnp.array([[True, False, False], [False, False, False]]))
    with pytest.raises(ValueError, match=r"one shape, got \(4,\) and \(3,\)"):
        MaskedCategorical(LOGITS, MASK[:3])


@pytest.mark.usefixtures("nans_allowed")
def test_mask_that_forbids_everything_shows_as_nan_inside_jit():
    evaluate = jax.jit(lambda mask: MaskedCategorical(LOGITS, mask).log_prob(jnp.int32(0)))
    assert jnp.isnan(evaluate(jnp.zeros(4, jnp.bool_)))


# Whole actions.
@pytest.mark.parametrize("selection_format", ["point", "bbox"])
def test_probabilities_of_all_actions_sum_to_one(selection_format):
    factors, logits, masks = FACTORS[selection_format], random_logits(selection_format), random_masks(selection_format)
    few = 2  # operations; the other forty are as likely as their logits say, whatever follows
    every = np.indices((few, *factors.sizes[1:])).reshape(len(factors.sizes), -1)
    kind = PointAction if selection_format == "point" else BboxAction
    tiled = independent([jnp.broadcast_to(part, (every.shape[1], part.shape[0])) for part in logits])
    decision = factors.evaluate(kind(*every), tiled, lambda chosen: masks(chosen)[None])
    share = jnp.exp(MaskedCategorical(logits[0], masks(())).log_probs)[:few].sum()
    np.testing.assert_allclose(jnp.exp(decision.log_prob).sum(), share, rtol=1e-5)


@pytest.mark.parametrize("selection_format", ["point", "bbox"])
def test_sampled_action_evaluates_to_what_sampling_said(selection_format):
    factors, masks = FACTORS[selection_format], random_masks(selection_format)
    logits = independent(random_logits(selection_format))
    drawn = factors.sample(jax.random.key(2), logits, masks)
    again = factors.evaluate(drawn.action, logits, masks)
    assert (drawn.log_prob, drawn.entropy) == (again.log_prob, again.entropy)
    assert np.isfinite(drawn.log_prob)
    best = factors.greedy(logits, masks)
    assert best.log_prob >= drawn.log_prob
    assert best.entropy == drawn.entropy


def test_independent_factors_have_the_sum_of_their_log_probs_and_entropies():
    logits, masks = random_logits("point"), random_masks("point")
    decision = FACTORS["point"].evaluate(PointAction(0, 0, 0), independent(logits), masks)
    parts = [MaskedCategorical(part, masks((0,) * place)) for place, part in enumerate(logits)]
    np.testing.assert_allclose(decision.log_prob, sum(part.log_probs[0] for part in parts), rtol=1e-6)
    np.testing.assert_allclose(decision.entropy, sum(part.entropy() for part in parts), rtol=1e-6)


def test_later_factors_know_the_earlier_ones():
    """Logits that copy the parity of the operation into the row, and the row into the column."""
    sizes = FACTORS["point"].sizes

    def next_logits(chosen):
        wanted = jnp.int32(7) if not chosen else chosen[-1] % 2
        return jnp.where(jnp.arange(sizes[len(chosen)]) == wanted, 50.0, 0.0)

    action = FACTORS["point"].sample(jax.random.key(2), next_logits, ANYTHING).action
    assert (action.operation, action.row, action.col) == (7, 1, 1)


def test_masks_know_the_earlier_factors():
    def next_mask(chosen):
        only = {0: c.SUBMIT, 1: 1, 2: 2, 3: 0, 4: 1}[len(chosen)]
        return jnp.arange(FACTORS["bbox"].sizes[len(chosen)]) == only

    logits = independent(random_logits("bbox"))
    decision = FACTORS["bbox"].sample(jax.random.key(2), logits, next_mask)
    assert decision.action == BboxAction(c.SUBMIT, 1, 2, 0, 1)
    assert decision.log_prob == decision.entropy == 0
    assert FACTORS["bbox"].evaluate(BboxAction(0, 1, 2, 0, 1), logits, next_mask).log_prob == -jnp.inf


def test_batches_and_vmap_give_each_row_its_own_decision():
    factors, logits = FACTORS["point"], random_logits("point")
    rows = [jnp.stack([part, part[::-1], -part]) for part in logits]
    every = lambda chosen: jnp.ones((1, 1), jnp.bool_)
    batch = factors.greedy(independent(rows), every)
    for i in range(3):
        one = factors.greedy(independent([part[i] for part in rows]), ANYTHING)
        assert jax.tree.map(lambda x, i=i: x[i], batch) == one
    mapped = jax.vmap(lambda rows: factors.greedy(independent(rows), ANYTHING))(rows)
    np.testing.assert_allclose(mapped.log_prob, batch.log_prob)


def test_factors_follow_the_config():
    assert ActionFactors.of(create_test_config(selection_format="point")).sizes == (42, 30, 30)
    assert ActionFactors.of(create_test_config(selection_format="bbox")).sizes == (42, 30, 30, 30, 30)
    with pytest.raises(ValueError, match="got 'mask'; a mask has one choice per cell"):
        ActionFactors.of(create_test_config(selection_format="mask"))


def test_logits_of_another_size_and_actions_of_another_format_are_refused():
    with pytest.raises(ValueError, match=r"factor 1 has 2 places, got logits of shape \(42,\)"):
        FACTORS["point"].greedy(lambda chosen: jnp.zeros(42), ANYTHING)
    with pytest.raises(TypeError, match="format 'point', got a MaskAction"):
        FACTORS["point"].evaluate(MaskAction(0, np.zeros(CANVAS, bool)), independent(random_logits("point")), ANYTHING)
