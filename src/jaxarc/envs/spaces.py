"""What actions and observations are made of: spaces to sample from and to check against."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Key, UInt32

from jaxarc.config import JaxArcConfig
from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.envs.operations.bits import num_bytes, unpack_cells
from jaxarc.envs.prng import below
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction


class Space(eqx.Module):
    """A set of values that can be drawn from."""

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""]) -> Any:
        """Draw one value uniformly."""

    @abc.abstractmethod
    def contains(self, value: Any) -> Bool[Array, ""]:
        """Whether the value lies in the space: structure, shape, dtype and range."""


class Box(Space):
    """Arrays of one shape and dtype whose entries lie in ``low .. high``, both included."""

    low: int = eqx.field(static=True)
    high: int = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)

    def sample(self, key: Key[Array, ""]) -> Array:
        return jax.random.randint(key, self.shape, self.low, self.high + 1, jnp.int32).astype(self.dtype)

    def contains(self, value: Any) -> Bool[Array, ""]:
        if not isinstance(value, jax.Array | np.ndarray):
            return jnp.asarray(False)
        if value.shape != self.shape or value.dtype != np.dtype(self.dtype):
            return jnp.asarray(False)
        return jnp.all((value >= self.low) & (value <= self.high))


class Choice(Space):
    """One of a few listed integers, as int32."""

    values: tuple[int, ...] = eqx.field(static=True)

    def sample(self, key: Key[Array, ""]) -> Array:
        return self.at(jax.random.bits(key, (), jnp.uint32))

    def at(self, word: UInt32[Array, ""]) -> Int32[Array, ""]:
        """Turn a random word into a value."""
        return jnp.asarray(self.values, jnp.int32)[below(word, jnp.int32(len(self.values)))]

    def contains(self, value: Any) -> Bool[Array, ""]:
        if not isinstance(value, jax.Array | np.ndarray) or value.shape != () or value.dtype != np.int32:
            return jnp.asarray(False)
        return jnp.any(jnp.asarray(self.values, jnp.int32) == value)


class Dict(Space):
    """A dictionary with one space per key."""

    entries: dict[str, Space]

    def sample(self, key: Key[Array, ""]) -> dict[str, Any]:
        keys = jax.random.split(key, len(self.entries))
        return {name: space.sample(keys[i]) for i, (name, space) in enumerate(self.entries.items())}

    def contains(self, value: Any) -> Bool[Array, ""]:
        if not isinstance(value, dict) or set(value) != set(self.entries):
            return jnp.asarray(False)
        return jnp.all(jnp.stack([space.contains(value[name]) for name, space in self.entries.items()]))


class ActionSpace(Space):
    """The legal actions of a config: a legal operation on a point, box or mask of the canvas."""

    operation: Choice
    selection_format: str = eqx.field(static=True)
    grid_shape: tuple[int, int] = eqx.field(static=True)

    def sample(self, key: Key[Array, ""]) -> StructuredAction:
        """Draw a legal operation and, independently, a uniform selection; a mask selects each cell with chance 1/2."""
        if self.selection_format == "mask":
            key_operation, key_cells = jax.random.split(key)
            return MaskAction(self.operation.sample(key_operation), _random_cells(key_cells, self.grid_shape))
        limits = self.grid_shape * (1 if self.selection_format == "point" else 2)
        words = jax.random.bits(key, (1 + len(limits),), jnp.uint32)  # one call of the generator for everything
        corners = [below(words[1 + i], jnp.int32(limit)) for i, limit in enumerate(limits)]
        kind = PointAction if self.selection_format == "point" else BboxAction
        return kind(self.operation.at(words[0]), *corners)

    def contains(self, value: Any) -> Bool[Array, ""]:
        fields = {
            "point": (PointAction, (("row", 0), ("col", 1))),
            "bbox": (BboxAction, (("r1", 0), ("c1", 1), ("r2", 0), ("c2", 1))),
            "mask": (MaskAction, ()),
        }
        kind, coordinates = fields[self.selection_format]
        if not isinstance(value, kind):
            return jnp.asarray(False)
        checks = [self.operation.contains(value.operation)]
        for name, axis in coordinates:
            limit = Box(0, self.grid_shape[axis] - 1, (), jnp.int32)
            checks.append(limit.contains(value.__dict__[name]))
        if isinstance(value, MaskAction):
            checks.append(jnp.asarray(value.selection.shape == self.grid_shape))
        return jnp.all(jnp.stack(checks))


def _random_cells(key: Key[Array, ""], grid_shape: tuple[int, int]) -> Bool[Array, "H W"]:
    """Each cell with chance 1/2: the bits of as few random bytes as it takes."""
    height, width = grid_shape
    cells = height * width
    words = jax.random.bits(key, (-(-cells // 32),), jnp.uint32)
    packed = jnp.concatenate([(words >> jnp.uint32(8 * i)).astype(jnp.uint8) for i in range(4)])
    return unpack_cells(packed[: num_bytes(cells)], cells).reshape(grid_shape)


def action_space(config: JaxArcConfig) -> ActionSpace:
    """The actions that the config allows."""
    return ActionSpace(Choice(config.legal_operations), config.action.selection_format, config.grid_shape)


def observation_space(config: JaxArcConfig) -> Space:
    """What :func:`jaxarc.envs.observations.observe` returns."""
    grid = Box(PADDING, NUM_COLORS - 1, config.grid_shape, jnp.int8)
    more: dict[str, Space] = {}
    if config.observation.reveal_target:
        more["target_grid"] = grid
    if config.observation.include_step_count:
        more["step_count"] = Box(0, config.environment.max_episode_steps, (), jnp.int32)
    return Dict({"working_grid": grid, **more}) if more else grid
