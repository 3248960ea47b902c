"""Agents of evaluations: one that submits at once, and a trained policy that plays attempts."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

from jaxarc import constants as c
from jaxarc.agents.answers.predictor import Predictor, predict_answer, with_answer
from jaxarc.agents.policy import EditPolicy
from jaxarc.config import JaxArcConfig
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.evaluation.agent import Agent, EpisodeSpec, Memory
from jaxarc.experts.candidates import candidates_of_canvas, require_count
from jaxarc.experts.canvas_state import canvas_of_observation, check_edits
from jaxarc.prng import as_typed_key
from jaxarc.surrogate import CandidateScorer, EditScorer
from jaxarc.surrogate.scorers import CountingScorer, choose_box
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
    """A trained :class:`EditPolicy`: the first attempt is its likeliest choice at every step, the others are drawn.

    Where the answer is hidden, the predictor makes one before the first step, and the policy edits towards it.
    """

    policy: EditPolicy
    predictor: Predictor | None = None  # None where the answer is shown

    def start(self, key: PRNGKey, spec: EpisodeSpec, observation: Observation) -> Memory:
        # The predictor takes a batch, here of one. The answer is kept in memory: it is the same at every step.
        answers = predict_answer(self.predictor, jax.tree.map(lambda x: x[None], observation))
        return spec.attempt_index, None if answers is None else answers[0]

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[StructuredAction, Memory]:
        attempt_index, answer = memory
        return _edit(self.policy, key, with_answer(observation, answer), attempt_index), memory


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


class SurrogateAgent(eqx.Module):
    """Draws candidates and takes the one that a surrogate scores highest; of equals the first.

    It takes the place of a :class:`jaxarc.experts.lookahead.LookaheadAgent`, and with the same key it draws the same
    candidates. They are drawn from the target, as the expert's are, so this agent imitates a teacher and is no solver:
    observations must show what :func:`jaxarc.experts.lookahead.missing_for_lookahead` asks for.

    Raises:
        ValueError: actions are no boxes, or there are too few candidates.
    """

    model: CountingScorer | CandidateScorer | EditScorer
    config: JaxArcConfig = eqx.field(static=True)
    num_candidates: int = eqx.field(static=True, default=256)

    def __check_init__(self) -> None:
        if self.config.action.selection_format != "bbox":
            raise ValueError(
                f"a surrogate scores boxes, but action.selection_format is {self.config.action.selection_format!r}; "
                "set it to 'bbox'"
            )
        require_count(self.num_candidates, self.config)

    def __call__(self, key: PRNGKey, observation: Observation) -> BboxAction:
        """Choose the action of one environment."""
        key_candidates, _ = jax.random.split(as_typed_key(key))
        canvas_state = canvas_of_observation(observation, self.config)
        actions, is_distinct = candidates_of_canvas(key_candidates, canvas_state, self.num_candidates, self.config)
        assert isinstance(actions, BboxAction)
        is_real = is_distinct & check_edits(actions, self.config).is_valid
        index = choose_box(self.model, observation, actions, is_real)
        return jax.tree.map(lambda leaf: leaf[index], actions)
