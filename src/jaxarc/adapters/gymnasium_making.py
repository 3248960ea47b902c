"""What both Gymnasium environments check when they are made, and what Gymnasium reads of them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from gymnasium.envs.registration import EnvSpec

from jaxarc.adapters.conversion import choice_of_id
from jaxarc.config.build import UnknownFieldError
from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.registration import make
from jaxarc.wrappers.wrapper import resets_itself

RENDER_MODES: Final = ("rgb_array", "ansi")


class UnexpectedArgumentError(UnknownFieldError, TypeError):
    """An argument that :func:`jaxarc.make` does not have.

    It is a ``TypeError`` too, because clients that try an argument, as TorchRL tries ``frameskip``, expect one.
    """


def make_from_arguments(choice: Mapping[str, Any]) -> tuple[Environment[Any], EnvParams]:
    """Make what the arguments of an id say; what they leave open is chosen by :func:`choice_of_id`.

    Raises:
        UnexpectedArgumentError: one is unknown.
    """
    try:
        return make(**choice_of_id(choice))
    except UnknownFieldError as error:
        if error.field not in choice:
            raise
        raise UnexpectedArgumentError(f"got an unexpected keyword argument {error.field!r}; {error}") from None


class LimitInSpec:
    """Adds the time limit of the config to the spec that Gymnasium sets, where its clients look for it."""

    _params: EnvParams
    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """What Gymnasium made the environment from, with the number of steps after which an episode is truncated."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        if spec is not None:
            limit = self._params.config.environment.max_episode_steps
            spec = dataclasses.replace(spec, max_episode_steps=min(limit, spec.max_episode_steps or limit))
        self._spec = spec


def require_made(env: Environment[Any], params: EnvParams) -> None:
    """Raise when these are not what ``jaxarc.make`` returned, or a wrapper around it.

    Raises:
        TypeError: naming what was given.
    """
    if not isinstance(env, Environment) or not isinstance(params, EnvParams):
        kinds = f"{type(env).__name__} and {type(params).__name__}"
        raise TypeError(f"an environment and its params were expected, got {kinds}; jaxarc.make returns both")


def require_no_auto_reset(env: Environment[Any]) -> None:
    """Raise when an environment resets itself.

    Raises:
        ValueError: see :func:`~jaxarc.wrappers.wrapper.resets_itself`.
    """
    if resets_itself(env):
        raise ValueError("Gymnasium's interface decides when to reset; hand in the environment without AutoReset")


def without_action_checks(params: EnvParams) -> EnvParams:
    """Return params whose steps never raise: the host has checked the actions."""
    return dataclasses.replace(params, config=params.config.with_fields(invalid_action_policy="noop"))


def require_render_mode(render_mode: str | None, cell_size: int | None) -> None:
    """Raise when a render mode is unknown, or cells have no size.

    Raises:
        ValueError: naming what can be.
    """
    if cell_size is not None and cell_size < 1:
        raise ValueError(f"cell_size must be at least 1 pixel, got {cell_size}; leave it out for about 200 a grid")
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ValueError(f"render_mode must be None or one of {RENDER_MODES}, got {render_mode!r}; choose one of these")
