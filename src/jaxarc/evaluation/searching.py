"""An agent that learns nothing: it searches short programs for one that explains the demonstrations."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int8

from jaxarc.agents.answer_predicting_policy import with_answer
from jaxarc.agents.answers.learning import puzzle_of
from jaxarc.agents.answers.programs import search_answers
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.evaluation.agent import Agent, EpisodeSpec, Memory
from jaxarc.experts import GreedyPainter
from jaxarc.types import Observation, PRNGKey


class SearchAgent(Agent):
    """Takes the answer of the best program, in the second attempt that of the next other one, and paints it."""

    painter: GreedyPainter = GreedyPainter()

    def start(self, key: PRNGKey, place: EpisodeSpec, observation: Observation) -> Memory:
        answers = search_answers(puzzle_of(jax.tree.map(lambda x: x[None], observation)))[0]
        return _nth_distinct(answers, place.attempt_index)

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[StructuredAction, Memory]:
        return self.painter(key, with_answer(observation, memory)), memory


def _nth_distinct(grids: Int8[Array, "N H W"], n: Array) -> Int8[Array, "H W"]:
    """Return the grid that is the n-th different one, counted from 0; the first where there are not so many."""
    equal = (grids[:, None] == grids[None]).all(axis=(2, 3))
    is_new = ~jnp.tril(equal, -1).any(axis=1)
    rank = jnp.cumsum(is_new, dtype=jnp.int32) - 1
    return grids[jnp.argmax(is_new & (rank == n))]
