"""How likely each parent set is, exactly: a sum over all graphs."""

import functools

import numpy as np
from jaxtyping import Bool, Float32, Float64

from jaxarc.config.surrogate import StructuralModelConfig
from jaxarc.surrogate.graphs import all_graphs


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
