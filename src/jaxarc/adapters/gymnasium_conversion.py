"""What both Gymnasium environments share: spaces and actions, seeds and options, masks, pictures, making."""

import dataclasses
import operator
from collections.abc import Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from jaxtyping import Array, Bool, UInt8

from jaxarc.adapters.conversion import action_of_fields, action_of_vector, choice_of_id, field_sizes
from jaxarc.config.build import UnknownFieldError, spell
from jaxarc.envs.action_masks import FlatActionCodec, factored_action_mask, flat_action_mask
from jaxarc.envs.action_space import ActionSpace
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.interface import Environment
from jaxarc.registration import make
from jaxarc.render import pixels, render_grid
from jaxarc.spaces import Box, Dict, Discrete, Space
from jaxarc.wrappers.episode_statistics import StatisticsState
from jaxarc.wrappers.trials import TrialsState
from jaxarc.wrappers.wrapper import resets_itself


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
    """Return an action as arrays for the device; lists of numbers are as good as arrays.

    Raises:
        ValueError: the space does not contain it.
    """
    arrays = _fitted(space, action)
    if not space.contains(arrays):
        raise ValueError(f"an action must be in {space}, got {spell(action)}; see action_space.sample()")
    return jax.tree.map(_narrow, arrays)


def to_gymnasium_observation(observation: Any, batch_axes: int = 0) -> Any:
    """Lay out an observation on the host in the shapes and dtypes of the Gymnasium space."""

    def shape(array: np.ndarray) -> np.ndarray:
        # Gymnasium has no scalars: () becomes (1,), and [B] becomes [B, 1].
        array = array.view(np.int8) if array.dtype == np.bool_ else array
        return array[..., None] if array.ndim == batch_axes else array

    return jax.tree.map(shape, observation)


