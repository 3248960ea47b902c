"""The base of all wrappers, and the one that starts the next episode in the very step that ends one."""

import dataclasses
from typing import Any, final

import jax
from jaxtyping import Array, Int

from jaxarc.envs.environment import Action, Defaults, Environment, State, Step
from jaxarc.envs.params import EnvParams
from jaxarc.envs.spaces import Space
from jaxarc.types import Info, Observation, PRNGKey


class Wrapper(Environment[State]):
    """An environment around another; every method is that of the inner one unless a wrapper overrides it."""

    env: Environment[Any]

    def __post_init__(self) -> None:
        if not isinstance(self.env, Environment):
            raise TypeError(f"a wrapper goes around an environment, got {type(self.env).__name__}; see jaxarc.make")

    @property
    def defaults(self) -> Defaults | None:
        return self.env.defaults

    def reset(
        self,
        key: PRNGKey,
        params: EnvParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[State, Observation]:
        """Start an episode; see :meth:`jaxarc.ArcEnvironment.reset`."""
        return self.env.reset(key, params, task_index, pair_index)

    def reset_next(self, state: State, params: EnvParams) -> tuple[State, Observation]:
        """Start the next episode; see :meth:`Environment.reset_next`."""
        return self.env.reset_next(state, params)

    def step(self, state: State, action: Action, params: EnvParams) -> Step[State]:
        """Take one step; see :meth:`jaxarc.ArcEnvironment.step`."""
        return self.env.step(state, action, params)

    def observe(self, state: State, params: EnvParams) -> Observation:
        """Show a state as ``reset`` and ``step`` do."""
        return self.env.observe(state, params)

    def info(self, state: State, params: EnvParams) -> Info:
        """Metrics of a state, with the keys of a step's info."""
        return self.env.info(state, params)

    def action_space(self, params: EnvParams) -> Space:
        """The legal actions."""
        return self.env.action_space(params)

    def observation_space(self, params: EnvParams) -> Space:
        """A space that holds every observation."""
        return self.env.observation_space(params)


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
