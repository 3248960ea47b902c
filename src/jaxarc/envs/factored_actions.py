"""Actions chosen factor by factor: an operation, then a row, then a column, then the other corner of a box.

A flat choice among all boxes of a 30x30 canvas has millions of logits, five factors have 42 + 30 + 30 + 30 + 30.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Float32, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.structured_actions import BboxAction, PointAction
from jaxarc.prng import as_typed_key
from jaxarc.types import PRNGKey

Chosen = tuple[Int32[Array, "*B"], ...]  # the factors chosen so far, in order
NextLogits = Callable[[Chosen], Float[Array, "*B N"]]  # of the factor that comes after these
NextMask = Callable[[Chosen], Bool[Array, "*B N"]]  # true where that factor may be chosen
_Choose = Callable[[int, "MaskedCategorical"], Int32[Array, "*B"]]


class FactoredDecision(NamedTuple):
    """An action and what learning needs to know about the choice."""

    action: PointAction | BboxAction
    log_prob: Float32[Array, "*B"]  # of the whole action; -inf where a mask forbids it
    entropy: Float32[Array, "*B"]  # of each factor given those before it, summed; its mean is that of the whole action


class MaskedCategorical(eqx.Module):
    """A choice among ``N`` places, some of them forbidden: those have probability 0, and no gradient reaches them.

    In each row of the mask a place must be allowed. Inside ``jit`` that cannot be checked, and a row without one gives
    NaN.

    Raises:
        ValueError: logits and mask differ in shape, or a row of the mask allows nothing.
    """

    log_probs: Float32[Array, "*B N"]  # -inf where forbidden
    mask: Bool[Array, "*B N"]

    def __init__(self, logits: Float[Array, "*B N"], mask: Bool[Array, "*B N"]):
        if logits.shape != mask.shape:
            raise ValueError(f"logits and mask must have one shape, got {logits.shape} and {mask.shape}")
        if not isinstance(mask, Tracer) and not np.asarray(mask).any(axis=-1).all():
            raise ValueError("a mask forbids every choice; allow at least one place in each of its rows")
        self.mask = mask
        # In float32 whatever the network computes in: log-probabilities are subtracted from one another.
        self.log_probs = jax.nn.log_softmax(jnp.where(mask, logits.astype(jnp.float32), -jnp.inf), axis=-1)

    def sample(self, key: PRNGKey) -> Int32[Array, "*B"]:
        """Draw a place for each row."""
        return jax.random.categorical(as_typed_key(key), self.log_probs, axis=-1).astype(jnp.int32)

    def mode(self) -> Int32[Array, "*B"]:
        """Return the likeliest place of each row, of equals the first."""
        return jnp.argmax(self.log_probs, axis=-1).astype(jnp.int32)

    def log_prob(self, place: Int32[Array, "*B"]) -> Float32[Array, "*B"]:
        """Return the log-probability of a place in each row."""
        return jnp.take_along_axis(self.log_probs, place[..., None], axis=-1)[..., 0]

    def entropy(self) -> Float32[Array, "*B"]:
        """Return the entropy of each row, in nats."""
        finite = jnp.where(self.mask, self.log_probs, jnp.float32(0))  # 0 * -inf is NaN
        return -(jnp.where(self.mask, jnp.exp(finite), jnp.float32(0)) * finite).sum(axis=-1)


@dataclasses.dataclass(frozen=True)
class ActionFactors:
    """The factors of a config's actions, in the order in which they are chosen.

    Logits come one factor after the other, so those of a factor may depend on what was chosen before it::

        factors = ActionFactors.of(params.config)
        mask = factor_masks(state, params.config)
        decision = factors.sample(key, next_logits, mask)

    where ``next_logits(chosen)`` gets the tuple of earlier choices, empty for the operation. :func:`independent` makes
    one of logits that are known at once.
    """

    selection_format: str  # "point" or "bbox"
    grid_shape: tuple[int, int]  # (H, W)

    @classmethod
    def of(cls, config: JaxArcConfig) -> "ActionFactors":
        """Read the factors off a config.

        Raises:
            ValueError: a mask has no rows and columns to choose one after the other.
        """
        if config.action.selection_format == "mask":
            raise ValueError(
                "factored actions need action.selection_format 'point' or 'bbox', got 'mask'; a mask has one choice "
                "per cell and no factors"
            )
        return cls(config.action.selection_format, config.grid_shape)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many places each factor has: operation ids, rows, columns, and for boxes rows and columns again."""
        corners = 1 if self.selection_format == "point" else 2
        return (c.NUM_OPERATIONS, *self.grid_shape * corners)

    def sample(self, key: PRNGKey, next_logits: NextLogits, next_mask: NextMask) -> FactoredDecision:
        """Draw an action for each row of the logits."""
        keys = jax.random.split(as_typed_key(key), len(self.sizes))
        return self._decide(next_logits, next_mask, lambda factor, places: places.sample(keys[factor]))

    def greedy(self, next_logits: NextLogits, next_mask: NextMask) -> FactoredDecision:
        """Choose the likeliest place of each factor in turn."""
        return self._decide(next_logits, next_mask, lambda factor, places: places.mode())

    def evaluate(
        self, action: PointAction | BboxAction, next_logits: NextLogits, next_mask: NextMask
    ) -> FactoredDecision:
        """Return log-probability and entropy of actions that were chosen already.

        A box counts with its corners as they are named. Coordinates must lie in the canvas.

        Raises:
            TypeError: the action has another format.
        """
        given = self._factors_of(action)
        return self._decide(next_logits, next_mask, lambda factor, places: given[factor])

    def _decide(self, next_logits: NextLogits, next_mask: NextMask, choose: _Choose) -> FactoredDecision:
        chosen: Chosen = ()
        log_probs, entropies = [], []
        for factor, size in enumerate(self.sizes):
            logits = next_logits(chosen)
            if logits.shape[-1] != size:
                raise ValueError(f"factor {factor} has {size} places, got logits of shape {logits.shape}")
            places = MaskedCategorical(logits, jnp.broadcast_to(next_mask(chosen), logits.shape))
            place = choose(factor, places)
            log_probs.append(places.log_prob(place))
            entropies.append(places.entropy())
            chosen = (*chosen, place)
        kind = PointAction if self.selection_format == "point" else BboxAction
        return FactoredDecision(kind(*chosen), _sum(log_probs), _sum(entropies))

    def _factors_of(self, action: PointAction | BboxAction) -> Chosen:
        if isinstance(action, PointAction) and self.selection_format == "point":
            return action.operation, action.row, action.col
        if isinstance(action, BboxAction) and self.selection_format == "bbox":
            return action.operation, action.r1, action.c1, action.r2, action.c2
        raise TypeError(f"these are the factors of format {self.selection_format!r}, got a {type(action).__name__}")


def independent(logits: Sequence[Float[Array, "*B N"]]) -> NextLogits:
    """Serve logits that do not depend on earlier choices, one array per factor in order."""
    return lambda chosen: logits[len(chosen)]


def _sum(parts: list[Float32[Array, "*B"]]) -> Float32[Array, "*B"]:
    return jnp.stack(parts).sum(axis=0)
