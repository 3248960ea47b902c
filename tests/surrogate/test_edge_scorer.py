"""The model of edges: its features, its symmetries, its loss, and that it learns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc.config import GraphsConfig, SurrogateConfig
from jaxarc.config.agent_training import LoggingConfig
from jaxarc.runs import CheckpointError, create_run_folder
from jaxarc.runs.folder import NotARunError
from jaxarc.surrogate import (
    EdgeScorer,
    StructuralModelConfig,
    SurrogateExperiment,
    SurrogateNetworkConfig,
    SurrogateTrainingConfig,
    create_jax_surrogate_train_step,
    draw_graphs,
    edge_loss,
    edge_probabilities,
    init_optimizer,
    make_surrogate_optimizer,
    make_task,
    train_surrogate,
)

pytestmark = pytest.mark.usefixtures("standard_promotion")

NETWORK = SurrogateNetworkConfig(latent_size=16, num_layers=1, num_heads=2)


@pytest.fixture(scope="module")
def model():
    return jax.jit(EdgeScorer, static_argnums=1)(jax.random.key(0), NETWORK)


@pytest.fixture
def samples():
    generator = np.random.default_rng(0)
    is_set = np.arange(4) == generator.integers(8, size=(60, 1))
    return generator.normal(size=(60, 4)) @ generator.normal(size=(4, 4)), is_set


def test_when_variables_change_places_so_do_their_edges(model, samples):
    values, is_set = samples
    order = np.array([2, 0, 3, 1])
    probs = edge_probabilities(model, values, is_set)
    moved = edge_probabilities(model, values[:, order], is_set[:, order])
    np.testing.assert_allclose(moved, probs[np.ix_(order, order)], atol=1e-4)
    assert not np.allclose(probs, probs.T, atol=1e-3)
    assert not np.diag(probs).any()


def test_neither_units_nor_the_order_of_samples_matter_and_interventions_do(model, samples):
    values, is_set = samples
    probs = edge_probabilities(model, values, is_set)
    np.testing.assert_allclose(edge_probabilities(model, values[::-1] * [1, 9, 0.1, 7], is_set[::-1]), probs, atol=1e-4)
    assert np.abs(edge_probabilities(model, values) - probs).max() > 1e-3


def test_more_variables_than_the_model_is_for_are_refused(model):
    samples = np.random.default_rng(0).normal(size=(5, 51))
    with pytest.raises(ValueError, match="at most 50 variables, got 51"):
        edge_probabilities(model, samples)


def test_the_loss_is_the_cross_entropy_of_pairs_and_ignores_the_diagonal():
    logits = np.array([[9.0, 1.0], [-2.0, -9.0]], np.float32)
    adjacency = np.array([[False, True], [False, False]])
    expected = (np.log1p(np.exp(-1.0)) + np.log1p(np.exp(-2.0))) / 2
    assert edge_loss(jnp.asarray(logits), jnp.asarray(adjacency)) == pytest.approx(expected, rel=1e-6)
    np.fill_diagonal(logits, 0.0)
    assert edge_loss(jnp.asarray(logits), jnp.asarray(adjacency)) == pytest.approx(expected, rel=1e-6)


def test_a_surrogate_learns_edges_that_it_has_not_seen():
    """Three variables; an ordered pair has an edge with the chance 0.35, an entropy of 0.65 nats."""
    config = StructuralModelConfig(3, edges_per_variable=0.7, num_samples=100, intervention_share=0.5, weight_scale=2.0)
    training = SurrogateTrainingConfig(num_steps=120, learning_rate=6e-3, warmup_steps=10)
    model = jax.jit(EdgeScorer, static_argnums=1)(jax.random.key(0), NETWORK)
    optimizer = make_surrogate_optimizer(training)
    state = init_optimizer(optimizer, model)
    step = create_jax_surrogate_train_step(model, optimizer, edge_loss, training)
    generator = np.random.default_rng(0)
    losses = []
    for _ in range(training.num_steps):
        model, state, metrics = step(model, state, draw_graphs(generator, 32, config))
        losses.append(metrics["total_loss"])
    assert losses[0] > 0.6
    assert np.mean(losses[-20:]) < 0.35


def test_the_model_of_a_run_is_loaded_from_its_folder(tmp_path):
    experiment = SurrogateExperiment(
        surrogate=SurrogateConfig(problem="graphs", steps_per_report=1),
        surrogate_network=SurrogateNetworkConfig(latent_size=4, num_layers=1, num_heads=1),
        surrogate_training=SurrogateTrainingConfig(num_steps=2, warmup_steps=1),
        structural_models=StructuralModelConfig(num_variables=3, max_parents=2, num_samples=20),
        graphs=GraphsConfig(models_per_batch=4, eval_models=4),
        logging=LoggingConfig(run_root=str(tmp_path)),
    )
    folder = create_run_folder(experiment)
    learned = train_surrogate(experiment, make_task(experiment), folder).state.model
    values = np.random.default_rng(0).normal(size=(20, 3))
    loaded = jaxarc.load_surrogate(str(folder.path), checkpoint="last")
    np.testing.assert_array_equal(edge_probabilities(loaded, values), edge_probabilities(learned, values))
    with pytest.raises(CheckpointError, match="load_surrogate"):
        jaxarc.load_agent(folder.path)
    with pytest.raises(CheckpointError, match="load_agent"):
        jaxarc.load_surrogate("ladder_l2_small")
    with pytest.raises(NotARunError, match="none"):
        jaxarc.load_surrogate(tmp_path / "none")
