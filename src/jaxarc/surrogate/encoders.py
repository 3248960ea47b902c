"""The encoder of samples: from the data of an example to a grid of d x d pairs of variables with C features each."""

from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int32

from jaxarc.nn.layers import Dense, lecun_scale
from jaxarc.surrogate.batch import CHANNELS
from jaxarc.types import PRNGKey

_MOMENT_FEATURES: Final = CHANNELS**2 + 2 * CHANNELS + 4
_CURVES: Final = 3  # functions of a variable in the higher moments: x, x^2 and x |x|
_HIGHER_FEATURES: Final = 4 * _CURVES**2 + 4 * _CURVES + 1
_LONGEST_UNROLLED: Final = 8  # rows of a matrix to invert; more would take long to compile


class MomentEncoder(eqx.Module):
    """Encodes N samples of d variables as second moments: a grid of d x d pairs of variables, so R is d.

    The order of the samples does not matter, and when variables change places, so do their pairs. Moments are sums in
    float32. Features are squashed by sign(x) log(1 + |x|), since moments of unscaled variables may be large.

    Second moments hold all that samples of linear normal models say. ``higher`` adds moments of curves of the
    variables (:func:`higher_moments`), which also show nonlinear effects, and what interventions on one variable of a
    pair do to the other.
    """

    pair: Dense
    higher: bool = eqx.field(static=True)

    def __init__(self, key: PRNGKey, size: int, higher: bool = False):
        num_features = _MOMENT_FEATURES + higher * _HIGHER_FEATURES
        self.pair = Dense(key, num_features, size, lecun_scale(num_features))
        self.higher = higher

    def __call__(self, data: Float[Array, "N d 3"]) -> Float[Array, "d d C"]:
        samples = data.astype(jnp.float32)
        count, num_variables = samples.shape[:2]
        # Entry [i, j, a, b] is the mean over the samples of channel a of variable i times channel b of variable j.
        moments = jnp.einsum("nia,njb->ijab", samples, samples) / count
        means = samples.mean(axis=0)
        # Channel 0 has the values. Dividing by the root mean squares of both variables gives a
        # correlation about 0, and 1 on the diagonal.
        square = jnp.diagonal(moments[..., 0, 0]) + 1e-6
        scale = jax.lax.rsqrt(square)
        correlation = moments[..., 0, 0] * scale[:, None] * scale[None]
        # The inverse of the correlations, the precision matrix, holds the dependence of two variables given all
        # others: in a chain X -> Y -> Z, X and Z correlate, but their entry here is near 0.
        identity = jnp.eye(num_variables, dtype=jnp.float32)
        # The added identity / N keeps the matrix invertible where there are fewer samples than variables.
        precision = invert(correlation + identity / count)
        shape = (num_variables, num_variables, CHANNELS)
        log_square = jnp.broadcast_to(jnp.log(square)[None], identity.shape)
        # For each pair 9 moments, the 3 means of either variable, and 4 numbers from the correlations: [d, d, 19].
        features = [
            moments.reshape(num_variables, num_variables, -1),
            jnp.broadcast_to(means[:, None], shape),
            jnp.broadcast_to(means[None], shape),
            jnp.stack([correlation, precision, identity, log_square], -1),
        ]
        if self.higher:
            features += [partial_correlations(precision)[..., None], *higher_moments(samples)]
        return self.pair(_squash(jnp.concatenate(features, axis=-1)).astype(self.pair.weight.dtype))


