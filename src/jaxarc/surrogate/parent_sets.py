"""Samples of linear structural models that are known.

All directed graphs without cycles over a few variables, as the parent set of each variable.

How likely each parent set is, exactly: a sum over all graphs.

Batches in which the expert is the exact posterior over parent sets.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int16, Int64

from jaxarc.config import StructuralModelConfig
from jaxarc.surrogate.batch import CHANNELS, TrainingBatchJAX


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


class Graphs(NamedTuple):
    """Every graph, each once."""

    parents: Bool[np.ndarray, "d S d"]  # of each variable its S parent sets, by size and then by place
    choice: Int16[np.ndarray, "G d"]  # which of its parent sets a variable has in each graph


@functools.lru_cache(maxsize=8)
def all_graphs(num_variables: int, max_parents: int) -> Graphs:
    """List the graphs of ``max_parents`` parents at most; without that bound 25, 543 and 29 281 of 3, 4 and 5."""
    parents = np.stack([_parent_sets(variable, num_variables, max_parents) for variable in range(num_variables)])
    num_sets = parents.shape[1]
    choice = np.indices((num_sets,) * num_variables, np.int16).reshape(num_variables, -1).T
    bits = (parents << np.arange(num_variables)).sum(axis=-1)
    wanted = np.stack([bits[variable, choice[:, variable]] for variable in range(num_variables)], axis=-1)
    return Graphs(parents, choice[_has_no_cycle(wanted)])


def _parent_sets(variable: int, num_variables: int, max_parents: int) -> Bool[np.ndarray, "S d"]:
    others = [other for other in range(num_variables) if other != variable]
    sets = [chosen for size in range(max_parents + 1) for chosen in itertools.combinations(others, size)]
    members = np.zeros((len(sets), num_variables), np.bool_)
    for place, chosen in enumerate(sets):
        members[place, list(chosen)] = True
    return members


def _has_no_cycle(wanted: np.ndarray) -> Bool[np.ndarray, " G"]:
    """Tell where all variables can be told one after the other, each after its parents, which are bits of a number."""
    num_variables = wanted.shape[1]
    told = np.zeros(len(wanted), wanted.dtype)
    for _ in range(num_variables):
        for variable in range(num_variables):
            told |= (wanted[:, variable] & ~told == 0).astype(wanted.dtype) << variable
    return told == (1 << num_variables) - 1


def parent_posterior(
    values: Float64[np.ndarray, "M N d"], is_set: Bool[np.ndarray, "M N d"], config: StructuralModelConfig
) -> Float64[np.ndarray, "M d S"]:
    """Return, of each variable, the probabilities of its parent sets in the order of :func:`all_graphs`.

    All graphs are alike likely before, weights and noise are normal as the config says. A graph is then as likely as
    the product over its variables of the likelihood of their samples given their parents' values, in which the
    weights are integrated out; samples in which a variable is set from outside say nothing about its parents.

    Args:
        values: N samples of each of M models.
        is_set: where a value comes from outside.
        config: the prior.
    """
    graphs = all_graphs(config.num_variables, config.max_parents)
    scores = local_scores(values, is_set, config)
    log_graph = sum(scores[:, variable, graphs.choice[:, variable]] for variable in range(config.num_variables))
    likelihood = np.exp(log_graph - np.max(log_graph, axis=1, keepdims=True))
    chances = likelihood.astype(np.float32) @ _membership(config.num_variables, config.max_parents)
    chances = chances.reshape(scores.shape).astype(np.float64)
    return chances / chances.sum(axis=-1, keepdims=True)


def local_scores(
    values: Float64[np.ndarray, "M N d"], is_set: Bool[np.ndarray, "M N d"], config: StructuralModelConfig
) -> Float64[np.ndarray, "M d S"]:
    """Return the log-likelihood of each variable's samples given each of its parent sets.

    Bayesian linear regression with known noise: only the sums of products of two variables matter.
    """
    parents = all_graphs(config.num_variables, config.max_parents).parents
    counts = ~is_set * 1.0
    products = np.einsum("mnj,mni,mnk->mjik", counts, values, values)  # over the samples that speak of variable j
    ridge = (config.noise_scale / config.weight_scale) ** 2
    both = parents[..., :, None] & parents[..., None, :]
    matrix = products[:, :, None] * both + ridge * np.eye(config.num_variables)
    with_target = np.einsum("mjij->mji", products)[:, :, None] * parents
    explained = (with_target * np.linalg.solve(matrix, with_target[..., None])[..., 0]).sum(axis=-1)
    squares = np.einsum("mjjj->mj", products)[..., None]
    log_volume = np.linalg.slogdet(matrix)[1] - config.num_variables * np.log(ridge)
    log_noise = counts.sum(axis=1)[..., None] * np.log(2 * np.pi * config.noise_scale**2)
    return -0.5 * (log_noise + log_volume + (squares - explained) / config.noise_scale**2)


@functools.lru_cache(maxsize=8)
def _membership(num_variables: int, max_parents: int) -> Float32[np.ndarray, "G d*S"]:
    graphs = all_graphs(num_variables, max_parents)
    member = graphs.choice[:, :, None] == np.arange(graphs.parents.shape[1])
    return member.reshape(len(member), -1).astype(np.float32)


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
