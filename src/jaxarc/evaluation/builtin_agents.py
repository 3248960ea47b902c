"""Agents of evaluations: one that submits at once, short programs, and a trained policy that plays attempts."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int8, Int32

from jaxarc import constants as c
from jaxarc.agents.answers.predictor import AnswerPredictingPolicy, puzzle_of, with_answer
from jaxarc.agents.answers.programs import search_answers
from jaxarc.agents.policy import EditPolicy
from jaxarc.config import JaxArcConfig
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.evaluation.agent import Agent, EpisodeSpec, Memory
from jaxarc.experts import GreedyPainter
from jaxarc.types import Observation, PRNGKey


class SubmitPolicy(eqx.Module):
    """Submits at once: right where the answer equals the input."""

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

    def start(self, key: PRNGKey, spec: EpisodeSpec, observation: Observation) -> Memory:
        return spec.attempt_index

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[StructuredAction, Memory]:
        return _edit(self.policy, key, observation, memory), memory


class AnswerPredictingAgent(Agent):
    """A trained :class:`AnswerPredictingPolicy`: it predicts the answer once, then edits like an :class:`EditAgent`."""

    policy: AnswerPredictingPolicy

    def start(self, key: PRNGKey, spec: EpisodeSpec, observation: Observation) -> Memory:
        # The predictor takes a batch, here of one. The answer is kept in memory: it is the same at every step.
        answer = self.policy.predict_answer(jax.tree.map(lambda x: x[None], observation))[0]
        return spec.attempt_index, answer

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[StructuredAction, Memory]:
        attempt_index, answer = memory
        return _edit(self.policy.editor, key, with_answer(observation, answer), attempt_index), memory


def _edit(
    policy: EditPolicy, key: PRNGKey, observation: Observation, attempt_index: Int32[Array, ""]
) -> StructuredAction:
    batch = jax.tree.map(lambda x: x[None], observation)
    # Both are computed, and the number of the attempt chooses: under ``vmap`` attempts are mixed in a batch.
    likeliest = policy.greedy(batch)
    drawn = policy.sample(key, batch).edit
    edit = jax.tree.map(lambda a, b: jnp.where(attempt_index == 0, a, b), likeliest, drawn)
    return jax.tree.map(lambda x: x[0], policy.to_action(edit))


def submission(selection_format: str, grid_shape: tuple[int, int]) -> StructuredAction:
    """Return the action that submits; its selection does not matter."""
    if selection_format == "mask":
        return MaskAction(c.SUBMIT, jnp.zeros(grid_shape, jnp.bool_))
    if selection_format == "point":
        return PointAction(c.SUBMIT, 0, 0)
    return BboxAction(c.SUBMIT, 0, 0, 0, 0)


class ShortProgramAgent(Agent):
    """Searches short programs that explain the demonstrations, and paints the answer of the best one.

    The second attempt paints the next answer that differs from the first. Nothing is learned.
    """

    painter: GreedyPainter = GreedyPainter()

    def start(self, key: PRNGKey, spec: EpisodeSpec, observation: Observation) -> Memory:
        # All programs are tried once; attempt n paints their n-th distinct answer.
        answers = search_answers(puzzle_of(jax.tree.map(lambda x: x[None], observation)))[0]
        return _nth_distinct(answers, spec.attempt_index)

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[StructuredAction, Memory]:
        return self.painter(key, with_answer(observation, memory)), memory


def _nth_distinct(grids: Int8[Array, "N H W"], n: Array) -> Int8[Array, "H W"]:
    """Return the n-th distinct grid, counted from 0, and the first grid where there are fewer.

    Of the grids ``A A B A C`` each first copy is new, ``1 0 1 0 1``, and a running sum numbers them ``0 0 1 1 2``: the
    second distinct grid, ``n = 1``, is the one that is new and has the number 1, ``B``.
    """
    # [N, N] which grids are equal. Below the diagonal are the earlier ones, so a grid with none there is new; the
    # running count of new ones, less 1, is its rank.
    equal = (grids[:, None] == grids[None]).all(axis=(2, 3))
    is_new = ~jnp.tril(equal, -1).any(axis=1)
    rank = jnp.cumsum(is_new, dtype=jnp.int32) - 1
    return grids[jnp.argmax(is_new & (rank == n))]
