"""A policy over grid edits that chooses one part after the other, each knowing those before it."""

from typing import Final, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key

from jaxarc import constants as c
from jaxarc.agents.auxiliary import AuxiliaryHeads, AuxiliaryLosses, Outcome
from jaxarc.agents.categorical import CategoricalSample, Sampler, draw, likeliest
from jaxarc.agents.edits import Edit, from_action, to_action
from jaxarc.agents.kinds import Kind, allowed_colors, kinds_of
from jaxarc.agents.networks import Network, PolicyInput, make_network
from jaxarc.agents.networks.cells import CellFeatures
from jaxarc.config import JaxArcConfig, NetworkConfig
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.parallel.shards import UNSHARDED, DataShard
from jaxarc.types import Observation, PRNGKey

_NUM_CHOICES: Final = 6
_KIND, _FIRST, _SECOND, _COLOR, _ROW, _COLUMN = range(_NUM_CHOICES)


class PolicyOutput(NamedTuple):
    """An edit, and what learning needs to know about it."""

    edit: Edit
    log_prob: Float32[Array, " B"]  # of the parts that the kind needs
    entropy: Float32[Array, " B"]  # of each choice given those before it; its mean is that of the whole edit
    value: Float32[Array, " B"]


class EditPolicy(eqx.Module):
    """Chooses among the actions that an environment with boxes allows.

    It takes a batch of observations with the keys ``working_grid``, ``target_grid`` and ``step_count``.
    """

    network: Network
    auxiliary: AuxiliaryHeads | None  # only for learning
    kinds: tuple[Kind, ...] = eqx.field(static=True)
    colors: tuple[tuple[bool, ...], ...] = eqx.field(static=True)  # which colors each kind may use
    grid_shape: tuple[int, int] = eqx.field(static=True)
    max_episode_steps: int = eqx.field(static=True)

    @classmethod
    def create(
        cls, key: Key[Array, ""], config: JaxArcConfig, network: NetworkConfig, has_auxiliary_heads: bool = False
    ) -> Self:
        """Make a fresh policy for environments with this config.

        Raises:
            ValueError: see :func:`missing_for_editing`.
        """
        if problems := missing_for_editing(config):
            raise ValueError("; ".join(problems))
        kinds, auxiliary = kinds_of(config), None
        if has_auxiliary_heads:
            key, key_heads = jax.random.split(key)
            auxiliary = AuxiliaryHeads(key_heads, network.hidden_size, len(kinds), config.grid_shape)
        return cls(
            auxiliary=auxiliary,
            network=make_network(key, config.grid_shape, kinds, network),
            kinds=kinds,
            colors=tuple(map(tuple, allowed_colors(kinds, config).tolist())),
            grid_shape=config.grid_shape,
            max_episode_steps=config.environment.max_episode_steps,
        )

    def sample(self, key: PRNGKey, observation: Observation, shard: DataShard = UNSHARDED) -> PolicyOutput:
        """Draw an edit for each observation.

        The chance of an environment depends on the key and its number in the whole batch, of which the observations
        are a share: the draws of all are cheap beside the network.
        """
        batch = observation["step_count"].shape[0] * shard.count
        chance = shard.local_slice(jax.random.uniform(key, (_NUM_CHOICES, batch), jnp.float32), axis=1)
        return self._decide(observation, lambda number, logits, allowed: draw(chance[number], logits, allowed))

    def greedy(self, observation: Observation) -> Edit:
        """Choose the likeliest place in every choice."""
        return self._decide(observation, likeliest).edit

    def act(self, observation: Observation) -> BboxAction:
        """Return the action of the greedy edit."""
        return self.to_action(self.greedy(observation))

    def evaluate(self, observation: Observation, edit: Edit) -> PolicyOutput:
        """Return log-probability, entropy and value of given edits."""
        width = self.grid_shape[1]
        given = (edit.kind, edit.first, edit.second, edit.color, edit.second // width, edit.second % width)
        return self._decide(observation, lambda number, logits, allowed: given[number])

    def value(self, observation: Observation) -> Float32[Array, " B"]:
        """Return the expected discounted reward from each observation on."""
        return self.network.value(self.network.encode(self._view(observation)))

    def auxiliary_losses(self, observation: Observation, edit: Edit, outcome: Outcome) -> AuxiliaryLosses:
        """Return how far off the auxiliary heads are, for given edits and what came of them.

        Raises:
            ValueError: the policy has no such heads, or its network no cells for them to read.
        """
        features = self.network.encode(self._view(observation))
        if self.auxiliary is None or not isinstance(features, CellFeatures):
            raise ValueError("auxiliary losses need auxiliary heads and a network of kind cells or residual_cnn")
        return self.auxiliary.losses(features.cells, features.whole, edit, outcome)

    def to_action(self, edit: Edit) -> BboxAction:
        """Turn edits into actions of the environment."""
        return to_action(edit, self.kinds, self.grid_shape[1])

    def from_action(self, action: BboxAction) -> Edit:
        """Turn actions into edits; each operation must belong to one of the policy's kinds."""
        return from_action(action, self.kinds, self.grid_shape[1])

    def _view(self, observation: Observation) -> PolicyInput:
        time = observation["step_count"].astype(jnp.float32) / self.max_episode_steps
        return PolicyInput(observation["working_grid"], observation["target_grid"], time)

    def _decide(self, observation: Observation, choose: Sampler) -> PolicyOutput:
        inputs, network = self._view(observation), self.network
        features = network.encode(inputs)
        everything = lambda logits: jnp.ones(logits.shape, jnp.bool_)
        make = lambda number, logits, allowed: CategoricalSample.make(number, choose, logits, allowed)

        logits = network.kind_logits(features)
        kind = make(_KIND, logits, everything(logits))
        first = make(_FIRST, network.first_logits(features, kind.chosen), inputs.active)
        second = make(_SECOND, network.second_logits(features, first.chosen), inputs.active)
        has = lambda *parts: jnp.array([each.selects in parts for each in self.kinds], jnp.bool_)[kind.chosen]
        # Painting one cell: the other corner is the first one, also for the colors.
        corner = jnp.where(has("box"), second.chosen, first.chosen)
        color_logits = network.color_logits(features, first.chosen, corner)
        color = make(_COLOR, color_logits, jnp.asarray(self.colors)[kind.chosen])
        rows, columns = network.size_logits(features)
        row, column = make(_ROW, rows, everything(rows)), make(_COLUMN, columns, everything(columns))

        colored = jnp.array([each.colored for each in self.kinds], jnp.bool_)[kind.chosen]
        needed = [(first, has("box", "cell")), (second, has("box")), (color, colored)]
        needed += [(row, has("size")), (column, has("size"))]
        total = lambda part: (
            kind[part]
            + sum((jnp.where(needs, choice[part], jnp.float32(0)) for choice, needs in needed), jnp.float32(0))
        )
        size = row.chosen * self.grid_shape[1] + column.chosen
        edit = Edit(kind.chosen, first.chosen, jnp.where(has("size"), size, second.chosen), color.chosen)
        return PolicyOutput(edit, total(1), total(2), network.value(features))


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
    if c.SUBMIT not in config.legal_operations:
        problems.append("the policy hands in its grid, so action.allowed_operations must include 34 (submit)")
    return problems
