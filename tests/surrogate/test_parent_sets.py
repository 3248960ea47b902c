import itertools

import jax
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from jaxarc.surrogate import (
    CandidateScorer,
    DataPrefetcher,
    StructuralModelConfig,
    SurrogateNetworkConfig,
    SurrogateTrainingConfig,
    create_jax_surrogate_train_step,
    draw_parent_sets,
    init_optimizer,
    kl_divergence_loss_jax,
    make_surrogate_optimizer,
)
from jaxarc.surrogate.posterior import all_graphs, local_scores, parent_posterior
from jaxarc.surrogate.structural_models import sample_models

THREE = StructuralModelConfig(num_variables=3, num_samples=8, weight_scale=1.5, noise_scale=0.7)
ASKED = THREE.replace(intervention_share=0.5)


@pytest.mark.parametrize(("num_variables", "count"), [(2, 3), (3, 25), (4, 543), (5, 29281)])
def test_all_graphs_without_cycles_are_listed(num_variables, count):
    graphs = all_graphs(num_variables, num_variables - 1)
    assert graphs.choice.shape == (count, num_variables)
    assert len(np.unique(graphs.choice, axis=0)) == count


@pytest.mark.parametrize("config", [THREE, ASKED], ids=["watched", "set from outside"])
def test_scores_are_the_likelihood_with_the_weights_integrated_out(config):
    samples = sample_models(np.random.default_rng(0), 2, config, "listed")
    scores = local_scores(samples.values, samples.is_set, config)
    parents = all_graphs(3, 2).parents
    for model, variable, place in itertools.product(range(2), range(3), range(4)):
        speaks = ~samples.is_set[model, :, variable]
        inputs = samples.values[model][speaks][:, parents[variable, place]]
        covariance = config.noise_scale**2 * np.eye(speaks.sum()) + config.weight_scale**2 * inputs @ inputs.T
        exact = multivariate_normal(cov=covariance).logpdf(samples.values[model, speaks, variable])
        assert scores[model, variable, place] == pytest.approx(exact, abs=1e-9)


def test_the_posterior_is_the_sum_over_graphs():
    samples = sample_models(np.random.default_rng(1), 3, THREE, "listed")
    scores, graphs = local_scores(samples.values, samples.is_set, THREE), all_graphs(3, 2)
    posterior = parent_posterior(samples.values, samples.is_set, THREE)
    for model, variable, place in itertools.product(range(3), range(3), range(4)):
        logs = [sum(scores[model, v, s] for v, s in enumerate(choice)) for choice in graphs.choice]
        chosen = [log for log, choice in zip(logs, graphs.choice, strict=True) if choice[variable] == place]
        assert posterior[model, variable, place] == pytest.approx(np.exp(logsumexp(chosen) - logsumexp(logs)), abs=1e-5)


@pytest.mark.parametrize("config", [THREE, ASKED], ids=["watched", "set from outside"])
def test_the_posterior_is_right_as_often_as_it_says(config):
    """Over draws from the prior, the mean probability of the truth is the mean sum of squares; a bias would show."""
    samples = sample_models(np.random.default_rng(2), 4000, config, "listed")
    posterior = parent_posterior(samples.values, samples.is_set, config)
    is_true = (all_graphs(3, 2).parents == samples.parents[:, :, None]).all(axis=-1)
    told = posterior[is_true].mean()
    assert told == pytest.approx((posterior**2).sum(axis=-1).mean(), abs=0.015)


def test_a_variable_that_is_always_set_tells_nothing_of_its_parents():
    samples = sample_models(np.random.default_rng(3), 5, THREE, "listed")
    scores = local_scores(samples.values, np.broadcast_to([True, False, False], samples.values.shape), THREE)
    np.testing.assert_allclose(scores[:, 0], 0, atol=1e-9)
    assert (np.ptp(scores[:, 1:], axis=-1) > 0.1).all()


def test_a_batch_has_every_variable_as_target():
    batch = draw_parent_sets(np.random.default_rng(0), 2, ASKED)
    assert batch.observational_data.shape == (6, 8, 3, 3)
    assert batch.expert_probs.shape == (6, 4)
    assert batch.target_variables == ("X0", "X1", "X2") * 2
    assert batch.parent_sets[1] == ((), ("X0",), ("X2",), ("X0", "X2"))
    data = np.asarray(batch.observational_data)
    assert np.array_equal(data[:3, 0, :, 2], np.eye(3))
    assert np.array_equal(data[0, ..., :2], data[2, ..., :2])
    assert set(np.unique(data[..., 1])) == {0, 1}


@pytest.mark.usefixtures("standard_promotion")
def test_a_surrogate_learns_the_exact_posterior():
    """Three variables in seconds; it starts 0.6 nats away, and every batch is new to it."""
    config = StructuralModelConfig(num_variables=3)
    training = SurrogateTrainingConfig(num_steps=250, learning_rate=6e-3)
    network = SurrogateNetworkConfig(latent_size=32, num_layers=2, num_heads=4)
    model = jax.jit(lambda key: CandidateScorer(key, network, num_features=1))(jax.random.key(0))
    optimizer = make_surrogate_optimizer(training)
    state, losses = init_optimizer(optimizer, model), []
    step = create_jax_surrogate_train_step(model, optimizer, kl_divergence_loss_jax, training)
    generator = np.random.default_rng(0)
    drawn = (draw_parent_sets(generator, 20, config) for _ in range(training.num_steps))
    with DataPrefetcher(drawn) as batches:
        for _ in range(training.num_steps):
            model, state, metrics = step(model, state, next(batches))
            losses.append(metrics["total_loss"])
    assert losses[0] > 0.5
    assert np.mean(losses[-50:]) < 0.05
