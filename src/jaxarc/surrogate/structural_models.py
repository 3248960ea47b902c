"""Structural models: one sampler of graphs, mechanisms and samples, and the two kinds of batches made of them.

The flow: :func:`sample_models` draws models and their samples. :func:`draw_parent_sets` labels each variable with the
exact posterior over its parent sets; :func:`draw_graphs` labels the samples with the graph that they were drawn from.
Given the samples that graph is a draw of the posterior, so the expected cross-entropy against it is the KL divergence
from the posterior, plus a constant. :func:`describe_samples` standardizes samples, those of a user too.
"""

from typing import Any, Final, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Float32, Float64

from jaxarc.config import StructuralModelConfig
from jaxarc.surrogate.batch import CHANNELS, GraphBatch, TrainingBatchJAX
from jaxarc.surrogate.columns import labels_of, read_flags, read_numbers
from jaxarc.surrogate.posterior import all_graphs, parent_posterior

_NUM_WAVES: Final = 4  # cosines of a nonlinear effect
_NOISE_OCTAVES: Final = 1.0  # noise of a variable is up to this power of two above or below noise_scale
_CONSTANT: Final = 1e-9  # a standard deviation below this share of the largest value is rounding


class StructuralSamples(NamedTuple):
    """N samples of each of M models over d variables, with their graphs."""

    values: Float64[np.ndarray, "M N d"]
    is_set: Bool[np.ndarray, "M N d"]  # by an intervention, so the value does not depend on the parents
    parents: Bool[np.ndarray, "M d d"]  # [j, i]: variable i is a parent of variable j


def sample_models(
    generator: np.random.Generator,
    num_models: int,
    config: StructuralModelConfig,
    graphs: Literal["listed", "random"],
    num_observational: int = 0,
) -> StructuralSamples:
    """Draw models and their samples from one of two priors.

    ``listed`` is the prior of the exact posterior: all acyclic graphs are equally likely, effects are linear, and the
    noise has the deviation ``noise_scale``.

    ``random`` takes any number of variables: an Erdos-Renyi graph with its edges along a random order of the variables,
    in which each pair has an edge with the chance that makes ``edges_per_variable * d`` edges expected. Of more than
    ``max_parents`` parents of a variable a random choice stays. Effects are those of ``mechanism``, and the deviation
    of a variable's noise is log-uniform from half to twice ``noise_scale``.

    Args:
        generator: of all draws.
        num_models: M.
        config: sizes and mechanisms.
        graphs: the prior.
        num_observational: of the models, those that come first, have no interventions.
    """
    draw = _draw_listed if graphs == "listed" else _draw_random
    return draw(generator, num_models, config, num_observational)


def draw_parent_sets(
    generator: np.random.Generator, num_models: int, config: StructuralModelConfig
) -> TrainingBatchJAX:
    """Draw a batch of ``num_models * d`` examples: each variable of each model is the target once.

    The channels of the data are a variable's value, whether it was set by an intervention, and whether it is the
    target. The accuracy of the expert, the exact posterior, is its probability of the true parent set. All batches have
    the same labels, ``X0 .. X4`` and all sets of up to ``max_parents`` others.

    Raises:
        ValueError: the config has more variables than all graphs can be listed of, or nonlinear mechanisms.
    """
    if config.mechanism != "linear":
        raise ValueError(
            f"the exact posterior is that of linear models, got mechanism={config.mechanism}; learn the edges of "
            "others with surrogate=graphs"
        )
    samples = sample_models(generator, num_models, config, "listed")
    posterior = parent_posterior(samples.values, samples.is_set, config)
    num_variables = config.num_variables
    parents = all_graphs(num_variables, config.max_parents).parents
    # [M, d, S]: of the S sets of a variable one has the members that the model's graph has, here by index.
    is_true = (parents == samples.parents[:, :, None]).all(axis=-1)
    # [M, target, N, d, 3]: the same samples for each target, and a mark in channel 2 at the target's own column.
    data = np.zeros((num_models, num_variables, config.num_samples, num_variables, CHANNELS), np.float32)
    data[..., 0] = samples.values[:, None]
    data[..., 1] = samples.is_set[:, None]
    data[..., 2] = np.eye(num_variables)[:, None]
    names = [f"X{variable}" for variable in range(num_variables)]
    sets = [[frozenset(np.array(names)[members].tolist()) for members in of_one] for of_one in parents]
    return TrainingBatchJAX(
        observational_data=data.reshape(-1, *data.shape[2:]),
        expert_probs=posterior.reshape(-1, posterior.shape[-1]),
        expert_accuracies=posterior[is_true],
        parent_sets=sets * num_models,
        variable_orders=[names] * (num_models * num_variables),
        target_variables=names * num_models,
    )


