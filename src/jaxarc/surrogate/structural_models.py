"""Structural models of any size: draw random graphs with samples of them, and describe samples for a network.

The flow: :func:`draw_graphs` draws graphs, mechanisms and samples; :func:`describe_samples` standardizes samples, those
of a user too. No posterior is computed. The drawn graph is the label: given its samples it is a draw of the posterior,
so the expected cross-entropy against it is the KL divergence from the posterior, plus a constant.
"""

from typing import Final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Float64

from jaxarc.config import StructuralModelConfig
from jaxarc.surrogate.batch import CHANNELS

_NUM_WAVES: Final = 4  # cosines of a nonlinear effect
_NOISE_OCTAVES: Final = 1.0  # noise of a variable is up to this power of two above or below noise_scale
_CONSTANT: Final = 1e-9  # a standard deviation below this share of the largest value is rounding


class GraphBatch(eqx.Module):
    """B structural models over d variables: described samples, and the true graph."""

    data: Float32[Array, "B N d 3"]  # of describe_samples
    adjacency: Bool[Array, "B d d"]  # [i, j]: variable i is a parent of variable j


def draw_graphs(
    generator: np.random.Generator, num_models: int, config: StructuralModelConfig, num_observational: int = 0
) -> GraphBatch:
    """Draw graphs and samples of their models.

    A graph is an Erdos-Renyi graph with its edges along a random order of the variables: each pair has an edge with the
    chance that makes ``edges_per_variable * d`` edges expected. Of more than ``max_parents`` parents of a variable a
    random choice stays. The deviation of a variable's noise is log-uniform from half to twice ``noise_scale``.

    Args:
        generator: of all draws.
        num_models: B.
        config: sizes and mechanisms.
        num_observational: of the models, those that come first, have no interventions.

    Raises:
        ValueError: the config has one sample only, so that every variable is constant.
    """
    num_variables = config.num_variables
    num_samples = config.num_samples
    # Drawn in causal order: the parents of a variable are among those before it. The last step shuffles variables.
    has_parent = _draw_parents(generator, num_models, config)
    deviation = config.noise_scale * 2 ** generator.uniform(
        -_NOISE_OCTAVES, _NOISE_OCTAVES, (num_models, num_variables, 1)
    )
    noise = deviation * generator.normal(0, 1, (num_models, num_variables, num_samples))
    # At most one variable of a sample is set; d stands for none of them.
    variable = generator.integers(num_variables, size=(num_models, num_samples))
    happens = generator.random((num_models, num_samples)) < config.intervention_share
    happens[:num_observational] = False
    is_set = np.where(happens, variable, num_variables)[:, None] == np.arange(num_variables)[None, :, None]
    values = noise
    for child in range(num_variables):
        model, parent = np.nonzero(has_parent[:, child])
        effects = np.zeros((num_models, num_samples))
        # ``model`` may name a model twice, for two parents, so effects are added one by one.
        np.add.at(effects, model, _draw_effects(generator, values[model, parent], config))
        values[:, child] += ~is_set[:, child] * effects
    # The variable at place p of the order gets another name: [[2, 0, 1]] puts the third first.
    order = generator.permuted(np.tile(np.arange(num_variables), (num_models, 1)), axis=1)
    rows = np.arange(num_models)[:, None]
    children = has_parent[rows[..., None], order[:, :, None], order[:, None]]
    data = describe_samples(values[rows, order].swapaxes(1, 2), is_set[rows, order].swapaxes(1, 2))
    return GraphBatch(jnp.asarray(data), jnp.asarray(children.swapaxes(1, 2)))


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
    values: Float[np.ndarray, "*B N d"], is_set: Bool[np.ndarray, "*B N d"] | None = None
) -> Float32[np.ndarray, "*B N d 3"]:
    """Describe samples as an :class:`EdgeScorer` reads them: standardized values, and where they are set.

    Each variable gets the mean 0 and the deviation 1. So neither its unit nor its variance says where it stands in the
    causal order (Reisach et al. 2021, https://arxiv.org/abs/2102.13647).

    Args:
        values: N samples of d variables.
        is_set: where a value is set by an intervention; nowhere by default.

    Raises:
        TypeError: the values are no real numbers.
        ValueError: shapes do not fit, a value is not finite, or a variable is constant.
    """
    values = np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"values must be real numbers, got {values.dtype}")
    values = values.astype(np.float64)
    if values.ndim < 2 or values.shape[-1] < 2 or 0 in values.shape:
        raise ValueError(f"values must have the shape (N, d) with d of at least 2, got {values.shape}")
    marks = np.zeros(values.shape, np.bool_) if is_set is None else np.asarray(is_set)
    if marks.shape != values.shape or marks.dtype != np.bool_:
        raise ValueError(f"is_set must be bool of the shape {values.shape} of values, got {marks.dtype}{marks.shape}")
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"values must be finite, got {values[where]} at {where}; leave such samples out")
    # Divided by the largest value, so that squares of very large values do not overflow.
    largest = np.abs(values).max(axis=-2, keepdims=True)
    values = values / np.where(largest > 0, largest, 1.0)
    deviation = values.std(axis=-2, keepdims=True)
    is_constant = deviation <= _CONSTANT
    if is_constant.any():
        variable = int(np.argwhere(is_constant)[0, -1])
        raise ValueError(
            f"variable {variable} is constant over the {values.shape[-2]} samples; a constant says nothing of causes, "
            "so leave it out"
        )
    data = np.zeros((*values.shape, CHANNELS), np.float32)
    data[..., 0] = (values - values.mean(axis=-2, keepdims=True)) / deviation
    data[..., 1] = marks
    return data
