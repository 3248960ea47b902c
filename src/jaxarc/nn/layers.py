"""Layers of the last axis, in the precision of their weights.

A layer computes in bfloat16 where its weights were cast to bfloat16. Sums of squares and the softmax of the attention
are float32 all the same: a sum of 64 squares in bfloat16 has only about two correct digits.
"""

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxarc.types import PRNGKey

Activation: TypeAlias = Callable[[Float[Array, "*B"]], Float[Array, "*B"]]


class Dense(eqx.Module):
    """An affine map of the last axis, in the precision of the weights; the bias starts at 0."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, key: PRNGKey, inputs: int, outputs: int, scale: float | None = None):
        """Draw the weights.

        Args:
            key: random key.
            inputs: size of the last axis before.
            outputs: size of the last axis after.
            scale: standard deviation of the weights; ``sqrt(2 / inputs)`` (He et al. 2015) when left out.
        """
        deviation = (2.0 / inputs) ** 0.5 if scale is None else scale
        self.weight = jax.random.normal(key, (inputs, outputs), jnp.float32) * deviation
        self.bias = jnp.zeros((outputs,), jnp.float32)

    def __call__(self, x: Float[Array, "*B inputs"]) -> Float[Array, "*B outputs"]:
        # Rank promotion is an error in our tests, so the bias gets the axes of x: (outputs,) -> (1, .., 1, outputs).
        return x.astype(self.weight.dtype) @ self.weight + self.bias.reshape(*[1] * (x.ndim - 1), -1)


def relu(x: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return the positive part; unlike ``jax.nn.relu`` a module that holds this function can be pickled."""
    return jax.nn.relu(x)


class MLP(eqx.Module):
    """Two dense layers with an activation in between.

    The last layer starts small by default, so that the logits of a fresh head are nearly equal.
    """

    hidden: Dense
    last: Dense
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        key: PRNGKey,
        sizes: tuple[int, int, int],
        scale: float | None = None,
        last_scale: float = 0.01,
        activation: Activation = relu,
    ):
        """Draw the weights.

        Args:
            key: random key.
            sizes: inputs, hidden units and outputs.
            scale: of the first layer, see :class:`Dense`.
            last_scale: of the last layer.
            activation: of the hidden units.
        """
        key_hidden, key_last = jax.random.split(key)
        inputs, hidden, outputs = sizes
        self.hidden = Dense(key_hidden, inputs, hidden, scale)
        self.last = Dense(key_last, hidden, outputs, last_scale)
        self.activation = activation

    def __call__(self, x: Float[Array, "*B inputs"]) -> Float[Array, "*B outputs"]:
        return self.last(self.activation(self.hidden(x)))


def lecun_scale(inputs: int, gain: float = 1.0) -> float:
    """Return the standard deviation of weights that keeps the variance of the inputs, times ``gain``."""
    return gain * inputs**-0.5


def gelu_mlp(key: PRNGKey, sizes: tuple[int, int, int], last_gain: float = 1.0) -> MLP:
    """Make the perceptron of a transformer layer; ``last_gain`` scales its last layer."""
    inputs, hidden, _ = sizes
    return MLP(key, sizes, lecun_scale(inputs, 2**0.5), lecun_scale(hidden, last_gain), jax.nn.gelu)


def rms_norm(x: Float[Array, "*B C"]) -> Float[Array, "*B C"]:
    """Scale the last axis to a mean square of 1 (Zhang and Sennrich 2019), without a learned gain."""
    # (3, 4) has the mean square 12.5 and becomes (0.85, 1.13), whose mean square is 1.
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt((wide * wide).mean(axis=-1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype)


def attention(
    queries: Float[Array, "*B n h c"], keys: Float[Array, "*B n h c"], values: Float[Array, "*B n h c"]
) -> Float[Array, "*B n h c"]:
    """Return scaled dot-product attention of each of n positions to all n, with h heads of c channels."""
    # [n, h, c] x [m, h, c] -> [h, n, m], then a softmax over m. A product of c random numbers has a deviation of
    # sqrt(c), by which scores are divided: else the softmax would be nearly one-hot from the start.
    scores = jnp.einsum("...nhc,...mhc->...hnm", queries, keys, preferred_element_type=jnp.float32)
    shares = jax.nn.softmax(scores * queries.shape[-1] ** -0.5, axis=-1).astype(values.dtype)
    return jnp.einsum("...hnm,...mhc->...nhc", shares, values)