def to_gymnasium_info(info: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Leave out the two flags that Gymnasium returns by themselves; TorchRL refuses an info that has them too.

    A mask is of the dtype with which ``action_space.sample(mask=...)`` takes it.
    """
    shown = {name: value for name, value in info.items() if name not in ("terminated", "truncated")}
    if "action_mask" in shown:
        shown["action_mask"] = shown["action_mask"].view(np.int8)
    return shown


def to_our_action(space: Space, action: Any) -> Any:
    """Return our action for one of Gymnasium's, or for a batch of them."""
    if not isinstance(space, ActionSpace):
        return action
    return action_of_fields(space, action) if space.selection_format == "mask" else action_of_vector(space, action)


def _fitted(space: spaces.Space, action: Any) -> Any:
    """Return numbers and lists of numbers as arrays of the dtypes of a space, unless a number would change."""
    if isinstance(space, spaces.Dict):
        if isinstance(action, list | tuple) and action and all(isinstance(one, Mapping) for one in action):
            action = {name: [one.get(name) for one in action] for name in action[0]}  # one for each environment
        if not isinstance(action, Mapping):
            return action
        known = space.spaces
        return {name: _fitted(known[name], value) if name in known else value for name, value in action.items()}
    try:
        array = np.asarray(action)
    except ValueError:  # lists of unequal lengths, which spaces refuse with an error of NumPy
        return np.empty(0, object)
    # Integers of another width are cast if that keeps them: int64 5 becomes int8 5, and 300 stays, to be refused. Only
    # a mask, int8, takes bools, and floats are never cast.
    if array.dtype == space.dtype or array.dtype.kind not in ("biu" if space.dtype == np.int8 else "iu"):
        return array
    cast = array.astype(space.dtype)
    return cast if (cast == array).all() else array


def _narrow(array: np.ndarray) -> np.ndarray:
    """Cast int64, which Gymnasium draws and JAX refuses, to int32; smaller dtypes stay."""
    return array.astype(np.int32) if array.dtype.itemsize > 4 else array


_MAX_SEED: Final = 2**64 - 1


def whole_seed(seed: Any) -> int | None:
    """Return a seed as Python's integer, also one of NumPy or JAX.

    Raises:
        TypeError: it is no integer.
    """
    try:
        return None if seed is None else operator.index(seed)
    except TypeError:
        raise TypeError(f"a seed must be an integer, got {spell(seed)}; cast it with int(seed)") from None


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


@jax.jit
def action_mask(env: Environment[Any, Any], state: Any, params: EnvParams) -> Bool[Array, "*B n"]:
    """Return which actions can apply: one flag for each flat action, or for each value of each number of an action.

    A wrapper may allow fewer operations: those of its action space count.

    Raises:
        ValueError: selections are masks, which are too many to be numbered, or a wrapper has numbers of its own.
    """
    state = inner_state(state)
    space = env.action_space(params)
    if isinstance(space, ActionSpace):
        config = params.config.with_fields(allowed_operations=space.operation.values)
        return factored_action_mask(state, config)
    if space != Discrete(FlatActionCodec.of(params.config).num_actions):
        raise ValueError(
            f"the numbers of FlatActions have masks, got the action space {space!r:.80} of another wrapper; narrow "
            "action.allowed_operations instead"
        )
    return flat_action_mask(state, params.config)


_SIDE: Final = 200  # pixels of the longest side of a grid


def inner_state(state: Any) -> ArcEnvState:
    """Return the state of our environment from that of our wrappers around it."""
    # Wrappers carry the state of the environment inside theirs.
    while isinstance(state, StatisticsState | TrialsState):
        state = state.env_state
    if not isinstance(state, ArcEnvState):
        kind = type(state).__name__
        raise TypeError(f"only states of jaxarc's own environment and wrappers are drawn and masked, got {kind}")
    return state


def draw_frame(
    state: Any, params: EnvParams, render_mode: str, cell_size: int | None = None
) -> UInt8[np.ndarray, "rows columns 3"] | str:
    """Draw a state as :meth:`RecordedEpisode.save` does (``"rgb_array"``), or its grid as lines of digits (``"ansi"``).

    Grids are as large as the canvas, so that all frames of an environment have one size. Target and difference are left
    out where the mode hides the answer.

    Args:
        state: of one environment.
        params: its tasks and rules.
        render_mode: one of the two.
        cell_size: pixels of a cell's side; by default a grid has about 200.
    """
    state = inner_state(state)
    grid = np.asarray(state.working_grid)
    if render_mode == "ansi":
        return render_grid(grid).plain
    size = cell_size or max(_SIDE // max(grid.shape), 1)
    captioned = lambda drawing, caption: pixels.captioned(drawing, caption, 13)
    selection = np.asarray(state.selected)
    panels = [captioned(pixels.draw_grid(grid, selection if selection.any() else None, size), "working grid")]
    words = f"step {int(state.step_count)}"
    if params.config.episode.mode == "train":
        target = np.asarray(state.target_grid)
        panels.append(captioned(pixels.draw_grid(target, None, size), "target"))
        panels.append(captioned(pixels.draw_difference(grid, target, size), "difference"))
        words = f"{words}, similarity {100 * float(state.similarity_score):.0f} %"
    text = pixels.draw_text(f"{words}, ended" if bool(state.done) else words, 14)
    image = np.array(pixels.vstack([pixels.hstack(panels, 14), text], 6, centered=False))
    # A video of an odd number of rows or columns keeps colors in a form that Firefox and QuickTime do not play.
    odd_rows, odd_columns = image.shape[0] % 2, image.shape[1] % 2
    return np.pad(image, ((0, odd_rows), (0, odd_columns), (0, 0)), mode="edge")


RENDER_MODES: Final = ("rgb_array", "ansi")


class UnexpectedArgumentError(UnknownFieldError, TypeError):
    """An argument that :func:`jaxarc.make` does not have.

    It is a ``TypeError`` too, because clients that try an argument, as TorchRL tries ``frameskip``, expect one.
    """


def make_from_arguments(choice: Mapping[str, Any]) -> tuple[Environment[Any, Any], EnvParams]:
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


def require_made(env: Environment[Any, Any], params: Any) -> None:
    """Raise when these are not what ``jaxarc.make`` returned, or a wrapper around it.

    Raises:
        TypeError: naming what was given.
    """
    if not isinstance(env, Environment):
        kinds = f"{type(env).__name__} and {type(params).__name__}"
        raise TypeError(f"an environment and its params were expected, got {kinds}; jaxarc.make returns both")
    env.require(params)


def require_no_auto_reset(env: Environment[Any, Any]) -> None:
    """Raise when an environment resets itself.

    Raises:
        ValueError: see :func:`~jaxarc.wrappers.wrapper.resets_itself`.
    """
    if resets_itself(env):
        raise ValueError("Gymnasium's interface decides when to reset; hand in the environment without AutoReset")


def without_action_checks(env: Environment[Any, Any], params: Any) -> Any:
    """Return params whose steps never raise: the host has checked the actions."""
    if not env.checks_actions(params):
        return params
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
