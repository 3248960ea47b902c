"""Layers that work in the precision of their weights; sums of squares and exponentials are float32 all the same."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxarc.types import PRNGKey


class Affine(eqx.Module):
    """An affine map of the last axis."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, key: PRNGKey, inputs: int, outputs: int, gain: float = 1.0):
        self.weight = jax.random.normal(key, (inputs, outputs), jnp.float32) * (gain * inputs**-0.5)
        self.bias = jnp.zeros((outputs,), jnp.float32)

    def __call__(self, x: Float[Array, "*B inputs"]) -> Float[Array, "*B outputs"]:
        return x @ self.weight + self.bias.reshape(*[1] * (x.ndim - 1), -1)


class Perceptron(eqx.Module):
    """Two affine maps with a smooth rectifier in between."""

    hidden: Affine
    last: Affine

    def __init__(self, key: PRNGKey, inputs: int, hidden: int, outputs: int, last_gain: float = 1.0):
        key_hidden, key_last = jax.random.split(key)
        self.hidden = Affine(key_hidden, inputs, hidden, 2**0.5)
        self.last = Affine(key_last, hidden, outputs, last_gain)

    def __call__(self, x: Float[Array, "*B inputs"]) -> Float[Array, "*B outputs"]:
        return self.last(jax.nn.gelu(self.hidden(x)))


def normalize(x: Float[Array, "*B C"]) -> Float[Array, "*B C"]:
    """Scale the last axis to a mean square of 1."""
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt((wide * wide).mean(axis=-1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype)


def attend(
    queries: Float[Array, "*B n h c"], keys: Float[Array, "*B n h c"], values: Float[Array, "*B n h c"]
) -> Float[Array, "*B n h c"]:
    """Let each of n places look at all n, with h heads."""
    scores = jnp.einsum("...nhc,...mhc->...hnm", queries, keys, preferred_element_type=jnp.float32)
    shares = jax.nn.softmax(scores * queries.shape[-1] ** -0.5, axis=-1).astype(values.dtype)
    return jnp.einsum("...hnm,...mhc->...nhc", shares, values)
