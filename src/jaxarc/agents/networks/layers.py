"""Affine layers of the last axis."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32

from jaxarc.types import PRNGKey


class Dense(eqx.Module):
    """An affine map of the last axis."""

    weight: Float32[Array, "inputs outputs"]
    bias: Float32[Array, " outputs"]

    def __init__(self, key: PRNGKey, inputs: int, outputs: int, scale: float | None = None):
        deviation = (2.0 / inputs) ** 0.5 if scale is None else scale
        self.weight = jax.random.normal(key, (inputs, outputs), jnp.float32) * deviation
        self.bias = jnp.zeros((outputs,), jnp.float32)

    def __call__(self, x: Float32[Array, "*B inputs"]) -> Float32[Array, "*B outputs"]:
        return x @ self.weight + self.bias.reshape(*[1] * (x.ndim - 1), -1)


class TwoLayers(eqx.Module):
    """Two affine maps with a rectifier in between; the last layer starts small, so a fresh head is nearly uniform."""

    hidden: Dense
    last: Dense

    def __init__(
        self,
        key: PRNGKey,
        sizes: tuple[int, int, int],
        scale: float | None = None,
        last_scale: float = 0.01,
    ):
        keys = jax.random.split(key)
        inputs, hidden, outputs = sizes
        self.hidden = Dense(keys[0], inputs, hidden, scale)
        self.last = Dense(keys[1], hidden, outputs, last_scale)

    def __call__(self, x: Float32[Array, "*B inputs"]) -> Float32[Array, "*B outputs"]:
        return self.last(jax.nn.relu(self.hidden(x)))
