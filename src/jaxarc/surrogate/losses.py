"""How far a surrogate is from its expert, and a transition model from what happened."""

from typing import Final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int

UNLIKELY: Final = -1e9  # logit of padding: no probability, and a finite gradient


def kl_divergence_loss_jax(
    predicted: Float32[Array, "*B k"],
    target: Float32[Array, "*B k"],
    mask: Bool[Array, "*B k"] | None = None,
    weights: Float32[Array, "*B"] | None = None,
) -> Float32[Array, ""]:
    """Return the divergence KL(target || softmax(predicted)) in nats, the weighted mean over the examples.

    Candidates of probability 0 add nothing, and all gradients are finite.

    Args:
        predicted: logits, or log-probabilities.
        target: the expert's probabilities.
        mask: false for padding, which gets no probability.
        weights: 0 or more; of each example, by default all alike. Where all are 0 the loss is 0.

    Raises:
        ValueError: the shapes differ.
    """
    if predicted.shape != target.shape:
        raise ValueError(
            f"predicted has shape {predicted.shape}, target {target.shape}; both are of the same candidates"
        )
    log_predicted = jax.nn.log_softmax(predicted if mask is None else mask_padding(predicted, mask), axis=-1)
    counts = target > 0 if mask is None else (target > 0) & mask
    # Where nothing counts, the logarithm of 1 and not of 0: the branch that is not taken has a gradient too.
    log_target = jnp.log(jnp.where(counts, target, jnp.float32(1)))
    each = jnp.where(counts, target * (log_target - log_predicted), jnp.float32(0)).sum(axis=-1)
    return each.mean() if weights is None else weighted_mean(each, weights)


def mask_padding(logits: Float32[Array, "*B k"], mask: Bool[Array, "*B k"]) -> Float32[Array, "*B k"]:
    """Give padding a logit so low that it has no probability."""
    return jnp.where(mask, logits, jnp.float32(UNLIKELY))


def weighted_mean(values: Float32[Array, "*B"], weights: Float32[Array, "*B"]) -> Float32[Array, ""]:
    """Return the mean by weight, and 0 where all weights are 0."""
    total = weights.sum()
    return (values * weights).sum() / jnp.where(total > 0, total, jnp.float32(1))


def transition_loss(
    grid_logits: Float32[Array, "N d 11"],
    reward: Float32[Array, ""],
    next_grid: Int[Array, "N d"],
    true_reward: Float32[Array, ""],
) -> Float32[Array, ""]:
    """Return the mean surprise of a cell of the next grid in nats, plus the squared error of the reward.

    Args:
        grid_logits: of the colors -1 (outside of the grid), 0 .. 9.
        reward: predicted.
        next_grid: colors -1 .. 9.
        true_reward: what the step paid.
    """
    log_colors = jax.nn.log_softmax(grid_logits, axis=-1)
    index = (next_grid.astype(jnp.int32) + 1)[..., None]
    surprise = -jnp.take_along_axis(log_colors, index, axis=-1).mean()
    return surprise + (reward - true_reward) ** 2
