"""Random graphs, and samples that follow them."""

import numpy as np
import pytest

from jaxarc.surrogate import StructuralModelConfig, describe_samples, draw_graphs

TEN = StructuralModelConfig(num_variables=10, max_parents=9, num_samples=30, intervention_share=0.5)
PAIR = StructuralModelConfig(
    num_variables=2, max_parents=1, edges_per_variable=1.0, num_samples=4000, weight_scale=100.0, intervention_share=0.5
)


def generator(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("mechanism", ["linear", "nonlinear"])
def test_graphs_have_no_cycle_and_as_many_edges_as_expected(mechanism):
    adjacency = np.asarray(draw_graphs(generator(), 400, TEN.replace(mechanism=mechanism)).adjacency)
    assert not np.linalg.matrix_power(adjacency.astype(np.int64), 10).any()
    assert adjacency.sum(axis=(1, 2)).mean() == pytest.approx(15, abs=0.5)
    # Names say nothing: each ordered pair has an edge about as often as any other.
    shares = adjacency.mean(axis=0)[~np.eye(10, dtype=bool)]
    assert shares.max() - shares.min() < 0.15


def test_a_variable_has_at_most_max_parents():
    adjacency = np.asarray(draw_graphs(generator(), 100, TEN.replace(edges_per_variable=4.5, max_parents=2)).adjacency)
    assert adjacency.sum(axis=1).max() == 2
    assert adjacency.sum(axis=2).max() > 2


def test_at_most_one_variable_of_a_sample_is_set_and_none_of_the_observational_models():
    is_set = np.asarray(draw_graphs(generator(), 20, TEN, num_observational=8).data)[..., 1]
    assert not is_set[:8].any()
    assert set(np.unique(is_set[8:].sum(axis=-1))) == {0, 1}
    assert is_set[8:].mean() == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("mechanism", ["linear", "nonlinear"])
def test_an_intervention_cuts_a_variable_from_its_parents_and_not_from_its_children(mechanism):
    batch = draw_graphs(generator(), 20, PAIR.replace(mechanism=mechanism))
    cut, kept = [], []
    for data, adjacency in zip(np.asarray(batch.data), np.asarray(batch.adjacency), strict=True):
        ((parent, child),) = np.argwhere(adjacency)
        for variable, found in ((child, cut), (parent, kept)):
            is_set = data[:, variable, 1] > 0
            found.append(roughness(data[is_set, parent, 0], data[is_set, child, 0]))
    # Sorted by the parent, the child jumps about where it is set, and is a smooth curve where it is not.
    assert np.median(cut) > 0.9
    assert np.median(kept) < 0.05


def roughness(x, y):
    """The mean square of steps between neighbors, over that of independent values."""
    steps = np.diff(y[np.argsort(x)])
    return (steps**2).mean() / (2 * y.var())


def test_samples_are_standardized():
    data = np.asarray(draw_graphs(generator(), 5, TEN).data)
    np.testing.assert_allclose(data[..., 0].mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(data[..., 0].std(axis=1), 1, atol=1e-5)
    values = generator().normal(3, 2, (50, 4))
    np.testing.assert_array_equal(describe_samples(values), describe_samples(1000 * values.astype(np.float64)))
