"""A policy over grid edits that chooses one part after the other, each knowing those before it."""

from collections.abc import Callable
from typing import Final, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key

from jaxarc import constants as c
from jaxarc.agents.features import cell_features
from jaxarc.agents.networks import NUM_KINDS, PAINT, RESIZE, SUBMIT, GridNetwork, Trunk
from jaxarc.config import JaxArcConfig, NetworkConfig
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.types import Observation, PRNGKey

OPERATIONS: Final = (*range(c.FILL, c.FILL + c.NUM_COLORS), c.RESIZE, c.SUBMIT)  # what the policy can do

_NEVER: Final = -1e9  # logit of what must not be chosen; finite, so that no gradient is NaN
_Chooser = Callable[[int, Float32[Array, "B N"], Bool[Array, "B N"]], Int32[Array, " B"]]
_STAGES: Final = 5
_KIND, _FIRST, _SECOND, _COLOR, _SIZE = range(_STAGES)


class Edit(NamedTuple):
    """What the policy chooses. A cell is ``row * W + column``.

    Paint fills the box between two corners, both inside the working grid. Resize makes ``second`` the last cell of the
    grid, at its bottom right; any cell of the canvas will do. Parts that a kind does not need hold any valid value.
    """

    kind: Int32[Array, "*B"]  # paint, resize or submit
    first: Int32[Array, "*B"]  # a corner; for paint
    second: Int32[Array, "*B"]  # the opposite corner; for paint and resize
    color: Int32[Array, "*B"]  # 0 .. 9; for paint


class Decision(NamedTuple):
    """An edit, and what learning needs to know about it."""

    edit: Edit
    log_prob: Float32[Array, " B"]  # of the parts that the kind needs
    entropy: Float32[Array, " B"]  # of each choice given those before it; its mean is that of the whole edit
    value: Float32[Array, " B"]


