"""Samples of linear structural models that are known."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from jaxarc.config.surrogate import StructuralModelConfig
from jaxarc.surrogate.graphs import all_graphs


class StructuralSamples(NamedTuple):
    """N samples of each of M models over d variables, and the truth."""

    values: Float64[np.ndarray, "M N d"]
    is_set: Bool[np.ndarray, "M N d"]  # from outside, so that the variable's parents had no say
    graph: Int64[np.ndarray, " M"]  # which of all_graphs
    weights: Float64[np.ndarray, "M d d"]  # from a variable (row) to its parents (column); 0 of others


def sample_models(generator: np.random.Generator, num_models: int, config: StructuralModelConfig) -> StructuralSamples:
    """Draw models and their samples from the prior that the config describes."""
    graphs = all_graphs(config.num_variables, config.max_parents)
    graph = generator.integers(len(graphs.choice), size=num_models)
    has_parent = graphs.parents[np.arange(config.num_variables), graphs.choice[graph]]
    weights = has_parent * generator.normal(0, config.weight_scale, has_parent.shape)
    shape = (num_models, config.num_samples, config.num_variables)
    variable = generator.integers(config.num_variables, size=shape[:2])[..., None]
    happens = generator.random((*shape[:2], 1)) < config.intervention_share
    is_set = happens & (variable == np.arange(config.num_variables))
    noise = generator.normal(0, config.noise_scale, shape)
    values = noise
    for _ in range(config.num_variables):  # no path is longer
        values = noise + ~is_set * np.einsum("mnj,mij->mni", values, weights)
    return StructuralSamples(values, is_set, graph, weights)
