"""A policy over grid edits that chooses the parts of an edit one after the other."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int32, Key

from jaxarc import constants as c
from jaxarc.agents.edits import (
    Edit,
    EditKind,
    Network,
    PolicyInput,
    Selects,
    allowed_colors,
    from_action,
    kinds_of,
    to_action,
)
from jaxarc.agents.own_parts import make_network
from jaxarc.config import JaxArcConfig, NetworkConfig
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.parallel.mesh import UNSHARDED, DataShard
from jaxarc.types import Observation, PRNGKey

Sampler = Callable[[int, Float32[Array, "B N"], Bool[Array, "B N"]], Int32[Array, " B"]]
"""From the number of the part, masked logits and what is allowed to the chosen indices."""

_NEVER: Final = -1e9  # logit of what must not be chosen; finite, so that no gradient is NaN
_LONG: Final = 64  # number of logits from which on drawing in two steps is faster
_NUM_PARTS: Final = 6
_KIND, _FIRST, _SECOND, _COLOR, _ROW, _COLUMN = range(_NUM_PARTS)


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


class PolicyOutput(NamedTuple):
    """A choice for each environment, and what learning needs to know about it."""

    choice: Any  # Edit, of an EditPolicy; an index, of a policy of games
    log_prob: Float32[Array, " B"]  # of the parts that the kind needs
    entropy: Float32[Array, " B"]  # of each part given those before it; its mean is that of the whole choice
    value: Float32[Array, " B"]


class ActorCritic(eqx.Module):
    """What an algorithm trains: choices by logits, and values; abstract. It takes a batch of observations."""

    @abc.abstractmethod
    def sample(self, key: PRNGKey, observation: Observation, shard: DataShard = UNSHARDED) -> PolicyOutput:
        """Draw a choice for each observation."""

    @abc.abstractmethod
    def act(self, observation: Observation) -> Any:
        """Return the action of the likeliest choice."""

    @abc.abstractmethod
    def evaluate(self, observation: Observation, choice: Any) -> PolicyOutput:
        """Return log-probability, entropy and value of given choices."""

    @abc.abstractmethod
    def value(self, observation: Observation) -> Float32[Array, " B"]:
        """Return the expected discounted reward from each observation on."""

    @abc.abstractmethod
    def to_action(self, choice: Any) -> Any:
        """Turn choices into actions of the environment."""

    def on_canvas_of(self, observation: Observation) -> Self:
        """Return the policy with the same weights for the canvas of an observation, where there are several."""
        del observation
        return self


class EditPolicy(ActorCritic):
    """Chooses among the actions that an environment with boxes allows.

    It takes a batch of observations with the keys ``working_grid``, ``target_grid`` and ``step_count``.
    """

    network: Network
    kinds: tuple[EditKind, ...] = eqx.field(static=True)
    colors: tuple[tuple[bool, ...], ...] = eqx.field(static=True)  # which colors each kind may use
    grid_shape: tuple[int, int] = eqx.field(static=True)
    max_episode_steps: int = eqx.field(static=True)
    network_config: NetworkConfig = eqx.field(static=True)  # that the network was made by

    @classmethod
    def create(cls, key: Key[Array, ""], config: JaxArcConfig, network: NetworkConfig) -> Self:
        """Make a fresh policy for environments with this config.

        Raises:
            ValueError: see :func:`missing_for_editing`.
        """
        if problems := missing_for_editing(config):
            raise ValueError("; ".join(problems))
        kinds = kinds_of(config)
        return cls(
            network=make_network(key, config.grid_shape, kinds, network),
            kinds=kinds,
            colors=tuple(map(tuple, allowed_colors(kinds, config).tolist())),
            grid_shape=config.grid_shape,
            max_episode_steps=config.environment.max_episode_steps,
            network_config=network,
        )

    def on_canvas_of(self, observation: Observation) -> Self:
        """Return the policy with the same weights for the canvas of an observation.

        Raises:
            ValueError: its network has weights for the cells of its own canvas.
        """
        grid_shape = observation["working_grid"].shape[-2:]
        if grid_shape == self.grid_shape:
            return self
        like = jax.eval_shape(
            lambda key: make_network(key, grid_shape, self.kinds, self.network_config), jax.random.key(0)
        )
        weights = jax.tree.leaves(self.network)
        if [leaf.shape for leaf in weights] != [leaf.shape for leaf in jax.tree.leaves(like)]:
            (height, width), other = self.grid_shape, "x".join(map(str, grid_shape))
            raise ValueError(
                f"a network of kind {self.network_config.kind!r} has weights for the cells of its canvas, "
                f"{height}x{width}, so it sees no canvas of {other}; network.kind=relational has none"
            )
        network = jax.tree.unflatten(jax.tree.structure(like), weights)
        return dataclasses.replace(self, network=network, grid_shape=grid_shape)

    def sample(self, key: PRNGKey, observation: Observation, shard: DataShard = UNSHARDED) -> PolicyOutput:
        """Draw an edit for each observation.

        Every device draws the random numbers of all environments, which is cheap beside the network, and takes those of
        its own: so an environment's edit does not depend on the number of devices.
        """
        # [6, B] numbers, one for each part in each environment of all devices; this device keeps its own columns.
        batch = observation["step_count"].shape[0] * shard.count
        uniform = shard.local_slice(jax.random.uniform(key, (_NUM_PARTS, batch), jnp.float32), axis=1)
        return self._decide(observation, lambda number, logits, allowed: draw(uniform[number], logits, allowed))

    def greedy(self, observation: Observation) -> Edit:
        """Return the edit whose parts are the likeliest ones, each given those before it."""
        return self._decide(observation, likeliest).choice

    def act(self, observation: Observation) -> BboxAction:
        """Return the action of the greedy edit."""
        return self.to_action(self.greedy(observation))

    def evaluate(self, observation: Observation, choice: Edit) -> PolicyOutput:
        """Return log-probability, entropy and value of given edits."""
        # The second part may be the last cell of a resized grid: on 3 columns cell 7 is row 2, column 1. For other
        # kinds row and column are not needed, so any valid numbers will do.
        width = self.grid_shape[1]
        given = (*choice, choice.second // width, choice.second % width)
        return self._decide(observation, lambda number, logits, allowed: given[number])

    def value(self, observation: Observation) -> Float32[Array, " B"]:
        """Return the expected discounted reward from each observation on."""
        return self.network.value(self.network.encode(self._inputs(observation))).astype(jnp.float32)

    def to_action(self, choice: Edit) -> BboxAction:
        """Turn edits into actions of the environment."""
        return to_action(choice, self.kinds, self.grid_shape[1])

    def from_action(self, action: BboxAction) -> Edit:
        """Turn actions into edits; each operation must belong to one of the policy's kinds."""
        return from_action(action, self.kinds, self.grid_shape[1])

    def _inputs(self, observation: Observation) -> PolicyInput:
        time = observation["step_count"].astype(jnp.float32) / self.max_episode_steps
        return PolicyInput(observation["working_grid"], observation["target_grid"], time)

    def _decide(self, observation: Observation, sampler: Sampler) -> PolicyOutput:
        """Choose the parts of an edit one after the other, each by logits that depend on the parts before it.

        Every part is computed for every row of the batch, because rows have different kinds; the log-probability and
        the entropy of a row then add up only the parts that its kind needs. On a 3x3 canvas, cells 0 .. 8:

            kind         first  second  color  row, column  edit                         log-probability of
            paint (box)  0      4       7      1, 1         7 in rows 0-1, columns 0-1   kind, first, second, color
            flood fill   5      4       2      1, 1         2 from cell 5 on             kind, first, color
            resize       0      4       7      2, 1         3 rows, 2 columns            kind, row, column
            submit       0      4       7      1, 1         none                         kind
        """
        # The features are computed once; each head then reads them together with the parts chosen so far.
        network = self.network
        inputs = self._inputs(observation)
        features = network.encode(inputs)

        logits = network.kind_logits(features)
        kind = self._choose(_KIND, sampler, logits)
        first = self._choose(_FIRST, sampler, network.first_logits(features, kind.chosen), inputs.active)
        second = self._choose(_SECOND, sampler, network.second_logits(features, first.chosen), inputs.active)
        selects_box = self._of_kind(kind.chosen, "box")
        selects_cell = self._of_kind(kind.chosen, "cell")
        selects_size = self._of_kind(kind.chosen, "size")
        # A kind that selects one cell has no second corner: for the colors it is the first one.
        corner = jnp.where(selects_box, second.chosen, first.chosen)
        color_logits = network.color_logits(features, first.chosen, corner)
        color = self._choose(_COLOR, sampler, color_logits, jnp.asarray(self.colors)[kind.chosen])
        row_logits, column_logits = network.size_logits(features)
        row = self._choose(_ROW, sampler, row_logits)
        column = self._choose(_COLUMN, sampler, column_logits)

        is_colored = jnp.array([each.colored for each in self.kinds], jnp.bool_)[kind.chosen]
        # A part that the kind does not need was computed but counts 0: a flood fill adds those of first and color only.
        needed = [
            (first, selects_box | selects_cell),
            (second, selects_box),
            (color, is_colored),
            (row, selects_size),
            (column, selects_size),
        ]
        zero = jnp.float32(0)
        log_prob = kind.log_prob + sum((jnp.where(needs, part.log_prob, zero) for part, needs in needed), zero)
        entropy = kind.entropy + sum((jnp.where(needs, part.entropy, zero) for part, needs in needed), zero)
        last_cell = row.chosen * self.grid_shape[1] + column.chosen  # of the resized grid
        edit = Edit(kind.chosen, first.chosen, jnp.where(selects_size, last_cell, second.chosen), color.chosen)
        return PolicyOutput(edit, log_prob, entropy, network.value(features).astype(jnp.float32))

    def _choose(
        self,
        number: int,
        sampler: Sampler,
        logits: Float[Array, "B N"],
        allowed: Bool[Array, "B N"] | None = None,
    ) -> CategoricalSample:
        """Choose one of the parts, in float32; everything is allowed when nothing else is said."""
        if allowed is None:
            allowed = jnp.ones(logits.shape, jnp.bool_)
        return CategoricalSample.make(number, sampler, logits.astype(jnp.float32), allowed)

    def _of_kind(self, kind: Int32[Array, " B"], selects: Selects) -> Bool[Array, " B"]:
        """Return whether each kind selects a box, a cell or a size."""
        return jnp.array([each.selects == selects for each in self.kinds], jnp.bool_)[kind]


def missing_for_editing(config: JaxArcConfig) -> list[str]:
    """List what a config lacks for an :class:`EditPolicy`, each as one sentence; empty when nothing is missing."""
    wanted = {
        "observation.layout": (config.observation.layout, "dict"),
        "observation.reveal_target": (config.observation.reveal_target, True),
        "observation.include_step_count": (config.observation.include_step_count, True),
        "action.selection_format": (config.action.selection_format, "bbox"),
    }
    problems = [
        f"the policy edits boxes towards a visible target, so {name} must be {needed!r}, got {value!r}"
        for name, (value, needed) in wanted.items()
        if value != needed
    ]
    if c.SUBMIT not in config.legal_operations:
        problems.append("the policy hands in its grid, so action.allowed_operations must include 34 (submit)")
    return problems
