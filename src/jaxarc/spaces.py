"""Spaces of values, to sample from and to check values against."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Key

from jaxarc.prng import as_typed_key, mixed_radix_ints, random_bits


class Space(eqx.Module):
    """A set of values that can be drawn from."""

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""]) -> Any:
        """Draw one value uniformly."""

    @abc.abstractmethod
    def contains(self, value: Any) -> Bool[Array, ""]:
        """Whether the value is in the space: structure, shape, dtype and range."""


class Box(Space):
    """Arrays of one shape and dtype with entries in ``low .. high``, both included; -inf, inf without bounds.

    Drawn are whole numbers, or normally distributed ones where there are no bounds.
    """

    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)

    def sample(self, key: Key[Array, ""]) -> Array:
        if np.isinf(self.high):
            return jax.random.normal(as_typed_key(key), self.shape, self.dtype)
        low, high = int(self.low), int(self.high)
        return jax.random.randint(as_typed_key(key), self.shape, low, high + 1, jnp.int32).astype(self.dtype)

    def contains(self, value: Any) -> Bool[Array, ""]:
        if not isinstance(value, jax.Array | np.ndarray):
            return jnp.asarray(False)
        if value.shape != self.shape or value.dtype != np.dtype(self.dtype):
            return jnp.asarray(False)
        numbers = value.astype(jnp.int8) if value.dtype == jnp.bool_ else value
        return jnp.all((numbers >= self.low) & (numbers <= self.high))


class DiscreteSubset(Space):
    """One of a few listed integers, as int32."""

    values: tuple[int, ...] = eqx.field(static=True)

    @property
    def n(self) -> int:
        """How many values there are."""
        return len(self.values)

    def sample(self, key: Key[Array, ""]) -> Array:
        (index,) = mixed_radix_ints(random_bits(as_typed_key(key), 1)[0], [self.n])
        return self.at(index)

    def at(self, index: Int32[Array, ""]) -> Int32[Array, ""]:
        """Return the value at an index of the list."""
        return jnp.asarray(self.values, jnp.int32)[index]

    def contains(self, value: Any) -> Bool[Array, ""]:
        if not isinstance(value, jax.Array | np.ndarray) or value.shape != () or value.dtype != np.int32:
            return jnp.asarray(False)
        return jnp.any(jnp.asarray(self.values, jnp.int32) == value)


class Discrete(Space):
    """The integers ``0 .. n - 1``, as int32."""

    n: int = eqx.field(static=True)

    def sample(self, key: Key[Array, ""]) -> Array:
        return mixed_radix_ints(random_bits(as_typed_key(key), 1)[0], [self.n])[0]

    def contains(self, value: Any) -> Bool[Array, ""]:
        return Box(0, self.n - 1, (), jnp.int32).contains(value)


class Dict(Space):
    """A dictionary with one space per key."""

    entries: dict[str, Space]

    def sample(self, key: Key[Array, ""]) -> dict[str, Any]:
        keys = jax.random.split(as_typed_key(key), len(self.entries))
        return {name: space.sample(keys[i]) for i, (name, space) in enumerate(self.entries.items())}

    def contains(self, value: Any) -> Bool[Array, ""]:
        if not isinstance(value, dict) or set(value) != set(self.entries):
            return jnp.asarray(False)
        return jnp.all(jnp.stack([space.contains(value[name]) for name, space in self.entries.items()]))
