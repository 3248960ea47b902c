"""Start the next episode in the very step that ends one."""

import dataclasses
from typing import Any, final

import jax

from jaxarc.envs.environment import Action, Environment, State, Step
from jaxarc.envs.params import EnvParams
from jaxarc.types import Info
from jaxarc.wrappers.wrapper import Wrapper


@final
@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class AutoReset(Wrapper[State]):
    """Same-step auto-reset: a step that ends an episode returns the next one's first state and observation.

    ``reward``, ``done`` and ``info`` belong to the episode that ended; ``info["final_observation"]`` is the observation
    before any reset, on every step, and ``info["action_mask"]``, where there is one, belongs to the observation that is
    returned. The params are kept, so curricula survive. Wrap it directly around the environment,
    or around :class:`~jaxarc.wrappers.Trials`.
    """

    env: Environment[State]

    def step(self, state: State, action: Action, params: EnvParams) -> Step[State]:
        """Take one step, and start the next episode where it ended; see :meth:`Environment.step_and_reset`."""
        return self.env.step_and_reset(state, action, params)

    def info(self, state: State, params: EnvParams) -> Info:
        return {**self.env.info(state, params), "final_observation": self.env.observe(state, params)}


def resets_itself(env: Environment[Any]) -> bool:
    """Whether an environment is or wraps an :class:`AutoReset`."""
    while isinstance(env, Wrapper):
        if isinstance(env, AutoReset):
            return True
        env = env.env
    return False
