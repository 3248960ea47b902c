"""A dynamics model of the environment: the next grid and the reward of an action, and the step that trains it."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Float32, Int, Int32

from jaxarc.config import SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.constants import PADDING
from jaxarc.nn.layers import MLP, Dense, gelu_mlp, lecun_scale
from jaxarc.nn.precision import DTYPES, cast_floats
from jaxarc.surrogate.candidates import CandidateSet
from jaxarc.surrogate.encoders import NUM_VALUES, ColorEncoder
from jaxarc.surrogate.losses import transition_loss
from jaxarc.surrogate.train_step import Metrics, Model, Step, create_example_train_step
from jaxarc.surrogate.trunk import Trunk
from jaxarc.types import PRNGKey


class TransitionPrediction(NamedTuple):
    """The model's prediction of one step."""

    grid_logits: Float[Array, "N d 11"]  # of -1 (outside of the grid) and the colors 0 .. 9
    reward: Float[Array, ""]


class TransitionModel(eqx.Module):
    """Predicts the next grid and the reward of one action; ``jax.vmap`` does a batch.

    The action is a :class:`CandidateSet` without its axis k: a box, and features such as the operation. A constant
    logit of 4 for the present color makes a fresh model predict that nothing changes, so it learns only changes.
    """

    encoder: ColorEncoder
    inside: Dense  # from the action's features to what is added to the cells in its box
    outside: Dense  # from the action's features to what is added to all cells
    trunk: Trunk
    color: MLP
    reward: MLP

    def __init__(self, key: PRNGKey, config: SurrogateNetworkConfig, num_features: int, grid_shape: tuple[int, int]):
        keys = jax.random.split(key, 6)
        size = config.latent_size
        self.encoder = ColorEncoder(keys[0], size, grid_shape)
        self.inside = Dense(keys[1], num_features, size, lecun_scale(num_features, 2.0))
        self.outside = Dense(keys[2], num_features, size, lecun_scale(num_features))
        self.trunk = Trunk.create(keys[3], config)
        self.color = gelu_mlp(keys[4], (size, size, NUM_VALUES), 0.1)
        self.reward = gelu_mlp(keys[5], (size, size, 1), 0.1)

    def __call__(self, data: Float[Array, "N d 3"], action: CandidateSet) -> TransitionPrediction:
        # The action reaches every cell, and once more those in its box: [N, d, 1] times [1, 1, C]. So the trunk can
        # tell both which operation it is and where it acts.
        action = cast_floats(action, self.inside.weight.dtype)
        box = action.rows[:, None] * action.columns[None]
        inside = box[..., None] * self.inside(action.features)[None, None]
        embedded_action = inside + self.outside(action.features)[None, None]
        cells = self.trunk(self.encoder(data) + embedded_action)
        # Channel 0 is the working grid. Against ten logits near 0 a logit of 4 is a
        # probability of 55 / (55 + 10) = 0.85.
        kept = jax.nn.one_hot(jnp.round(data[..., 0]).astype(jnp.int32) + 1, NUM_VALUES, dtype=cells.dtype)
        return TransitionPrediction(self.color(cells) + 4 * kept, self.reward(cells.mean(axis=(0, 1)))[0])


class TransitionBatch(eqx.Module):
    """B steps of the environment: grids before, action, next grid and reward."""

    data: Float32[Array, "B N d 3"]  # as observational_data: the working grid first, -1 outside of it
    action: CandidateSet  # without its axis k: leaves [B, ...]
    operation: Int32[Array, " B"]  # of the action, by which evaluations group the steps
    next_grid: Int[Array, "B N d"]  # colors -1 .. 9
    reward: Float32[Array, " B"]


class Predicted(NamedTuple):
    """The predictions for a batch of steps."""

    grid: Int32[Array, "*B N d"]  # the likeliest colors, -1 .. 9
    reward: Float32[Array, "*B"]


def create_transition_train_step(
    model: Model, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig
) -> Step:
    """Make a compiled step that learns next grids and rewards; see :func:`create_example_train_step`.

    Args:
        model: a :class:`TransitionModel`, or a model that is called as one; it gives the structure only.
        optimizer: of the model's floating-point arrays.
        config: of precision and accumulation.

    Returns:
        The step, of batches of :class:`TransitionBatch`. Its metrics are ``total_loss``, ``exact_grids`` (share of
        examples whose next grid is predicted in every cell) and ``gradient_norm``, arrays.
    """
    dtype = DTYPES[config.precision]

    def example_loss(model: Model, example: TransitionBatch) -> tuple[Array, Metrics]:
        predicted = model(example.data, cast_floats(example.action, dtype))
        logits, reward = cast_floats(tuple(predicted), jnp.float32)
        is_exact = is_exact_grid(colors_of(logits), example.next_grid)
        loss = transition_loss(logits, reward, example.next_grid, example.reward)
        return loss, {"exact_grids": is_exact.astype(jnp.float32)}

    return create_example_train_step(model, optimizer, example_loss, config, TransitionBatch)


def predict_steps(model: Model, data: Float32[Array, "B N d 3"], action: CandidateSet) -> Predicted:
    """Return the predictions for a batch of steps; jit belongs to the caller."""
    predicted = jax.vmap(model)(data, action)
    return Predicted(colors_of(predicted.grid_logits), predicted.reward.astype(jnp.float32))


def colors_of(grid_logits: Float[Array, "*B N d 11"]) -> Int32[Array, "*B N d"]:
    """Return the likeliest color of each cell, -1 .. 9."""
    return jnp.argmax(grid_logits, axis=-1).astype(jnp.int32) + PADDING


def is_exact_grid(grid: Int[Array, "*B N d"], truth: Int[Array, "*B N d"]) -> Bool[Array, "*B"]:
    """Return whether every cell is right, those outside of the grid too."""
    return (grid == truth.astype(grid.dtype)).all(axis=(-2, -1))
