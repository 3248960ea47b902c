"""The interface of agents and wrappers: what ARC's environment, a game, and a wrapper around either have in common."""

import abc
from typing import Any, Generic, TypeVar

from jaxtyping import Array, Bool, Float32, Int

from jaxarc.compilation import compiled, in_our_order
from jaxarc.rows import reset_where
from jaxarc.spaces import Discrete, Space
from jaxarc.types import Info, Observation, PRNGKey

State = TypeVar("State")
Params = TypeVar("Params")
Step = tuple[State, Observation, Float32[Array, ""], Bool[Array, ""], Info]


class Environment(abc.ABC, Generic[State, Params]):
    """The interface of agents and wrappers; every method is pure and works under jit, vmap and scan.

    Every kind is a frozen dataclass that is a pytree, and no ``eqx.Module``: looking up a method of one takes longer
    than a step. A kind of your own derives from this class or from :class:`jaxarc.wrappers.Wrapper`. Those of this
    package are final: compiled programs take their parts as one, so that a part that is overridden would be left out.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for base in cls.__mro__[1:]:
            if "__final__" in vars(base):  # of typing.final
                instead = "jaxarc.wrappers.Wrapper, and put it around one, or from jaxarc.Environment"
                raise TypeError(f"{base.__name__} is final; derive {cls.__name__} from {instead}")
        if "step" in cls.__dict__:
            cls.step = in_our_order(cls.step)

    @abc.abstractmethod
    def reset(
        self,
        key: PRNGKey,
        params: Params,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[State, Observation]:
        """Start an episode; see :meth:`jaxarc.ArcEnvironment.reset`."""

    @abc.abstractmethod
    def reset_next(self, state: State, params: Params) -> tuple[State, Observation]:
        """Start the episode that follows the one of a state, as auto-reset does.

        It draws with the state's key, or with ``episode.task_order="in_turn"`` goes on to the next task.
        """

    @abc.abstractmethod
    def step(self, state: State, action: Any, params: Params) -> Step[State]:
        """Take one step; see :meth:`jaxarc.ArcEnvironment.step`."""

    def step_and_reset(self, state: State, action: Any, params: Params) -> Step[State]:
        """Take one step, and start the next episode where it ended: ``step``, then ``reset_next``.

        Returns:
            What ``step`` returns; where the episode ended, state and observation are the first ones of the next.
            ``info["final_observation"]`` is the observation before any reset, on every step, and
            ``info["action_mask"]``, where there is one, belongs to the observation that is returned.
        """
        return _step_and_reset(self, state, action, params)

    @abc.abstractmethod
    def observe(self, state: State, params: Params) -> Observation:
        """Show a state as ``reset`` and ``step`` do."""

    @abc.abstractmethod
    def info(self, state: State, params: Params) -> Info:
        """Metrics of a state, with the keys, shapes and dtypes of a step's info."""

    @abc.abstractmethod
    def action_space(self, params: Params) -> Space:
        """The legal actions."""

    @abc.abstractmethod
    def observation_space(self, params: Params) -> Space:
        """A space that holds every observation."""

    def require(self, params: Params) -> None:
        """Raise where params are not those of this kind of environment."""

    def checks_actions(self, params: Params) -> bool:
        """Whether a step raises on an invalid action."""
        return False

    def executor(self, params: Params) -> str:
        """What draws the keys of a rollout; see ``environment.executor``."""
        return "auto"

    def info_of_observation(self, params: Params) -> tuple[str, ...]:
        """Name what in ``info`` is about the observation, and after a reset about the first one of the next episode."""
        return ()

    @property
    def name(self) -> str:
        """``jaxarc/`` and the dataset's name."""
        return "jaxarc"

    @property
    def default_params(self) -> Params:
        """The params that :func:`jaxarc.make` returned.

        Raises:
            AttributeError: the environment was made without ``jaxarc.make``, or is an argument of a compiled function:
                there the params are an argument of their own.
        """
        raise AttributeError(
            "this environment has no default_params, because jaxarc.make did not make it or it is an argument of a "
            "compiled function; pass the params that jaxarc.make returned, and write env.action_space(params).n for "
            "env.num_actions"
        )

    @property
    def num_actions(self) -> int:
        """How many flat actions there are with the default params, as an agent with one logit for each needs it.

        Raises:
            ValueError: actions are structured.
            AttributeError: there are no default params; take ``env.action_space(params).n``.
        """
        space = self.action_space(self.default_params)
        if not isinstance(space, Discrete):
            raise ValueError(
                f"actions of {space} are structured and have no single number; make the environment with "
                "flat_actions=True (points on any canvas, boxes up to 9x9), or take env.action_space(params)"
            )
        return space.n


compiled_step = compiled(may_raise=lambda env, _state, _action, params: env.checks_actions(params))
"""Compile a function of environment, state, action and params that takes a step."""


@compiled_step
def _step_and_reset(env: Environment[State, Params], state: State, action: Any, params: Params) -> Step[State]:
    """Do both by the other methods of an environment."""
    stepped = env.step(state, action, params)
    reset = lambda state, _, params: env.reset_next(state, params)[0]
    return go_on(env, stepped, reset_where(stepped[3], reset, stepped[0], (), params), params)


def go_on(env: Environment[State, Params], stepped: Step[State], after: State, params: Params) -> Step[State]:
    """Return a step from which an episode goes on, or the next one begins, in the state ``after`` it."""
    # What is returned about the step is still that of the old state.
    _, observation, reward, done, info = stepped
    info = with_next_info(env, {**info, "final_observation": observation}, after, params)
    return after, env.observe(after, params), reward, done, info


def with_next_info(env: Environment[State, Params], info: Info, after: State, params: Params) -> Info:
    """Put what is about the observation after a reset, which is returned, in place of the same of the ended episode."""
    names = env.info_of_observation(params)
    if not names:
        return info
    shown = env.info(after, params)
    return {**info, **{name: shown[name] for name in names}}
