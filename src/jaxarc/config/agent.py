"""How an agent learns with proximal policy optimization."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range


@dataclass(frozen=True)
class AgentConfig(CheckedConfig):
    num_envs: int = 256  # B, environments that run side by side
    rollout_steps: int = 16  # S, steps of each environment between two updates
    num_epochs: int = 1  # passes over the samples of an update
    num_minibatches: int = 16  # a minibatch holds whole trajectories; 256 samples fit a CPU's cache
    adam_b2: float = 0.99
    max_grad_norm: float = 1.0
    gamma: float = 0.9  # discount of the agent
    gae_lambda: float = 0.9
    clip_range: float = 0.2  # how far the probability ratio may move
    normalize_advantages: bool = True  # to mean 0 and deviation 1 over an update
    value_weight: float = 0.25  # times the squared error of the value
    last_reward_weight: float = 0.0  # auxiliary head (cells, residual_cnn): the reward of the step before, r(t-1)
    reward_weight: float = 0.0  # auxiliary head: the reward of this step, r(t)
    next_grid_weight: float = 0.0  # auxiliary head: the working grid after this step, s(t+1)

    @property
    def samples_per_update(self) -> int:
        """Environment steps between two updates."""
        return self.num_envs * self.rollout_steps

    @property
    def has_auxiliary_heads(self) -> bool:
        return max(self.last_reward_weight, self.reward_weight, self.next_grid_weight) > 0

    def validate(self) -> list[str]:
        counts = ("num_envs", "rollout_steps", "num_epochs", "num_minibatches")
        weights = ("value_weight", "last_reward_weight", "reward_weight", "next_grid_weight")
        problems = [
            *[problem for name in counts for problem in at_least(name, getattr(self, name), 1)],
            *[problem for name in weights for problem in in_range(name, getattr(self, name), 0.0, 1e6)],
            *in_range("adam_b2", self.adam_b2, 0.0, 1.0),
            *in_range("max_grad_norm", self.max_grad_norm, 1e-6, 1e6),
            *in_range("gamma", self.gamma, 0.0, 1.0),
            *in_range("gae_lambda", self.gae_lambda, 0.0, 1.0),
            *in_range("clip_range", self.clip_range, 0.0, 1.0),
        ]
        if not problems and self.num_envs % self.num_minibatches:
            problems.append(
                f"num_minibatches must divide num_envs, because a minibatch holds whole trajectories; "
                f"got {self.num_minibatches} and {self.num_envs}"
            )
        return problems
