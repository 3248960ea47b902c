"""Heads that predict what just happened and what comes next; they make the trunk see what matters, and act nowhere."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32, Key

from jaxarc import constants as c
from jaxarc.agents.edits import Edit
from jaxarc.agents.networks.network import one_hot
from jaxarc.config import AgentConfig
from jaxarc.nn.layers import MLP

_HIDDEN = 32


class Outcome(NamedTuple):
    """What the heads are to predict at each step; leaves [B]."""

    last_reward: Float32[Array, " B"]
    has_last: Bool[Array, " B"]  # whether the step before belongs to the same episode
    reward: Float32[Array, " B"]
    next_grid: Int8[Array, "B H W"]  # the working grid after the step, before any reset


class AuxiliaryLosses(NamedTuple):
    last_reward_loss: Float32[Array, ""]  # squared error
    reward_loss: Float32[Array, ""]  # squared error
    next_grid_loss: Float32[Array, ""]  # cross-entropy, in nats a cell


class AuxiliaryHeads(eqx.Module):
    """Predict r(t-1) from what is features, r(t) and s(t+1) from that and the edit."""

    last_reward_layers: MLP
    reward_layers: MLP
    next_grid_layers: MLP
    num_kinds: int = eqx.field(static=True)
    grid_shape: tuple[int, int] = eqx.field(static=True)

    def __init__(self, key: Key[Array, ""], channels: int, num_kinds: int, grid_shape: tuple[int, int]):
        keys = jax.random.split(key, 3)
        whole, edit = 2 * channels + 1, num_kinds + c.NUM_COLORS
        self.last_reward_layers = MLP(keys[0], (whole, _HIDDEN, 1))
        self.reward_layers = MLP(keys[1], (whole + 2 * channels + edit, _HIDDEN, 1))
        self.next_grid_layers = MLP(keys[2], (channels + 1 + edit, _HIDDEN, c.NUM_COLORS + 1))
        self.num_kinds = num_kinds
        self.grid_shape = grid_shape

    def losses(
        self, cells: Float32[Array, "B HW C"], whole: Float32[Array, "B G"], edit: Edit, outcome: Outcome
    ) -> AuxiliaryLosses:
        """Compare the predictions with what happened, the mean over the batch.

        Args:
            cells: what the trunk says of each cell.
            whole: what it says of the whole grid.
            edit: that was made.
            outcome: what came of it.
        """
        chosen = jnp.concatenate([one_hot(edit.kind, self.num_kinds), one_hot(edit.color, c.NUM_COLORS)], axis=-1)
        at = lambda place: jnp.take_along_axis(cells, place[:, None, None], axis=1)[:, 0]
        last_reward = self.last_reward_layers(whole)[:, 0]
        reward = self.reward_layers(jnp.concatenate([whole, at(edit.first), at(edit.second), chosen], axis=-1))[:, 0]
        box = _box_of(edit, self.grid_shape).astype(jnp.float32)[..., None]
        spread = jnp.broadcast_to(chosen[:, None], (*cells.shape[:2], chosen.shape[-1]))
        logits = self.next_grid_layers(jnp.concatenate([cells, box, spread * box], axis=-1))
        following = outcome.next_grid.reshape(cells.shape[:2]).astype(jnp.int32)
        symbols = jnp.where(following > c.PADDING, following, c.NUM_COLORS)
        log_probs = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), symbols[..., None], axis=-1)
        known = outcome.has_last.astype(jnp.float32)
        return AuxiliaryLosses(
            last_reward_loss=(known * jnp.square(last_reward - outcome.last_reward)).mean(),
            reward_loss=jnp.square(reward - outcome.reward).mean(),
            next_grid_loss=-log_probs.mean(),
        )


def weigh(losses: AuxiliaryLosses, config: AgentConfig) -> Float32[Array, ""]:
    return (
        config.last_reward_weight * losses.last_reward_loss
        + config.reward_weight * losses.reward_loss
        + config.next_grid_weight * losses.next_grid_loss
    )


def _box_of(edit: Edit, grid_shape: tuple[int, int]) -> Bool[Array, "B HW"]:
    """Mark the cells between the two corners of an edit."""
    height, width = grid_shape
    rows, columns = jnp.divmod(jnp.arange(height * width, dtype=jnp.int32), jnp.int32(width))

    def between(place: Int32[Array, " HW"], first: Int32[Array, " B"], second: Int32[Array, " B"]) -> Array:
        low, high = jnp.minimum(first, second)[:, None], jnp.maximum(first, second)[:, None]
        return (low <= place[None]) & (place[None] <= high)

    inside_rows = between(rows, edit.first // width, edit.second // width)
    return inside_rows & between(columns, edit.first % width, edit.second % width)
