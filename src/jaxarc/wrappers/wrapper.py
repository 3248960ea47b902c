"""The base of all wrappers, and the one that starts the next episode in the very step that ends one."""

import dataclasses
from typing import Any, final

import jax
from jaxtyping import Array, Int

from jaxarc.interface import Environment, State, Step
from jaxarc.spaces import Space
from jaxarc.types import Info, Observation, PRNGKey


class Wrapper(Environment[State, Any]):
    """An environment around another; every method is that of the inner one unless a wrapper overrides it."""

    env: Environment[Any, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.env, Environment):
            raise TypeError(f"a wrapper goes around an environment, got {type(self.env).__name__}; see jaxarc.make")

    def reset(
        self,
        key: PRNGKey,
        params: Any,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[State, Observation]:
        """Start an episode; see :meth:`jaxarc.ArcEnvironment.reset`."""
        return self.env.reset(key, params, task_index, pair_index)

    def reset_next(self, state: State, params: Any) -> tuple[State, Observation]:
        """Start the next episode; see :meth:`Environment.reset_next`."""
        return self.env.reset_next(state, params)

    def step(self, state: State, action: Any, params: Any) -> Step[State]:
        """Take one step; see :meth:`jaxarc.ArcEnvironment.step`."""
        return self.env.step(state, action, params)

    def observe(self, state: State, params: Any) -> Observation:
        """Show a state as ``reset`` and ``step`` do."""
        return self.env.observe(state, params)

    def info(self, state: State, params: Any) -> Info:
        """Metrics of a state, with the keys of a step's info."""
        return self.env.info(state, params)

    def action_space(self, params: Any) -> Space:
        """The legal actions."""
        return self.env.action_space(params)

    def observation_space(self, params: Any) -> Space:
        """A space that holds every observation."""
        return self.env.observation_space(params)

    def require(self, params: Any) -> None:
        self.env.require(params)

    def checks_actions(self, params: Any) -> bool:
        return self.env.checks_actions(params)

    def executor(self, params: Any) -> str:
        return self.env.executor(params)

    def info_of_observation(self, params: Any) -> tuple[str, ...]:
        return self.env.info_of_observation(params)

    @property
    def name(self) -> str:
        return self.env.name

    @property
    def default_params(self) -> Any:
        return self.env.default_params


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

    env: Environment[State, Any]

    def step(self, state: State, action: Any, params: Any) -> Step[State]:
        """Take one step, and start the next episode where it ended; see :meth:`Environment.step_and_reset`."""
        return self.env.step_and_reset(state, action, params)

    def info(self, state: State, params: Any) -> Info:
        return {**self.env.info(state, params), "final_observation": self.env.observe(state, params)}


def resets_itself(env: Environment[Any, Any]) -> bool:
    """Whether an environment is or wraps an :class:`AutoReset`."""
    while isinstance(env, Wrapper):
        if isinstance(env, AutoReset):
            return True
        env = env.env
    return False
