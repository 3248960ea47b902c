"""A policy over grid edits that chooses the parts of an edit one after the other."""

from typing import Final, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key

from jaxarc import constants as c
from jaxarc.agents.categorical import CategoricalSample, Sampler, draw, likeliest
from jaxarc.agents.edits import Edit, Kind, Selects, allowed_colors, from_action, kinds_of, to_action
from jaxarc.agents.networks import Network, PolicyInput, make_network
from jaxarc.config import JaxArcConfig, NetworkConfig
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.parallel.shards import UNSHARDED, DataShard
from jaxarc.types import Observation, PRNGKey

_NUM_CHOICES: Final = 6
_KIND, _FIRST, _SECOND, _COLOR, _ROW, _COLUMN = range(_NUM_CHOICES)


class PolicyOutput(NamedTuple):
    """An edit for each environment, and what learning needs to know about it."""

    edit: Edit
    log_prob: Float32[Array, " B"]  # of the parts that the kind needs
    entropy: Float32[Array, " B"]  # of each choice given those before it; its mean is that of the whole edit
    value: Float32[Array, " B"]


class EditPolicy(eqx.Module):
    """Chooses among the actions that an environment with boxes allows.

    It takes a batch of observations with the keys ``working_grid``, ``target_grid`` and ``step_count``.
    """

    network: Network
    kinds: tuple[Kind, ...] = eqx.field(static=True)
    colors: tuple[tuple[bool, ...], ...] = eqx.field(static=True)  # which colors each kind may use
    grid_shape: tuple[int, int] = eqx.field(static=True)
    max_episode_steps: int = eqx.field(static=True)

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
        )

    def sample(self, key: PRNGKey, observation: Observation, shard: DataShard = UNSHARDED) -> PolicyOutput:
        """Draw an edit for each observation.

        Every device draws the random numbers of all environments, which is cheap beside the network, and takes those of
        its own: so an environment's edit does not depend on the number of devices.
        """
        # [6, B] numbers, one for each choice of each environment of all devices; this device keeps its own columns.
        batch = observation["step_count"].shape[0] * shard.count
        uniform = shard.local_slice(jax.random.uniform(key, (_NUM_CHOICES, batch), jnp.float32), axis=1)
        return self._decide(observation, lambda number, logits, allowed: draw(uniform[number], logits, allowed))

    def greedy(self, observation: Observation) -> Edit:
        """Choose the likeliest part in every choice."""
        return self._decide(observation, likeliest).edit

    def act(self, observation: Observation) -> BboxAction:
        """Return the action of the greedy edit."""
        return self.to_action(self.greedy(observation))

    def evaluate(self, observation: Observation, edit: Edit) -> PolicyOutput:
        """Return log-probability, entropy and value of given edits."""
        # The second part may be the last cell of a resized grid: on 3 columns cell 7 is row 2, column 1. For other
        # kinds row and column are not needed, so any valid numbers will do.
        width = self.grid_shape[1]
        given = (edit.kind, edit.first, edit.second, edit.color, edit.second // width, edit.second % width)
        return self._decide(observation, lambda number, logits, allowed: given[number])

    def value(self, observation: Observation) -> Float32[Array, " B"]:
        """Return the expected discounted reward from each observation on."""
        return self.network.value(self.network.encode(self._inputs(observation)))

    def to_action(self, edit: Edit) -> BboxAction:
        """Turn edits into actions of the environment."""
        return to_action(edit, self.kinds, self.grid_shape[1])

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
        return PolicyOutput(edit, log_prob, entropy, network.value(features))

    def _choose(
        self,
        number: int,
        sampler: Sampler,
        logits: Float32[Array, "B N"],
        allowed: Bool[Array, "B N"] | None = None,
    ) -> CategoricalSample:
        """Make one of the choices; everything is allowed when nothing else is said."""
        if allowed is None:
            allowed = jnp.ones(logits.shape, jnp.bool_)
        return CategoricalSample.make(number, sampler, logits, allowed)

    def _of_kind(self, kind: Int32[Array, " B"], selects: Selects) -> Bool[Array, " B"]:
        """Return whether each kind selects a box, a cell or a size."""
        return jnp.array([each.selects == selects for each in self.kinds], jnp.bool_)[kind]


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
