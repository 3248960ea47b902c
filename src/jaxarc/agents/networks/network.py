"""The interface of all networks of a policy: from its input to logits for the parts of an edit."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int8, Int32, Shaped

from jaxarc import constants as c
from jaxarc.agents.edits import Kind
from jaxarc.config import NetworkConfig


class PolicyInput(NamedTuple):
    """A batch of grids, their targets and the time."""

    working: Int8[Array, "B H W"]
    target: Int8[Array, "B H W"]
    time: Float32[Array, " B"]  # share of the episode's steps that are used, 0 .. 1

    @property
    def active(self) -> Bool[Array, "B HW"]:
        """True for the cells of the working grid."""
        return self.working.reshape(self.working.shape[0], -1) > c.PADDING


class Network(eqx.Module):
    """Logits for every part of an edit, and the value; abstract.

    The parts are asked for one after the other, with those before them. ``features`` is what :meth:`encode` returned.
    A network computes in the precision of its weights.
    """

    @abc.abstractmethod
    def encode(self, inputs: PolicyInput) -> Any:
        """Compute what the answers share."""

    @abc.abstractmethod
    def kind_logits(self, features: Any) -> Float[Array, "B K"]: ...

    @abc.abstractmethod
    def first_logits(self, features: Any, kind: Int32[Array, " B"]) -> Float[Array, "B HW"]:
        """Score each cell as the first corner of a box, or as the one cell."""

    @abc.abstractmethod
    def second_logits(self, features: Any, first: Int32[Array, " B"]) -> Float[Array, "B HW"]:
        """Score each cell as the corner opposite to the first."""

    @abc.abstractmethod
    def color_logits(
        self, features: Any, first: Int32[Array, " B"], second: Int32[Array, " B"]
    ) -> Float[Array, "B 10"]:
        """Score each color for the box between two corners."""

    @abc.abstractmethod
    def size_logits(self, features: Any) -> tuple[Float[Array, "B H"], Float[Array, "B W"]]:
        """Score each row as the last row of the resized grid, and each column as its last column."""

    @abc.abstractmethod
    def value(self, features: Any) -> Float[Array, " B"]:
        """Expect the discounted rewards from here on."""


def first_kind_logits(kinds: tuple[Kind, ...], config: NetworkConfig) -> Float32[np.ndarray, " K"]:
    """Return the logits of the kinds before anything is learned."""
    biases = {c.FILL: 0.0, c.RESIZE: config.resize_bias, c.SUBMIT: config.submit_bias}
    return np.array([biases.get(kind.operation, config.other_bias) for kind in kinds], np.float32)


def neighbors(grid: Shaped[Array, "B H W"], fill: int | bool) -> list[Shaped[Array, "B H W"]]:
    """Return the grid moved so that each cell sees its neighbor above, below, to the left, to the right.

    Cells at the edge see ``fill``. Of ``1 2`` over ``3 4`` the neighbors above are ``0 0`` over ``1 2``.
    """
    height, width = grid.shape[1:]
    padded = jnp.pad(grid, ((0, 0), (1, 1), (1, 1)), constant_values=fill)
    return [padded[:, y : y + height, x : x + width] for y, x in ((0, 1), (2, 1), (1, 0), (1, 2))]


def pick(values: Array, index: Int32[Array, " B"]) -> Array:
    """Return the value at one index of each row."""
    return jnp.take_along_axis(values, index[:, None], axis=1)[:, 0]


def one_hot(index: Int32[Array, "*B"], count: int) -> Float32[Array, "*B N"]:
    return jax.nn.one_hot(index, count, dtype=jnp.float32)
