"""A dynamics model of the environment: next grid, clipboard and reward of an action, and the step that trains it."""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Float32, Int, Int32

from jaxarc.config import SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.constants import PADDING
from jaxarc.nn.layers import Dense
from jaxarc.nn.precision import DTYPES, cast_floats
from jaxarc.surrogate.candidates import CandidateSet
from jaxarc.surrogate.copying import Copied, CopyingNetwork
from jaxarc.surrogate.losses import color_loss, transition_loss
from jaxarc.surrogate.train_step import Metrics, Model, Step, create_example_train_step
from jaxarc.types import PRNGKey

_PREDICTED_AT_ONCE: Final = 256


class TransitionPrediction(NamedTuple):
    """The model's prediction of one step."""

    grid_logits: Float[Array, "N d 11"]  # of -1 (outside of the grid) and the colors 0 .. 9
    clipboard_logits: Float[Array, "N d 11"]  # -1 where nothing is held
    reward: Float[Array, ""]


class TransitionModel(eqx.Module):
    """Predicts the next canvas by copying, and the reward of one action; ``jax.vmap`` does a batch.

    The action is a :class:`CandidateSet` without its axis k: a box, and the one-hot operation. The reward is linear in
    the similarity of grid and target before and after the step.
    """

    network: CopyingNetwork
    reward: Dense

    def __init__(self, key: PRNGKey, config: SurrogateNetworkConfig):
        """Draw the weights; of the config only ``latent_size`` counts."""
        key_network, key_reward = jax.random.split(key)
        self.network = CopyingNetwork(key_network, config.latent_size)
        self.reward = Dense(key_reward, 2, 1, 0.1)

    def __call__(self, data: Float[Array, "N d 4"], action: CandidateSet) -> TransitionPrediction:
        copied = self.network(data, action)
        grid, target = (jnp.round(data[..., channel]).astype(jnp.int32) for channel in range(2))
        before, after = Copied.certainly(grid).similarity(target), copied.grid.similarity(target)
        # Before and after are nearly equal, and two nearly equal inputs of a linear layer are learned slowly.
        reward = self.reward(jnp.stack([before, after - before]))[0]
        return TransitionPrediction(copied.grid.logits(), copied.clipboard.logits(), reward)


class TransitionBatch(eqx.Module):
    """B steps of the environment: grids before, action, next grid and reward."""

    data: Float32[Array, "B N d 4"]  # working grid, target, input and clipboard; -1 outside of them
    action: CandidateSet  # without its axis k: leaves [B, ...]
    operation: Int32[Array, " B"]  # of the action, by which evaluations group the steps
    next_grid: Int[Array, "B N d"]  # colors -1 .. 9
    next_clipboard: Int[Array, "B N d"]  # -1 where nothing is held
    reward: Float32[Array, " B"]


class Predicted(NamedTuple):
    """The predictions for a batch of steps."""

    grid: Int32[Array, "*B N d"]  # the likeliest colors, -1 .. 9
    clipboard: Int32[Array, "*B N d"]
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
    loss = lambda model, step: step_loss(model, step, dtype)
    return create_example_train_step(model, optimizer, loss, config, TransitionBatch)


def step_loss(model: Model, step: TransitionBatch, dtype: DTypeLike) -> tuple[Float32[Array, ""], Metrics]:
    """Return the loss of one step of the environment, and whether its next grid is predicted in every cell.

    Args:
        model: of transitions, in the precision of ``dtype``.
        step: one, without the axis B.
        dtype: of the action's description.
    """
    predicted = model(step.data, cast_floats(step.action, dtype))
    grid_logits, clipboard_logits, reward = cast_floats(tuple(predicted), jnp.float32)
    loss = transition_loss(grid_logits, reward, step.next_grid, step.reward)
    is_exact = is_exact_grid(colors_of(grid_logits), step.next_grid)
    return loss + color_loss(clipboard_logits, step.next_clipboard), {"exact_grids": is_exact.astype(jnp.float32)}


def predict_steps(model: Model, data: Float32[Array, "B N d 4"], action: CandidateSet) -> Predicted:
    """Return the predictions for a batch of steps; jit belongs to the caller."""

    def predict(step: tuple[Float32[Array, "N d 4"], CandidateSet]) -> Predicted:
        grid_logits, clipboard_logits, reward = model(*step)
        return Predicted(colors_of(grid_logits), colors_of(clipboard_logits), reward.astype(jnp.float32))

    # A few at a time: a model may hold hundreds of numbers for each cell.
    return jax.lax.map(predict, (data, action), batch_size=_PREDICTED_AT_ONCE)


def colors_of(grid_logits: Float[Array, "*B N d 11"]) -> Int32[Array, "*B N d"]:
    """Return the likeliest color of each cell, -1 .. 9."""
    return jnp.argmax(grid_logits, axis=-1).astype(jnp.int32) + PADDING


def is_exact_grid(grid: Int[Array, "*B N d"], truth: Int[Array, "*B N d"]) -> Bool[Array, "*B"]:
    """Return whether every cell is right, those outside of the grid too."""
    return (grid == truth.astype(grid.dtype)).all(axis=(-2, -1))
