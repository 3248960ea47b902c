"""Losses of surrogates: the divergence from an expert's distribution, and the cross-entropy of edges."""

from typing import Final

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float32

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
        predicted: logits or log-probabilities.
        target: the expert's probabilities.
        mask: false for padding, which gets no probability.
        weights: of each example, 0 or more; equal by default. Where all are 0 the loss is 0.

    Raises:
        ValueError: the shapes differ.
    """
    if predicted.shape != target.shape:
        raise ValueError(
            f"predicted has shape {predicted.shape}, target {target.shape}; both are of the same candidates"
        )
    log_predicted = jax.nn.log_softmax(predicted if mask is None else mask_padding(predicted, mask), axis=-1)
    counts = target > 0 if mask is None else (target > 0) & mask
    # The gradient of jnp.where flows through both branches, and 0 * inf is NaN: log(0) has to be avoided inside, by
    # the logarithm of 1 where the target is 0.
    log_target = jnp.log(jnp.where(counts, target, jnp.float32(1)))
    # The target (0.5, 0.5, 0) and equal logits: 2 * 0.5 * (log 1/2 - log 1/3) = log 1.5 = 0.41 nats.
    each = jnp.where(counts, target * (log_target - log_predicted), jnp.float32(0)).sum(axis=-1)
    return each.mean() if weights is None else weighted_mean(each, weights)


def mask_padding(logits: Float32[Array, "*B k"], mask: Bool[Array, "*B k"]) -> Float32[Array, "*B k"]:
    """Return logits in which padding has a value so low that its probability is 0."""
    return jnp.where(mask, logits, jnp.float32(UNLIKELY))


def weighted_mean(values: Float32[Array, "*B"], weights: Float32[Array, "*B"]) -> Float32[Array, ""]:
    """Return the weighted mean, and 0 where all weights are 0."""
    # Where the total is 0, so is the weighted sum: to divide by 1 gives 0 and not NaN.
    total = weights.sum()
    return (values * weights).sum() / jnp.where(total > 0, total, jnp.float32(1))


def edge_loss(logits: Float32[Array, "d d"], adjacency: Bool[Array, "d d"]) -> Float32[Array, ""]:
    """Return the cross-entropy of an edge in nats, the mean over the ordered pairs of different variables."""
    each = optax.sigmoid_binary_cross_entropy(logits, adjacency.astype(jnp.float32))
    is_pair = ~jnp.eye(len(adjacency), dtype=jnp.bool_)
    return jnp.where(is_pair, each, jnp.float32(0)).sum() / is_pair.sum(dtype=jnp.int32).astype(jnp.float32)
