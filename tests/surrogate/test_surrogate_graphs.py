"""The task of learning graphs: its batches, and the accuracies of edges."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.config import GraphsConfig, StructuralModelConfig, SurrogateNetworkConfig
from jaxarc.surrogate import StructuralModelsTask
from jaxarc.surrogate.agreement import area_under_roc, edge_accuracy, graph_accuracy

pytestmark = pytest.mark.usefixtures("standard_promotion")

MODELS = StructuralModelConfig(num_variables=3, num_samples=10, intervention_share=0.5)
CONFIG = GraphsConfig(models_per_batch=4, eval_models=60)


def test_a_tie_counts_one_half():
    edges = np.array([True, True, False, False])
    assert area_under_roc(np.array([0.8, 0.5, 0.5, 0.1]), edges) == 3.5 / 4
    assert area_under_roc(np.array([0.8, 0.7, 0.6, 0.1]), edges) == 1
    assert area_under_roc(np.array([0.1, 0.2, 0.6, 0.9]), edges) == 0


def test_accuracies_of_a_worked_example():
    predicted = np.array([[0.8, 0.2, 0, 0, 0, 0], [0.0, 0.0, 0.4, 0.0, 0.0, 0.0]])
    edges = np.zeros((2, 6), bool)
    edges[0, 0] = True
    accuracy = edge_accuracy(predicted, edges)
    assert accuracy.auroc == 1  # the second model has no edge, and is left out of this mean alone
    assert accuracy.expected_shd == pytest.approx((0.4 + 0.4) / 2)
    assert accuracy.edge_accuracy == 1
    # Bins of 9, 1, 1 and 1 pairs, whose probabilities are wrong by 0, 0.2, 0.4 and 0.2.
    assert accuracy.calibration_error == pytest.approx(0.8 / 12)
    assert edge_accuracy(predicted[1:], edges[1:]).auroc is None


def test_the_diagonal_is_left_out_and_kinds_are_distinguished():
    adjacency = np.zeros((4, 3, 3), bool)
    adjacency[:, 0, 1] = True
    probs = np.where(adjacency, 1.0, 0.0)
    probs[3] = 1 - probs[3]
    probs[:, np.arange(3), np.arange(3)] = 0.7
    accuracy = graph_accuracy(probs, adjacency, num_observational=3)
    assert accuracy.by_samples["observational"][:4] == (3, 1.0, 0.0, 1.0)
    assert accuracy.by_samples["interventional"][:4] == (1, 0.0, 6.0, 0.0)
    assert accuracy.numbers() == {"auroc": 0.75, "expected_shd": 1.5, "edge_accuracy": 0.75, "calibration_error": 0.25}
    assert list(graph_accuracy(probs, adjacency, num_observational=4).by_samples) == ["observational"]


class Undecided(eqx.Module):
    """Gives every edge the probability one half."""

    def __call__(self, data):
        return jnp.zeros((data.shape[1],) * 2, jnp.float32)


def test_a_model_that_knows_nothing_is_measured_as_such():
    task = StructuralModelsTask("edges", CONFIG, MODELS, SurrogateNetworkConfig())
    accuracy = task.evaluate(Undecided())
    assert accuracy.overall.num_models == 60
    assert (accuracy.overall.auroc, accuracy.overall.expected_shd) == (0.5, 3.0)
    assert {name: each.num_models for name, each in accuracy.by_samples.items()} == {
        "observational": 30,
        "interventional": 30,
    }


def test_a_batch_depends_on_seed_and_step_alone_and_half_of_it_is_observational():
    task, again = (StructuralModelsTask("edges", CONFIG, MODELS, SurrogateNetworkConfig()) for _ in range(2))
    batch = task.batch(3, 7)
    assert np.array_equal(batch.data, again.batch(3, 7).data)
    for seed, step in ((3, 8), (4, 7)):
        assert not np.array_equal(batch.data, task.batch(seed, step).data)
    assert not np.array_equal(batch.data, task.held_out.data[:4])
    np.testing.assert_array_equal(np.asarray(batch.data)[..., 1].any(axis=(1, 2)), [False, False, True, True])
    plain = StructuralModelsTask("edges", CONFIG, MODELS.replace(intervention_share=0.0), SurrogateNetworkConfig())
    assert list(plain.evaluate(Undecided()).by_samples) == ["observational"]
