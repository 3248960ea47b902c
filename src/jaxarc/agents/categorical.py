"""Choosing one of several places by its logits, with some forbidden."""

from collections.abc import Callable
from typing import Final, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32

Sampler = Callable[[int, Float32[Array, "B N"], Bool[Array, "B N"]], Int32[Array, " B"]]
"""From the number of the choice, masked logits and what is allowed to the chosen places."""

_NEVER: Final = -1e9  # logit of what must not be chosen; finite, so that no gradient is NaN
_LONG: Final = 64  # places from which on drawing in two steps pays


class CategoricalSample(NamedTuple):
    """One part of an edit."""

    chosen: Int32[Array, " B"]  # index
    log_prob: Float32[Array, " B"]
    entropy: Float32[Array, " B"]

    @classmethod
    def make(cls, number: int, choose: Sampler, logits: Float32[Array, "B N"], allowed: Bool[Array, "B N"]) -> Self:
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
    """Choose the place of the largest logit, of equals the first."""
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


def draw(
    chance: Float32[Array, " B"], logits: Float32[Array, "B N"], allowed: Bool[Array, "B N"]
) -> Int32[Array, " B"]:
    """Draw by the inverse of the cumulative distribution: one random number instead of one per logit.

    Long rows are cut into pieces; the piece is drawn by its sum, then the place in it by what is left of the number.
    """
    weights = jnp.exp(logits - logits.max(axis=-1, keepdims=True))  # exactly 0 where forbidden
    count = logits.shape[-1]
    if count < _LONG:
        return _reach(weights, chance)[0]
    length = next(size for size in range(round(count**0.5), 0, -1) if count % size == 0)
    pieces = weights.reshape(-1, count // length, length)
    piece, left = _reach(pieces.sum(axis=-1), chance)
    place, _ = _reach(jnp.take_along_axis(pieces, piece[:, None, None], axis=1)[:, 0], left)
    return piece * length + place


def _reach(
    weights: Float32[Array, "B N"], chance: Float32[Array, " B"]
) -> tuple[Int32[Array, " B"], Float32[Array, " B"]]:
    """The place at which the running sum exceeds a share of the whole, and how far into its weight the share reaches.

    Rounding may lift the sum a little at a weight of 0, or leave its end at the share; so only places with a weight
    count, and the last of them stands in.
    """
    count = weights.shape[-1]
    sums = weights @ jnp.asarray(np.triu(np.ones((count, count), np.float32)))
    goal = chance * sums[:, -1]
    place, has_weight = jnp.arange(count, dtype=jnp.int32)[None], weights > 0
    first = jnp.where(has_weight & (sums > goal[:, None]), place, count).min(axis=-1)
    place = jnp.minimum(first, jnp.where(has_weight, place, 0).max(axis=-1))
    at_place = lambda x: jnp.take_along_axis(x, place[:, None], axis=-1)[:, 0]
    weight = at_place(weights)
    return place, jnp.clip((goal - at_place(sums) + weight) / weight, 0, 1)
