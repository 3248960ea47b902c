"""Batches in which the expert is the exact posterior over parent sets."""

from collections.abc import Iterator

import numpy as np

from jaxarc.config.surrogate import StructuralModelConfig
from jaxarc.surrogate.batch import CHANNELS, TrainingBatchJAX
from jaxarc.surrogate.graphs import all_graphs
from jaxarc.surrogate.parent_posterior import parent_posterior
from jaxarc.surrogate.structural_models import sample_models


def parent_set_batches(seed: int, num_models: int, config: StructuralModelConfig) -> Iterator[TrainingBatchJAX]:
    """Draw batches without end, of ``num_models * d`` examples: each variable of each model is the target once.

    The channels of the data are a variable's value, whether it was set from outside, and whether it is the target.
    All batches have the same labels, ``X0 .. X4`` and all sets of up to ``max_parents`` others.
    """
    generator = np.random.default_rng(seed)
    while True:
        yield draw_parent_sets(generator, num_models, config)


def draw_parent_sets(
    generator: np.random.Generator, num_models: int, config: StructuralModelConfig
) -> TrainingBatchJAX:
    """Draw one batch of :func:`parent_set_batches`."""
    samples = sample_models(generator, num_models, config)
    posterior = parent_posterior(samples.values, samples.is_set, config)
    num_variables = config.num_variables
    data = np.zeros((num_models, num_variables, config.num_samples, num_variables, CHANNELS), np.float32)
    data[..., 0], data[..., 1] = samples.values[:, None], samples.is_set[:, None]
    data[..., 2] = np.eye(num_variables)[:, None]
    names = [f"X{variable}" for variable in range(num_variables)]
    parents = all_graphs(num_variables, config.max_parents).parents
    sets = [[frozenset(np.array(names)[members].tolist()) for members in of_one] for of_one in parents]
    return TrainingBatchJAX(
        observational_data=data.reshape(-1, *data.shape[2:]),
        expert_probs=posterior.reshape(-1, posterior.shape[-1]),
        expert_accuracies=np.ones(num_models * num_variables),
        parent_sets=sets * num_models,
        variable_orders=[names] * (num_models * num_variables),
        target_variables=names * num_models,
    )
