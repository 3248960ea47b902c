"""Agents that need no training to be here: one that submits at once, and a trained policy made to play attempts."""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxarc import constants as c
from jaxarc.agents.policy import EditPolicy
from jaxarc.config import JaxArcConfig
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.evaluation.agent import Agent, Memory, Place
from jaxarc.types import Observation, PRNGKey


class SubmitPolicy(eqx.Module):
    """Hands in the grid as it stands: right exactly where the answer is the input."""

    selection_format: str = eqx.field(static=True)
    grid_shape: tuple[int, int] = eqx.field(static=True)

    @classmethod
    def for_config(cls, config: JaxArcConfig) -> "SubmitPolicy":
        """Make the policy of environments with this config."""
        return cls(config.action.selection_format, config.grid_shape)

    def __call__(self, key: PRNGKey, observation: Observation) -> StructuredAction:
        return submission(self.selection_format, self.grid_shape)


class EditAgent(Agent):
    """A trained :class:`EditPolicy`: the first attempt is its likeliest choice at every step, the others are drawn."""

    policy: EditPolicy

    def start(self, key: PRNGKey, place: Place) -> Memory:
        return place.attempt_index

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[StructuredAction, Memory]:
        batch = jax.tree.map(lambda x: x[None], observation)
        likeliest, drawn = self.policy.greedy(batch), self.policy.sample(key, batch).edit
        edit = jax.tree.map(lambda a, b: jnp.where(memory == 0, a, b), likeliest, drawn)
        return jax.tree.map(lambda x: x[0], self.policy.to_action(edit)), memory


def submission(selection_format: str, grid_shape: tuple[int, int]) -> StructuredAction:
    """Return the action that submits; its selection does not matter."""
    if selection_format == "mask":
        return MaskAction(c.SUBMIT, jnp.zeros(grid_shape, jnp.bool_))
    return PointAction(c.SUBMIT, 0, 0) if selection_format == "point" else BboxAction(c.SUBMIT, 0, 0, 0, 0)
