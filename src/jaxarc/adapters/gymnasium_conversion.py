"""What both Gymnasium environments share: spaces and actions, seeds and options, pictures."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Int8, UInt8

from jaxarc.adapters.conversion import action_of_fields, action_of_vector, field_sizes
from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.spaces import ActionSpace, Box, Dict, Discrete, Space
from jaxarc.envs.state import ArcEnvState
from jaxarc.render import pixels, render_grid
from jaxarc.types import Observation
from jaxarc.wrappers.auto_reset import AutoReset
from jaxarc.wrappers.episode_statistics import StatisticsState
from jaxarc.wrappers.wrapper import Wrapper


def to_gymnasium_space(space: Space) -> spaces.Space:
    """Return Gymnasium's space of the same values.

    Points and boxes become a ``MultiDiscrete`` of operation and coordinates, masks a ``Dict`` of both. Of observations,
    bools are int8, and a number has the shape (1,): agents such as those of stable-baselines3 want an axis.

    Raises:
        TypeError: Gymnasium has no such space.
    """
    match space:
        case Box(dtype=jnp.bool_):
            return spaces.MultiBinary(space.shape)
        case Box():
            return spaces.Box(space.low, space.high, space.shape or (1,), space.dtype)
        case Discrete():
            return spaces.Discrete(space.n)
        case Dict():
            return spaces.Dict({name: to_gymnasium_space(entry) for name, entry in space.entries.items()})
        case ActionSpace(selection_format="mask"):
            operation = spaces.Discrete(field_sizes(space)["operation"])
            return spaces.Dict({"operation": operation, "selection": spaces.MultiBinary(space.grid_shape)})
        case ActionSpace():
            return spaces.MultiDiscrete(list(field_sizes(space).values()))
    raise TypeError(f"no space of Gymnasium stands for a {type(space).__name__}; wrap the environment first")


def require_action(space: spaces.Space, action: Any) -> Any:
    """Return an action as arrays for the device.

    Raises:
        ValueError: the space does not contain it.
    """
    if not space.contains(action):
        raise ValueError(f"an action must be in {space}, got {action!r}; see action_space.sample()")
    return jax.tree.map(_narrow, action)


def to_gymnasium_observation(observation: Observation, batch_axes: int = 0) -> Any:
    """Copy an observation to new arrays on the host, in the shapes of the Gymnasium space."""

    def copy(value: Any) -> np.ndarray:
        # Always a copy, since the device may reuse the memory. Gymnasium has no scalars:
        # () becomes (1,), and [B] becomes [B, 1].
        array = np.array(value, np.int8 if value.dtype == np.bool_ else None)
        return array[..., None] if array.ndim == batch_axes else array

    return jax.tree.map(copy, observation)


def to_our_action(space: Space, action: Any) -> Any:
    """Return our action for one of Gymnasium's, or for a batch of them."""
    if not isinstance(space, ActionSpace):
        return action
    return action_of_fields(space, action) if space.selection_format == "mask" else action_of_vector(space, action)


def _narrow(value: Any) -> np.ndarray:
    """Cast int64, which Gymnasium draws and JAX refuses, to int32; smaller dtypes stay."""
    array = np.asarray(value)
    return array.astype(np.int32) if array.dtype.itemsize > 4 else array


_MAX_SEED: Final = 2**64 - 1


def key_words(seed: int | None, generator: np.random.Generator) -> Any:
    """Return the words of a key, uint32[2]: seed 5 gives those of ``jax.random.key(5)``, None random ones.

    Raises:
        ValueError: the seed is negative or needs more than 64 bits.
    """
    if seed is None:
        return generator.integers(0, 2**32, 2, np.uint32)
    if not 0 <= seed <= _MAX_SEED:
        raise ValueError(f"a seed must be in [0, 2**64 - 1], got {seed}; choose another")
    # A seed is split into its upper and lower 32 bits, as threefry takes them: 2**32 + 5 is (1, 5).
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


def read_options(options: Mapping[str, Any] | None, known: tuple[str, ...]) -> dict[str, Any]:
    """Return a copy of the options of a reset.

    Raises:
        ValueError: one is unknown.
    """
    given = dict(options or {})
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"reset knows the options {', '.join(known)}, got {', '.join(unknown)}; correct the name")
    return given


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
        ValueError: it is or wraps an :class:`AutoReset`.
    """
    while isinstance(env, Wrapper):
        if isinstance(env, AutoReset):
            raise ValueError("Gymnasium's interface decides when to reset; hand in the environment without AutoReset")
        env = env.env


def without_action_checks(params: EnvParams) -> EnvParams:
    """Return params whose steps never raise: the host has checked the actions."""
    return dataclasses.replace(params, config=params.config.with_fields(invalid_action_policy="noop"))


RENDER_MODES: Final = ("rgb_array", "ansi")
_CELL: Final = 16  # pixels of a cell's side


def working_grids(state: Any) -> Int8[np.ndarray, "*B H W"]:
    """Return the working grid of a state of our environment or of our wrappers around it."""
    # Wrappers carry the state of the environment inside theirs.
    while isinstance(state, StatisticsState):
        state = state.env_state
    if not isinstance(state, ArcEnvState):
        raise TypeError(f"only states of jaxarc's own environment and wrappers are drawn, got {type(state).__name__}")
    return np.asarray(state.working_grid)


def draw_frame(grid: Int8[Array, "H W"] | np.ndarray, render_mode: str) -> UInt8[np.ndarray, "rows columns 3"] | str:
    """Draw the whole canvas in pixels (``"rgb_array"``), or the grid as lines of digits (``"ansi"``)."""
    if render_mode == "ansi":
        return render_grid(grid).plain
    return np.array(pixels.draw_grid(grid, cell_size=_CELL))


def require_render_mode(render_mode: str | None) -> None:
    """Raise when a render mode is unknown.

    Raises:
        ValueError: naming the known ones.
    """
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ValueError(f"render_mode must be None or one of {RENDER_MODES}, got {render_mode!r}; choose one of these")
