"""Start the next episode in the very step that ends one."""

import dataclasses
from typing import Any

import jax

from jaxarc.envs.compilation import compiled
from jaxarc.envs.environment import Action, Environment, State, Step, checks_actions
from jaxarc.envs.params import EnvParams
from jaxarc.types import Info
from jaxarc.wrappers.conditional_reset import reset_where, with_next_mask
from jaxarc.wrappers.wrapper import Wrapper


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
        return _step(self.env, state, action, params)

    def info(self, state: State, params: EnvParams) -> Info:
        return {**self.env.info(state, params), "final_observation": self.env.observe(state, params)}


def resets_itself(env: Environment[Any]) -> bool:
    """Whether an environment is or wraps an :class:`AutoReset`."""
    while isinstance(env, Wrapper):
        if isinstance(env, AutoReset):
            return True
        env = env.env
    return False


@compiled(may_raise=lambda env, state, action, params: checks_actions(params))
def _step(env: Environment[State], state: State, action: Action, params: EnvParams) -> Step[State]:
    # The state of an ended episode is replaced where `done`; what is returned about the step is still that of the old
    # one.
    advanced = env.step_and_reset_natively(state, action, params)
    if advanced is None:
        ended, observation, reward, done, info = env.step(state, action, params)
        reset = lambda state, _, params: env.reset_next(state, params)[0]
        after = reset_where(done, reset, ended, (), params, env.reset_next_natively)
        next_observation = env.observe(after, params)
    else:
        (_, observation, reward, done, info), after, next_observation = advanced
    info = with_next_mask(env, {**info, "final_observation": observation}, after, params)
    return after, next_observation, reward, done, info