class EditPolicy(eqx.Module):
    """Chooses among real actions of the environment: fill a box with a color, resize, submit.

    It takes a batch of observations with the keys ``working_grid``, ``target_grid`` and ``step_count``.
    """

    network: GridNetwork
    max_episode_steps: int = eqx.field(static=True)

    @classmethod
    def create(cls, key: Key[Array, ""], config: JaxArcConfig, network: NetworkConfig) -> Self:
        """Make a fresh policy for environments with this config.

        Raises:
            ValueError: see :func:`missing_for_editing`.
        """
        if problems := missing_for_editing(config):
            raise ValueError("; ".join(problems))
        return cls(GridNetwork(key, config.grid_shape, network), config.environment.max_episode_steps)

    def sample(self, key: PRNGKey, observation: Observation) -> Decision:
        """Draw an edit for each observation."""
        batch = observation["step_count"].shape[0]
        chance = jax.random.uniform(key, (_STAGES, batch), jnp.float32)
        return self._decide(observation, lambda stage, logits, allowed: _draw(chance[stage], logits, allowed))

    def greedy(self, observation: Observation) -> Edit:
        """Choose the likeliest part at every stage."""
        choose: _Chooser = lambda stage, logits, allowed: jnp.argmax(logits, axis=-1).astype(jnp.int32)
        return self._decide(observation, choose).edit

    def act(self, observation: Observation) -> BboxAction:
        """Return the action of the greedy edit."""
        return self.to_action(self.greedy(observation))

    def evaluate(self, observation: Observation, edit: Edit) -> Decision:
        """Return log-probability, entropy and value of given edits."""
        given = {_KIND: edit.kind, _FIRST: edit.first, _SECOND: edit.second, _COLOR: edit.color, _SIZE: edit.second}
        return self._decide(observation, lambda stage, logits, allowed: given[stage])

    def value(self, observation: Observation) -> Float32[Array, " B"]:
        """Return the expected discounted reward from each observation on."""
        return self.network.value(self._trunk(observation))

    def to_action(self, edit: Edit) -> BboxAction:
        """Turn edits into actions of the environment."""
        width = self.network.grid_shape[1]
        paints = edit.kind == PAINT
        operation = jnp.where(paints, c.FILL + edit.color, jnp.where(edit.kind == RESIZE, c.RESIZE, c.SUBMIT))
        first = jnp.where(paints, edit.first, 0)  # the grid's own corner; submit does not look at its box
        return BboxAction(operation, first // width, first % width, edit.second // width, edit.second % width)

    def from_action(self, action: BboxAction) -> Edit:
        """Turn actions into edits; the operation must be one of ``OPERATIONS``."""
        width = self.network.grid_shape[1]
        resizes, submits = action.operation == c.RESIZE, action.operation == c.SUBMIT
        last = jnp.maximum(action.r1, action.r2) * width + jnp.maximum(action.c1, action.c2)
        return Edit(
            kind=jnp.where(submits, SUBMIT, jnp.where(resizes, RESIZE, PAINT)).astype(jnp.int32),
            first=action.r1 * width + action.c1,
            second=jnp.where(resizes, last, action.r2 * width + action.c2),
            color=jnp.where(resizes | submits, 0, action.operation - c.FILL),
        )

    def _trunk(self, observation: Observation) -> Trunk:
        return self.network.trunk(cell_features(observation, self.max_episode_steps))

    def _decide(self, observation: Observation, choose: _Chooser) -> Decision:
        seen, network = cell_features(observation, self.max_episode_steps), self.network
        trunk = network.trunk(seen)
        cells = seen.active.shape[-1]
        anything = lambda count: jnp.ones((seen.active.shape[0], count), jnp.bool_)

        kind = _Choice.make(_KIND, choose, network.kind_logits(trunk), anything(NUM_KINDS))
        first = _Choice.make(_FIRST, choose, network.first_corner_logits(trunk), seen.active)
        first_cell = jax.nn.one_hot(first.place, cells, dtype=jnp.float32)
        second = _Choice.make(_SECOND, choose, network.second_corner_logits(trunk, seen, first_cell), seen.active)
        second_cell = jax.nn.one_hot(second.place, cells, dtype=jnp.float32)
        color_logits = network.color_logits(seen, first_cell, second_cell)
        color = _Choice.make(_COLOR, choose, color_logits, anything(c.NUM_COLORS))
        size = _Choice.make(_SIZE, choose, network.resize_logits(trunk), anything(cells))

        paints, resizes = kind.place == PAINT, kind.place == RESIZE
        zero = jnp.float32(0)
        total = lambda part: (
            kind[part]
            + jnp.where(paints, first[part] + second[part] + color[part], zero)
            + jnp.where(resizes, size[part], zero)
        )
        edit = Edit(kind.place, first.place, jnp.where(resizes, size.place, second.place), color.place)
        return Decision(edit, total(1), total(2), network.value(trunk))


def missing_for_editing(config: JaxArcConfig) -> list[str]:
    """List what a config lacks for an :class:`EditPolicy`, each as one sentence; empty when nothing is missing."""
    wanted = {
        "observation.reveal_target": (config.observation.reveal_target, True),
        "observation.include_step_count": (config.observation.include_step_count, True),
        "action.selection_format": (config.action.selection_format, "bbox"),
    }
    problems = [
        f"the policy edits boxes towards a visible target, so {name} must be {needed!r}, got {value!r}"
        for name, (value, needed) in wanted.items()
        if value != needed
    ]
    missing = sorted(set(OPERATIONS) - set(config.legal_operations))
    if missing:
        problems.append(f"the policy fills, resizes and submits, so action.allowed_operations must include {missing}")
    return problems


class _Choice(NamedTuple):
    """One part of an edit."""

    place: Int32[Array, " B"]
    log_prob: Float32[Array, " B"]
    entropy: Float32[Array, " B"]

    @classmethod
    def make(
        cls, stage: int, choose: _Chooser, logits: Float32[Array, "B N"], allowed: Bool[Array, "B N"]
    ) -> "_Choice":
        masked = jnp.where(allowed, logits, jnp.float32(_NEVER))
        place = choose(stage, masked, allowed)
        log_probs = jax.nn.log_softmax(masked, axis=-1)
        chosen = jax.nn.one_hot(place, logits.shape[-1], dtype=jnp.float32)
        entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=-1)
        return cls(place, (chosen * log_probs).sum(axis=-1), entropy)


def _draw(
    chance: Float32[Array, " B"], logits: Float32[Array, "B N"], allowed: Bool[Array, "B N"]
) -> Int32[Array, " B"]:
    """Draw by the inverse of the cumulative distribution: one random number instead of one per logit.

    Rounding may lift the sum a little at an entry of probability 0, or leave its end below the draw; so only allowed
    entries count, and the last of them stands in.
    """
    count = logits.shape[-1]
    weights = jnp.exp(logits - logits.max(axis=-1, keepdims=True))
    sums = weights @ jnp.triu(jnp.ones((count, count), jnp.float32))
    reached = sums > chance[:, None] * sums[:, -1:]
    place = jnp.arange(count, dtype=jnp.int32)[None]
    first_reached = jnp.where(allowed & reached, place, count).min(axis=-1)
    last_allowed = jnp.where(allowed, place, 0).max(axis=-1)
    return jnp.minimum(first_reached, last_allowed)