def draw_graphs(
    generator: np.random.Generator, num_models: int, config: StructuralModelConfig, num_observational: int = 0
) -> GraphBatch:
    """Draw described samples and the graphs that they are of; the arguments are those of :func:`sample_models`.

    Raises:
        ValueError: the config has one sample only, so that every variable is constant.
    """
    samples = sample_models(generator, num_models, config, "random", num_observational)
    data = describe_samples(samples.values, samples.is_set)
    return GraphBatch(jnp.asarray(data), jnp.asarray(samples.parents.swapaxes(1, 2)))


def _draw_listed(
    generator: np.random.Generator, num_models: int, config: StructuralModelConfig, num_observational: int
) -> StructuralSamples:
    graphs = all_graphs(config.num_variables, config.max_parents)
    graph = generator.integers(len(graphs.choice), size=num_models)
    # [M, d, d]: each variable picks its row of 0/1 by the set that the model's graph chose for it. Weights are drawn
    # for all pairs, and only those of parents stay.
    parents = graphs.parents[np.arange(config.num_variables), graphs.choice[graph]]
    weights = parents * generator.normal(0, config.weight_scale, parents.shape)
    is_set = _draw_interventions(generator, num_models, config, num_observational)
    noise = generator.normal(0, config.noise_scale, is_set.shape)
    # A value is its noise plus the weighted values of its parents. After round i all variables are final whose longest
    # path from a root has i edges: in X0 -> X1 -> X2 first X0, then X1, then X2. No path is longer than d.
    values = noise
    for _ in range(config.num_variables):
        values = noise + ~is_set * np.einsum("mnj,mij->mni", values, weights)
    return StructuralSamples(values, is_set, parents)


def _draw_random(
    generator: np.random.Generator, num_models: int, config: StructuralModelConfig, num_observational: int
) -> StructuralSamples:
    num_variables = config.num_variables
    num_samples = config.num_samples
    # Drawn in causal order: the parents of a variable are among those before it. The last step shuffles variables.
    has_parent = _draw_parents(generator, num_models, config)
    deviation = config.noise_scale * 2 ** generator.uniform(
        -_NOISE_OCTAVES, _NOISE_OCTAVES, (num_models, num_variables, 1)
    )
    values = deviation * generator.normal(0, 1, (num_models, num_variables, num_samples))
    is_set = _draw_interventions(generator, num_models, config, num_observational).swapaxes(1, 2)
    for child in range(num_variables):
        model, parent = np.nonzero(has_parent[:, child])
        effects = np.zeros((num_models, num_samples))
        # ``model`` may name a model twice, for two parents, so effects are added one by one.
        np.add.at(effects, model, _draw_effects(generator, values[model, parent], config))
        values[:, child] += ~is_set[:, child] * effects
    # The variable at place p of the order gets another name: [[2, 0, 1]] puts the third first.
    order = generator.permuted(np.tile(np.arange(num_variables), (num_models, 1)), axis=1)
    rows = np.arange(num_models)[:, None]
    parents = has_parent[rows[..., None], order[:, :, None], order[:, None]]
    return StructuralSamples(values[rows, order].swapaxes(1, 2), is_set[rows, order].swapaxes(1, 2), parents)


def _draw_interventions(
    generator: np.random.Generator, num_models: int, config: StructuralModelConfig, num_observational: int
) -> Bool[np.ndarray, "M N d"]:
    """Draw which value of a sample is set: at most one, of any variable."""
    shape = (num_models, config.num_samples)
    variable = generator.integers(config.num_variables, size=shape)
    happens = generator.random(shape) < config.intervention_share
    happens[:num_observational] = False
    return happens[..., None] & (variable[..., None] == np.arange(config.num_variables))


