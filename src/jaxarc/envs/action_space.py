"""The actions of ARC as a space, and keys for each environment of a step."""

import functools
from collections.abc import Callable
from typing import Any, Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Key, UInt32

from jaxarc.compilation import with_axes_of_xla
from jaxarc.config import JaxArcConfig
from jaxarc.envs.canvas import unpack_columns
from jaxarc.envs.structured_actions import (
    ACTION_CLASSES,
    BboxAction,
    MaskAction,
    PointAction,
    StructuredAction,
)
from jaxarc.fusion import materialize
from jaxarc.primitives import choose_executor, native_call, with_batch_rule
from jaxarc.prng import THREEFRY, as_typed_key, fast_bits, from_key_data, mixed_radix_ints, random_bits
from jaxarc.spaces import Box, DiscreteSubset, Space

COORDINATES: Final = {  # selection format -> coordinates, each with its axis of the canvas
    "point": (("row", 0), ("col", 1)),
    "bbox": (("r1", 0), ("c1", 1), ("r2", 0), ("c2", 1)),
    "mask": (),
}


class ActionSpace(Space):
    """The legal actions of a config: a legal operation on a point, box or mask of the canvas."""

    operation: DiscreteSubset
    selection_format: str = eqx.field(static=True)
    grid_shape: tuple[int, int] = eqx.field(static=True)
    executor: str = eqx.field(static=True, default="xla")  # "native": the C++ library draws, the same actions

    def __repr__(self) -> str:
        height, width = self.grid_shape
        return f"ActionSpace({self.selection_format!r}, {self.operation.n} operations on {height}x{width})"

    def sample(self, key: Key[Array, ""]) -> StructuredAction:
        """Draw a legal operation and, independently, a uniform selection; a mask selects each cell with chance 1/2."""
        if choose_executor(self.executor) == "native":
            draw = lambda key: _sampler(self)(jax.random.key_data(as_typed_key(key)), ())
        else:
            draw = lambda key: self.sample_in_xla(as_typed_key(key))
        return with_axes_of_xla(draw)(key)

    def sample_in_xla(self, key: Key[Array, ""]) -> StructuredAction:
        """Draw as :meth:`sample` does, without the C++ library."""
        height, width = self.grid_shape
        if self.selection_format == "mask":
            # The bits of W words are the H cells of each column: one fair bit for a cell, instead of a random number.
            (index,) = mixed_radix_ints(random_bits(key, 3)[2], [self.operation.n])
            cells = unpack_columns(materialize(fast_bits(key, width)), self.grid_shape)
            return MaskAction(self.operation.at(index), cells.reshape(self.grid_shape))
        # One word gives the operation and a corner, as digits of a mixed radix; a box takes a second word for its other
        # corner.
        words = random_bits(key, 2)
        index, *corner = mixed_radix_ints(words[0], [self.operation.n, height, width])
        operation = self.operation.at(index)
        if self.selection_format == "point":
            return PointAction(operation, *corner)
        return BboxAction(operation, *corner, *mixed_radix_ints(words[1], [height, width]))

    def contains(self, value: Any) -> Bool[Array, ""]:
        if not isinstance(value, ACTION_CLASSES[self.selection_format]):
            return jnp.asarray(False)
        checks = [self.operation.contains(value.operation)]
        # Each coordinate is bounded by the side of its axis: rows, axis 0, by H, and columns, axis 1, by W.
        for name, axis in COORDINATES[self.selection_format]:
            limit = Box(0, self.grid_shape[axis] - 1, (), jnp.int32)
            checks.append(limit.contains(value.__dict__[name]))
        if isinstance(value, MaskAction):
            checks.append(jnp.asarray(value.selection.shape == self.grid_shape))
        return jnp.all(jnp.stack(checks))


def action_space(config: JaxArcConfig) -> ActionSpace:
    """The actions that the config allows."""
    legal = DiscreteSubset(config.legal_operations)
    return ActionSpace(legal, config.action.selection_format, config.grid_shape, config.environment.executor)


@functools.cache
def _sampler(space: ActionSpace) -> Callable[[UInt32[Array, " 2"], tuple[()]], StructuredAction]:
    """Return a function that draws by the C++ library, for a batch of keys in one call."""
    height, width = space.grid_shape
    is_mask = space.selection_format == "mask"

    # The operations, behind a number that makes them no range, which XLA would count out in each step.
    operations = np.array([-1, *space.operation.values], np.int32)

    def in_xla(words: UInt32[Array, "B 2"], *_: Array) -> list[Array]:
        actions = jax.vmap(lambda words: space.sample_in_xla(from_key_data(words)))(words)
        return [leaf if leaf.ndim == 1 else leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(actions)]

    def draw(words: UInt32[Array, "B 2"], _: tuple[()]) -> StructuredAction:
        batch = words.shape[0]
        number = (1, (batch,))  # of the type of the operations
        arguments = (words, jnp.asarray(operations))
        if is_mask:
            cells = jnp.zeros((1, 1), jnp.bool_)
            like = (number, (2, (batch, height * width)))
            operation, cells = native_call("sample_masks", (height, width), (*arguments, cells), like, 0, in_xla)
            return MaskAction(operation, cells.reshape(batch, height, width))
        is_box = space.selection_format == "bbox"
        like = (number,) * (5 if is_box else 3)
        drawn = native_call("sample_corners", (height, width, is_box), arguments, like, 0, in_xla)
        return BboxAction(*drawn) if is_box else PointAction(*drawn)

    return with_batch_rule(draw)


def fold_in_each(key: Key[Array, ""], index: Int32[Array, " B"], executor: str) -> Key[Array, " B"]:
    """Return ``jax.random.fold_in(key, i)`` for each index: a key for each environment of a step.

    JAX runs the rounds of the cipher as a loop, which takes a microsecond on a CPU, however few the keys.

    Args:
        key: a key.
        index: of each key, 0 or more; ``arange(B)`` gives the keys of ``jax.random.split(key, B)``.
        executor: ``"native"`` or ``"auto"``: the C++ library does it where it can, the same keys.
    """
    key = as_typed_key(key)
    if choose_executor(executor) != "native":
        return jax.vmap(jax.random.fold_in, (None, 0))(key, index)
    words = jax.random.key_data(key).reshape(1, 2)
    like = (0, (index.shape[0], 2))
    (folded,) = native_call("fold_in", (), (words, index), (like,), 0, _fold_in_xla)
    return jax.random.wrap_key_data(folded, impl=THREEFRY)


def _fold_in_xla(words: UInt32[Array, "1 2"], index: Int32[Array, " B"]) -> list[Array]:
    keys = jax.vmap(jax.random.fold_in, (None, 0))(from_key_data(words[0]), index)
    return [jax.random.key_data(keys)]
