"""Categorical choices by logits, with some forbidden: draws, log-probabilities and entropies."""

from collections.abc import Callable
from typing import Final, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32

Sampler = Callable[[int, Float32[Array, "B N"], Bool[Array, "B N"]], Int32[Array, " B"]]
"""From the number of the choice, masked logits and what is allowed to the chosen indices."""

_NEVER: Final = -1e9  # logit of what must not be chosen; finite, so that no gradient is NaN
_LONG: Final = 64  # number of logits from which on drawing in two steps is faster


class CategoricalSample(NamedTuple):
    """The outcome of one choice for each row of a batch."""

    chosen: Int32[Array, " B"]  # index
    log_prob: Float32[Array, " B"]
    entropy: Float32[Array, " B"]

    @classmethod
    def make(cls, number: int, choose: Sampler, logits: Float32[Array, "B N"], allowed: Bool[Array, "B N"]) -> Self:
        # ``make`` works on logits less their maximum, which keeps exp() in 0 .. 1. Probabilities do not change with a
        # constant, so no gradient has to flow through it.
        masked = jnp.where(allowed, logits, jnp.float32(_NEVER))
        index = choose(number, masked, allowed)
        shifted = masked - jax.lax.stop_gradient(masked.max(axis=-1, keepdims=True))
        weights = jnp.exp(shifted)
        total = weights.sum(axis=-1)
        log_total = jnp.log(total)
        chosen = jnp.take_along_axis(shifted, index[:, None], axis=-1)[:, 0]
        # The entropy of p = w / sum(w) is log sum(w) - sum(w log w) / sum(w): one exponential for both.
        entropy = log_total - (weights * jnp.where(allowed, shifted, jnp.float32(0))).sum(axis=-1) / total
        return cls(index, chosen - log_total, entropy)


def likeliest(number: int, logits: Float32[Array, "B N"], allowed: Bool[Array, "B N"]) -> Int32[Array, " B"]:
    """Choose the index of the largest logit, the first of equal ones."""
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


def draw(
    uniform: Float32[Array, " B"], logits: Float32[Array, "B N"], allowed: Bool[Array, "B N"]
) -> Int32[Array, " B"]:
    """Draw by the inverse of the cumulative distribution: one uniform number instead of one per logit.

    With weights 1, 3, 4 the running sums are 1, 4, 8, and the number 0.4 stands for 0.4 * 8 = 3.2: the first sum
    above it is 4, so index 1 is drawn. Long rows are cut into chunks; the chunk is drawn by the sum of its weights, and
    the index in it by what is left of the number: in the example (3.2 - 1) / 3 = 0.73 of the way through weight 1.
    """
    weights = jnp.exp(logits - logits.max(axis=-1, keepdims=True))  # exactly 0 where forbidden
    count = logits.shape[-1]
    if count < _LONG:
        return _find_by_running_sum(weights, uniform)[0]
    # The largest divisor up to the root: 900 cells are 30 chunks of 30, so two sums of 30 instead of one of 900.
    length = next(size for size in range(round(count**0.5), 0, -1) if count % size == 0)
    chunks = weights.reshape(-1, count // length, length)
    chunk, left = _find_by_running_sum(chunks.sum(axis=-1), uniform)
    index, _ = _find_by_running_sum(jnp.take_along_axis(chunks, chunk[:, None, None], axis=1)[:, 0], left)
    return chunk * length + index


def _find_by_running_sum(
    weights: Float32[Array, "B N"], uniform: Float32[Array, " B"]
) -> tuple[Int32[Array, " B"], Float32[Array, " B"]]:
    """Return the index at which the running sum exceeds the target, and how far into its weight the target is, 0 .. 1.

    Rounding may lift the running sum a little at a weight of 0, or leave its end below the target; so only indices with
    a weight count, and the last of them is taken where no sum exceeds the target.
    """
    count = weights.shape[-1]
    # A product with an upper triangle of ones is a running sum: (1, 3, 4) gives (1, 4, 8).
    sums = weights @ jnp.asarray(np.triu(np.ones((count, count), np.float32)))
    target = uniform * sums[:, -1]
    indices = jnp.arange(count, dtype=jnp.int32)[None]
    has_weight = weights > 0
    first = jnp.where(has_weight & (sums > target[:, None]), indices, count).min(axis=-1)
    index = jnp.minimum(first, jnp.where(has_weight, indices, 0).max(axis=-1))
    at_index = lambda x: jnp.take_along_axis(x, index[:, None], axis=-1)[:, 0]
    weight = at_index(weights)
    # How far into the weight the target is: with target 3.2, sum 4 and weight 3 it is (3.2 - 4 + 3) / 3 = 0.73.
    return index, jnp.clip((target - at_index(sums) + weight) / weight, 0, 1)
