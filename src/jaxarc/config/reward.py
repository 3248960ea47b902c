"""What a step pays."""

from dataclasses import dataclass, fields

from jaxarc.config.build import CheckedConfig, finite, in_range


@dataclass(frozen=True)
class RewardConfig(CheckedConfig):
    similarity_weight: float = 1.0  # times (gamma * new similarity - old similarity); training only
    gamma: float = 1.0  # discount of the shaping term; equal to the agent's, it leaves the best policy as it is
    step_penalty: float = -0.01  # paid on every step
    success_bonus: float = 10.0  # paid by the submit that solves
    unsolved_submission_penalty: float = -1.0  # paid by a submit that does not solve
    invalid_action_penalty: float = -0.1  # paid by an invalid or illegal action
    score_on_submit: bool = False  # in test mode: whether a submit pays its success term

    def validate(self) -> list[str]:
        numbers = [field.name for field in fields(self) if field.name != "score_on_submit"]
        return [
            *[problem for name in numbers for problem in finite(name, getattr(self, name))],
            *in_range("gamma", self.gamma, 0.0, 1.0),
        ]
