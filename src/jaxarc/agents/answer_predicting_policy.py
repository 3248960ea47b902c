"""A policy for hidden answers: it imagines the answer once, and edits towards it as if it were shown."""

import equinox as eqx
from jaxtyping import Array, Int8

from jaxarc.agents.answers.learning import puzzle_of
from jaxarc.agents.answers.predictor import AnswerPredictor
from jaxarc.agents.policy import EditPolicy
from jaxarc.config import JaxArcConfig
from jaxarc.types import Observation


class AnswerPredictingPolicy(eqx.Module):
    """A predictor of answers and an editor that practiced on shown ones.

    It takes a batch of observations with the keys ``working_grid``, ``input_grid``, ``demonstrations``, ``step_count``.
    """

    predictor: AnswerPredictor
    editor: EditPolicy

    def predict_answer(self, observation: Observation) -> Int8[Array, "B H W"]:
        """Predict the answers; the same at every step of an episode."""
        return self.predictor.predict(puzzle_of(observation))


def with_answer(observation: Observation, answer: Int8[Array, "B H W"]) -> Observation:
    """Put an imagined answer where a shown one would be."""
    return {
        "working_grid": observation["working_grid"],
        "step_count": observation["step_count"],
        "target_grid": answer,
    }


def answer_shown_config(config: JaxArcConfig) -> JaxArcConfig:
    """Return the rules by which the editor of an imagining policy practices: as they are, but the answer is shown."""
    return config.with_fields(reveal_target=True, include_demonstrations=False, include_input=False)


def missing_for_answer_prediction(config: JaxArcConfig) -> list[str]:
    """List what a config lacks for an :class:`AnswerPredictingPolicy`, each as one sentence; else empty."""
    wanted = {
        "observation.reveal_target": (config.observation.reveal_target, False),
        "observation.include_demonstrations": (config.observation.include_demonstrations, True),
        "observation.include_input": (config.observation.include_input, True),
    }
    return [
        f"with answer.source 'imagined' the policy works out the answer from the demonstrations, so {name} must be "
        f"{needed!r}, got {value!r}"
        for name, (value, needed) in wanted.items()
        if value != needed
    ]
