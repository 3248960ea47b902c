import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax, rel_entr

from jaxarc.surrogate.losses import kl_divergence_loss_jax

GENERATOR = np.random.default_rng(0)
LOGITS = GENERATOR.normal(size=(4, 5)).astype(np.float32)
TARGET = GENERATOR.dirichlet(np.ones(5), 4).astype(np.float32)
loss_and_gradient = jax.jit(jax.value_and_grad(kl_divergence_loss_jax))


def exact(logits, target):
    return rel_entr(target, np.exp(log_softmax(logits, axis=-1))).sum(axis=-1)


def test_the_loss_is_the_divergence():
    loss, _ = loss_and_gradient(LOGITS, TARGET)
    assert loss == pytest.approx(exact(LOGITS, TARGET).mean(), rel=1e-5)


def test_the_loss_of_the_right_answer_is_0():
    loss, gradient = loss_and_gradient(jnp.log(TARGET), TARGET)
    assert abs(loss) < 1e-6
    assert np.abs(gradient).max() < 1e-6


@pytest.mark.parametrize("target", [np.eye(5, dtype=np.float32)[:4], np.zeros((4, 5), np.float32)])
@pytest.mark.parametrize("scale", [1, 1e4])
def test_gradients_are_finite_where_the_target_is_0(target, scale):
    loss, gradient = loss_and_gradient(np.float32(LOGITS * scale), target)
    assert np.isfinite(loss)
    assert np.isfinite(gradient).all()


def test_padding_changes_nothing():
    padded = np.concatenate([LOGITS, np.full((4, 3), 50, np.float32)], axis=1)
    target = np.pad(TARGET, ((0, 0), (0, 3)))
    mask = np.arange(8) < np.full((4, 1), 5)
    loss, gradient = loss_and_gradient(padded, target, mask)
    alone, gradient_alone = loss_and_gradient(LOGITS, TARGET)
    np.testing.assert_allclose(loss, alone, rtol=1e-6)
    np.testing.assert_allclose(gradient[:, :5], gradient_alone, atol=1e-7)
    assert not np.any(gradient[:, 5:])


def test_an_example_of_nothing_but_padding_is_finite():
    loss, gradient = loss_and_gradient(LOGITS, np.zeros_like(TARGET), np.zeros(TARGET.shape, np.bool_))
    assert loss == 0
    assert not np.any(gradient)


def test_weights_make_a_weighted_mean():
    weights = np.float32([1, 0, 0.5, 0])
    loss, gradient = loss_and_gradient(LOGITS, TARGET, None, weights)
    assert loss == pytest.approx(np.average(exact(LOGITS, TARGET), weights=weights), rel=1e-5)
    assert not np.any(gradient[1])
    assert loss_and_gradient(LOGITS, TARGET, None, np.zeros(4, np.float32))[0] == 0


def test_one_example_at_a_time_gives_the_same():
    each = [loss_and_gradient(logits, target)[0] for logits, target in zip(LOGITS, TARGET, strict=True)]
    np.testing.assert_allclose(jax.vmap(kl_divergence_loss_jax)(LOGITS, TARGET), each, rtol=1e-6)
