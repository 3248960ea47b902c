"""A model of the environment: what a grid becomes after an action, and what that pays."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxarc.config.surrogate import SurrogateNetworkConfig
from jaxarc.nn.layers import MLP, Dense, gelu_mlp, lecun_scale
from jaxarc.surrogate.candidates import CandidateSet
from jaxarc.surrogate.reading import NUM_VALUES, Colors
from jaxarc.surrogate.trunk import Trunk
from jaxarc.types import PRNGKey


class Transition(NamedTuple):
    """What a model expects of a step."""

    grid_logits: Float[Array, "N d 11"]  # of -1 (outside of the grid) and the colors 0 .. 9
    reward: Float[Array, ""]


class TransitionModel(eqx.Module):
    """Predicts the next grid and the reward of one action; ``jax.vmap`` does a batch.

    The action is a :class:`CandidateSet` without its axis k: a box, and features such as the operation. The model
    learns what a step changes: without it, a cell keeps its color.
    """

    reading: Colors
    inside: Dense  # from the action's features to what a cell in its box is told
    outside: Dense  # and every cell
    trunk: Trunk
    color: MLP
    reward: MLP

    def __init__(self, key: PRNGKey, config: SurrogateNetworkConfig, num_features: int, grid_shape: tuple[int, int]):
        keys, size = jax.random.split(key, 6), config.latent_size
        self.reading = Colors(keys[0], size, grid_shape)
        self.inside = Dense(keys[1], num_features, size, lecun_scale(num_features, 2.0))
        self.outside = Dense(keys[2], num_features, size, lecun_scale(num_features))
        self.trunk = Trunk.create(keys[3], config)
        self.color = gelu_mlp(keys[4], (size, size, NUM_VALUES), 0.1)
        self.reward = gelu_mlp(keys[5], (size, size, 1), 0.1)

    def __call__(self, data: Float[Array, "N d 3"], action: CandidateSet) -> Transition:
        box = action.rows[:, None] * action.columns[None]
        told = box[..., None] * self.inside(action.features)[None, None] + self.outside(action.features)[None, None]
        cells = self.trunk(self.reading(data) + told)
        kept = jax.nn.one_hot(jnp.round(data[..., 0]).astype(jnp.int32) + 1, NUM_VALUES, dtype=cells.dtype)
        return Transition(self.color(cells) + 4 * kept, self.reward(cells.mean(axis=(0, 1)))[0])