def higher_moments(samples: Float32[Array, "N d 3"]) -> list[Float32[Array, "d d _"]]:
    """Return features of each pair from the curves x, x^2 and x |x| of each variable, centered and of deviation 1.

    Say y = x^2 + noise, x symmetric: x and y do not correlate, but x^2 and y do. In the other direction no curve of y
    determines x, so the correlations of (x^2, y) and (x, y^2) differ, and show which is the cause.
    """
    count, num_variables = samples.shape[:2]
    values = samples[..., 0]
    is_set = samples[..., 1]
    curves = jnp.stack([values, values**2, values * jnp.abs(values)], axis=-1)
    curves = curves - curves.mean(axis=0, keepdims=True)
    curves = (curves * jax.lax.rsqrt((curves**2).mean(axis=0, keepdims=True) + 1e-6)).reshape(count, -1)

    def by_pair(matrix: Float32[Array, "dK dK"]) -> Float32[Array, "d d K*K"]:
        # Rows and columns are (variable, curve): [d K, d K] -> [d, d, K K], all products of curves of a pair.
        blocks = matrix.reshape(num_variables, _CURVES, num_variables, _CURVES)
        return blocks.swapaxes(1, 2).reshape(num_variables, num_variables, -1)

    correlation = curves.T @ curves / count
    ridge = jnp.eye(num_variables * _CURVES, dtype=jnp.float32) / count
    precision = invert(correlation + ridge)
    # The sums over the samples in which the column's variable is set show what it causes: X -> Y correlate in them,
    # and Y -> X do not. Divided by the root of their number they have a deviation of about 1 without a cause.
    num_set = is_set.sum(axis=0)  # of samples, for each variable
    root = jax.lax.rsqrt(num_set + 1.0)
    set_curves = curves * jnp.repeat(is_set, _CURVES, axis=1)
    caused = by_pair(curves.T @ set_curves) * root[None, :, None]
    shifts = (curves.T @ is_set).reshape(num_variables, _CURVES, num_variables).swapaxes(1, 2) * root[None, :, None]
    log_diagonal = jnp.log(jnp.diagonal(precision)).reshape(num_variables, _CURVES)
    shape = (num_variables, num_variables, _CURVES)
    return [
        by_pair(correlation),
        by_pair(partial_correlations(precision)),
        *(caused, caused.swapaxes(0, 1)),
        *(shifts, shifts.swapaxes(0, 1)),
        *(jnp.broadcast_to(log_diagonal[:, None], shape), jnp.broadcast_to(log_diagonal[None], shape)),
    ]


def partial_correlations(precision: Float32[Array, "d d"]) -> Float32[Array, "d d"]:
    """Return the correlation of two variables given all others, up to its sign, from a precision matrix."""
    # [[4, 2], [2, 4]] becomes [[1, 1/2], [1/2, 1]].
    scale = jax.lax.rsqrt(jnp.diagonal(precision))
    return precision * scale[:, None] * scale[None]


def invert(matrix: Float32[Array, "d d"]) -> Float32[Array, "d d"]:
    """Invert a positive definite matrix by Gauss-Jordan elimination without pivots.

    ``jnp.linalg.inv`` calls LAPACK, which takes long to compile and to batch; this is d rank-one updates.
    For [[2, 1], [1, 2]] the first step makes [[1/2, 1/2], [-1/2, 3/2]], and the second [[2/3, -1/3], [-1/3, 2/3]].
    """

    # The pivot's row is divided by the pivot, and the others subtract so much of it that their entry in the pivot's
    # column would vanish. That column is free then, and takes the column of the inverse: 1 / pivot in the pivot's row.
    def eliminate(index: int | Int32[Array, ""], matrix: Float32[Array, "d d"]) -> Float32[Array, "d d"]:
        row = matrix[index].at[index].set(1.0) / matrix[index, index]
        column = matrix[:, index].at[index].set(0.0)
        return (matrix.at[:, index].set(0.0) - column[:, None] * row[None]).at[index].set(row)

    size = matrix.shape[0]
    if size > _LONGEST_UNROLLED:
        return jax.lax.fori_loop(0, size, eliminate, matrix)
    for index in range(size):
        matrix = eliminate(index, matrix)
    return matrix


def _squash(x: Float32[Array, "*B"]) -> Float32[Array, "*B"]:
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))
