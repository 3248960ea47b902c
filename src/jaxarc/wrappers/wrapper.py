"""What every wrapper shares: the environment inside, and its spaces."""

from typing import Any

from jaxarc.envs.environment import Environment, State
from jaxarc.envs.params import EnvParams
from jaxarc.envs.spaces import Space


class Wrapper(Environment[State]):
    """An environment around another; spaces are those of the inner one unless a wrapper says otherwise."""

    env: Environment[Any]

    def __post_init__(self) -> None:
        if not isinstance(self.env, Environment):
            raise TypeError(f"a wrapper goes around an environment, got {type(self.env).__name__}; see jaxarc.make")

    def action_space(self, params: EnvParams) -> Space:
        return self.env.action_space(params)

    def observation_space(self, params: EnvParams) -> Space:
        return self.env.observation_space(params)
