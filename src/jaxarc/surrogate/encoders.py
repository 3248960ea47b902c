"""From data to a grid of cells: what a cell of an ARC grid, or a pair of variables, is told about itself."""

import abc
from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32

from jaxarc.config import SurrogateNetworkConfig
from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.nn.layers import Dense, lecun_scale
from jaxarc.surrogate.batch import CHANNELS
from jaxarc.types import PRNGKey

NUM_VALUES: Final = NUM_COLORS + 1  # the colors, and outside of the grid
_COLOR_FEATURES: Final = CHANNELS * NUM_VALUES + CHANNELS
_MOMENT_FEATURES: Final = CHANNELS**2 + 2 * CHANNELS + 4


class Reading(eqx.Module):
    """Turns the data of an example into a grid of R x d cells."""

    @abc.abstractmethod
    def __call__(self, data: Float[Array, "N d 3"]) -> Float[Array, "R d C"]: ...


class Colors(Reading):
    """Reads grids of colors, cell by cell: R is N, and a cell knows its place.

    The channels hold -1 (outside of the grid) and 0 .. 9; a cell is told each of the three, and which are equal.
    """

    cell: Dense
    rows: Float[Array, "N C"]
    columns: Float[Array, "d C"]

    def __init__(self, key: PRNGKey, size: int, grid_shape: tuple[int, int]):
        key_cell, key_rows, key_columns = jax.random.split(key, 3)
        self.cell = Dense(key_cell, _COLOR_FEATURES, size, lecun_scale(_COLOR_FEATURES, 2.0))
        self.rows = 0.1 * jax.random.normal(key_rows, (grid_shape[0], size), jnp.float32)
        self.columns = 0.1 * jax.random.normal(key_columns, (grid_shape[1], size), jnp.float32)

    def __call__(self, data: Float[Array, "N d 3"]) -> Float[Array, "N d C"]:
        colors = jnp.round(data).astype(jnp.int32) - PADDING
        told = jax.nn.one_hot(colors, NUM_VALUES, dtype=self.rows.dtype).reshape(*data.shape[:2], -1)
        equal = (colors == jnp.roll(colors, 1, axis=-1)).astype(self.rows.dtype)
        return self.cell(jnp.concatenate([told, equal], axis=-1)) + self.rows[:, None] + self.columns[None]


class Samples(Reading):
    """Reads N samples of d variables as their second moments: a grid of d x d pairs of variables, R is d.

    The order of the samples does not matter, and variables that change places take their pairs along. Moments are
    sums in float32, and large ones are told by their logarithm.
    """

    pair: Dense

    def __init__(self, key: PRNGKey, size: int):
        self.pair = Dense(key, _MOMENT_FEATURES, size, lecun_scale(_MOMENT_FEATURES))

    def __call__(self, data: Float[Array, "N d 3"]) -> Float[Array, "d d C"]:
        samples = data.astype(jnp.float32)
        count, num_variables = samples.shape[:2]
        moments = jnp.einsum("nia,njb->ijab", samples, samples) / count
        means = samples.mean(axis=0)
        square = jnp.diagonal(moments[..., 0, 0]) + 1e-6
        scale = jax.lax.rsqrt(square)
        correlation = moments[..., 0, 0] * scale[:, None] * scale[None]
        # What a variable still tells when all others are known: the inverse of the matrix of correlations.
        identity = jnp.eye(num_variables, dtype=jnp.float32)
        precision = _invert(correlation + identity / count)
        shape = (num_variables, num_variables, CHANNELS)
        features = [
            moments.reshape(num_variables, num_variables, -1),
            jnp.broadcast_to(means[:, None], shape),
            jnp.broadcast_to(means[None], shape),
            jnp.stack([correlation, precision, identity, jnp.broadcast_to(jnp.log(square)[None], identity.shape)], -1),
        ]
        return self.pair(_squash(jnp.concatenate(features, axis=-1)).astype(self.pair.weight.dtype))


def make_reading(key: PRNGKey, config: SurrogateNetworkConfig, grid_shape: tuple[int, int]) -> Reading:
    """Make the reading that the config names; ``grid_shape`` is (N, d), and samples take any."""
    if config.reading == "colors":
        return Colors(key, config.latent_size, grid_shape)
    return Samples(key, config.latent_size)


def _squash(x: Float32[Array, "*B"]) -> Float32[Array, "*B"]:
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


def _invert(matrix: Float32[Array, "d d"]) -> Float32[Array, "d d"]:
    """Invert a positive definite matrix by elimination without pivots: for a few variables it compiles in no time."""
    for place in range(matrix.shape[0]):
        row = matrix[place].at[place].set(1.0) / matrix[place, place]
        column = matrix[:, place].at[place].set(0.0)
        matrix = (matrix.at[:, place].set(0.0) - column[:, None] * row[None]).at[place].set(row)
    return matrix
