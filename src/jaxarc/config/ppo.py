"""How an agent learns with proximal policy optimization, and how large its network is."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, finite, in_range


@dataclass(frozen=True)
class PPOConfig(CheckedConfig):
    num_envs: int = 256  # B, environments that run side by side
    rollout_steps: int = 16  # S, steps of each environment between two updates
    num_epochs: int = 1  # passes over the samples of an update
    num_minibatches: int = 16  # a minibatch holds whole trajectories; 256 samples fit a CPU's cache
    learning_rate: float = 4e-3  # of Adam, at the start
    final_learning_rate: float = 2e-4  # reached in a straight line at the end; the decay avoids a late collapse
    adam_b2: float = 0.99
    max_grad_norm: float = 1.0
    gamma: float = 0.9  # discount of the agent
    gae_lambda: float = 0.9
    clip_range: float = 0.2  # how far the probability ratio may move
    entropy_weight: float = 0.01
    value_weight: float = 0.25  # times the squared error of the value
    hidden_size: int = 16  # C, channels of a cell
    num_layers: int = 2  # layers of the trunk, the input layer included
    submit_bias: float = -3.0  # first logit of submit against paint: an early submit ends an episode that teaches
    resize_bias: float = -2.0  # first logit of resize against paint
    same_cell_bias: float = 3.0  # first logit of "the second corner is the first": most first paints are one cell

    @property
    def samples_per_update(self) -> int:
        """Environment steps between two updates."""
        return self.num_envs * self.rollout_steps

    def validate(self) -> list[str]:
        counts = ("num_envs", "rollout_steps", "num_epochs", "num_minibatches", "hidden_size", "num_layers")
        numbers = ("submit_bias", "resize_bias", "same_cell_bias")
        problems = [
            *[problem for name in counts for problem in at_least(name, getattr(self, name), 1)],
            *[problem for name in numbers for problem in finite(name, getattr(self, name))],
            *in_range("learning_rate", self.learning_rate, 0.0, 1.0),
            *in_range("final_learning_rate", self.final_learning_rate, 0.0, self.learning_rate),
            *in_range("adam_b2", self.adam_b2, 0.0, 1.0),
            *in_range("max_grad_norm", self.max_grad_norm, 1e-6, 1e6),
            *in_range("gamma", self.gamma, 0.0, 1.0),
            *in_range("gae_lambda", self.gae_lambda, 0.0, 1.0),
            *in_range("clip_range", self.clip_range, 0.0, 1.0),
            *in_range("entropy_weight", self.entropy_weight, 0.0, 1e6),
            *in_range("value_weight", self.value_weight, 0.0, 1e6),
        ]
        if not problems and self.num_envs % self.num_minibatches:
            problems.append(
                f"num_minibatches must divide num_envs, because a minibatch holds whole trajectories; "
                f"got {self.num_minibatches} and {self.num_envs}"
            )
        return problems
