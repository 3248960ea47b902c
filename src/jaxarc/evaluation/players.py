"""Agents that need no training to be here: one that submits at once, and a trained policy made to play attempts."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

from jaxarc import constants as c
from jaxarc.agents.answer_predicting_policy import AnswerPredictingPolicy, with_answer
from jaxarc.agents.policy import EditPolicy
from jaxarc.config import JaxArcConfig
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.evaluation.agent import Agent, EpisodeSpec, Memory
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

    def start(self, key: PRNGKey, place: EpisodeSpec, observation: Observation) -> Memory:
        return place.attempt_index

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[StructuredAction, Memory]:
        return _edit(self.policy, key, observation, memory), memory


class AnswerPredictingAgent(Agent):
    """A trained :class:`AnswerPredictingPolicy`: it imagines the answer once, then edits like an :class:`EditAgent`."""

    policy: AnswerPredictingPolicy

    def start(self, key: PRNGKey, place: EpisodeSpec, observation: Observation) -> Memory:
        answer = self.policy.predict_answer(jax.tree.map(lambda x: x[None], observation))[0]
        return place.attempt_index, answer

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[StructuredAction, Memory]:
        attempt_index, answer = memory
        return _edit(self.policy.editor, key, with_answer(observation, answer), attempt_index), memory


def _edit(
    policy: EditPolicy, key: PRNGKey, observation: Observation, attempt_index: Int32[Array, ""]
) -> StructuredAction:
    batch = jax.tree.map(lambda x: x[None], observation)
    likeliest, drawn = policy.greedy(batch), policy.sample(key, batch).edit
    edit = jax.tree.map(lambda a, b: jnp.where(attempt_index == 0, a, b), likeliest, drawn)
    return jax.tree.map(lambda x: x[0], policy.to_action(edit))


def submission(selection_format: str, grid_shape: tuple[int, int]) -> StructuredAction:
    """Return the action that submits; its selection does not matter."""
    if selection_format == "mask":
        return MaskAction(c.SUBMIT, jnp.zeros(grid_shape, jnp.bool_))
    return PointAction(c.SUBMIT, 0, 0) if selection_format == "point" else BboxAction(c.SUBMIT, 0, 0, 0, 0)