def _draw_parents(
    generator: np.random.Generator, num_models: int, config: StructuralModelConfig
) -> Bool[np.ndarray, "M d d"]:
    """Draw which variables before it (columns) are parents of each variable (row)."""
    num_variables = config.num_variables
    # d variables have d (d - 1) / 2 pairs, so an edge per variable is a chance of 2 / (d - 1).
    chance = min(1.0, 2 * config.edges_per_variable / (num_variables - 1))
    drawn = np.where(np.tri(num_variables, k=-1), generator.random((num_models, num_variables, num_variables)), 1.0)
    # Of the draws 0.1, 0.3 and 0.2 and two parents at most, the second smallest, 0.2, is the bound.
    bound = np.sort(drawn, axis=-1)[..., config.max_parents - 1, None]
    return (drawn < chance) & (drawn <= bound)


def _draw_effects(
    generator: np.random.Generator, values: Float64[np.ndarray, "E N"], config: StructuralModelConfig
) -> Float64[np.ndarray, "E N"]:
    """Draw what each of E parents adds to its child, in N samples."""
    num_edges = len(values)
    if config.mechanism == "linear":
        return generator.normal(0, config.weight_scale, (num_edges, 1)) * values
    # Random Fourier features (Rahimi and Recht 2007): with many waves this is a Gaussian process with an RBF kernel of
    # length noise_scale and the variance weight_scale**2. Four waves are smooth functions with one or two bends.
    shape = (num_edges, _NUM_WAVES, 1)
    amplitude = generator.normal(0, config.weight_scale * (2 / _NUM_WAVES) ** 0.5, shape)
    frequency = generator.normal(0, 1 / config.noise_scale, shape)
    phase = generator.uniform(0, 2 * np.pi, shape)
    return (amplitude * np.cos(frequency * values[:, None] + phase)).sum(axis=1)


def describe_samples(
    values: Float[np.ndarray, "*B N d"] | Any, is_set: Bool[np.ndarray, "*B N d"] | Any | None = None
) -> Float32[np.ndarray, "*B N d 3"]:
    """Describe samples as an :class:`EdgeScorer` reads them: standardized values, and where they are set.

    Each variable gets the mean 0 and the deviation 1. So neither its unit nor its variance says where it stands in the
    causal order (Reisach et al. 2021, https://arxiv.org/abs/2102.13647); its R² may (https://arxiv.org/abs/2303.18211).

    Args:
        values: N samples of d variables, an array or a data frame of d columns; see :func:`labels_of`.
        is_set: where a value is set by an intervention; nowhere by default. A data frame has the columns of values.

    Raises:
        TypeError: a value is no real number, or is missing.
        ValueError: shapes or columns do not fit, a value is hidden or not finite, or a variable is constant.
    """
    labels = labels_of(values)
    values = read_numbers(values, "values")
    if values.ndim < 2 or values.shape[-1] < 2 or 0 in values.shape:
        raise ValueError(f"values must have the shape (N, d) with d of at least 2, got {values.shape}")
    if (marked := labels_of(is_set)) not in (None, labels):
        raise ValueError(f"is_set must have the columns of values, {labels}, in their order, got {marked}")
    marks = np.zeros(values.shape, np.bool_) if is_set is None else read_flags(is_set, "is_set")
    if marks.shape != values.shape or marks.dtype != np.bool_:
        raise ValueError(f"is_set must be bool of the shape {values.shape} of values, got {marks.dtype}{marks.shape}")
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        place = f"row {where[0]}, column {labels[where[1]]!r}" if labels else where
        raise ValueError(f"values must be finite, got {values[where]} at {place}; leave such samples out")
    # Divided by the largest value, so that squares of very large values do not overflow.
    largest = np.abs(values).max(axis=-2, keepdims=True)
    values = values / np.where(largest > 0, largest, 1.0)
    deviation = values.std(axis=-2, keepdims=True)
    is_constant = deviation <= _CONSTANT
    if is_constant.any():
        variable = int(np.argwhere(is_constant)[0, -1])
        name = repr(labels[variable]) if labels else variable
        raise ValueError(
            f"variable {name} is constant over the {values.shape[-2]} samples; a constant says nothing of causes, "
            "so leave it out"
        )
    data = np.zeros((*values.shape, CHANNELS), np.float32)
    data[..., 0] = (values - values.mean(axis=-2, keepdims=True)) / deviation
    data[..., 1] = marks
    return data
