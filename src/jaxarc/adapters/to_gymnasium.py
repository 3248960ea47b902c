"""Our environment as a ``gymnasium.Env``: one episode at a time, NumPy in and out."""

from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Int8, UInt32

try:
    import gymnasium
except ImportError as error:
    raise ImportError("GymnasiumEnv needs gymnasium; pip install gymnasium") from error

from jaxarc.adapters.gymnasium_conversion import (
    RENDER_MODES,
    LimitInSpec,
    action_mask,
    draw_frame,
    key_words,
    make_from_arguments,
    read_options,
    require_action,
    require_made,
    require_no_auto_reset,
    require_render_mode,
    to_gymnasium_info,
    to_gymnasium_observation,
    to_gymnasium_space,
    to_our_action,
    whole_seed,
    without_action_checks,
)
from jaxarc.adapters.host_episodes import HostEpisodes, plays_on_host
from jaxarc.adapters.packing import Packed, pack
from jaxarc.compilation import require_own_jax
from jaxarc.envs.params import EnvParams
from jaxarc.interface import Environment


class GymnasiumEnv(LimitInSpec, gymnasium.Env[Any, Any]):  # pyright: ignore[reportIncompatibleVariableOverride]
    """One environment behind Gymnasium's interface.

    ``reset(seed=s)`` starts the episode that ``env.reset(jax.random.key(s), params)`` starts; a reset without a seed
    starts the one that follows, as :class:`~jaxarc.wrappers.AutoReset` does. ``options`` may name the ``task_index``
    and the ``pair_index`` to play. Every array that is returned is a new one. Where the native executor runs, the C++
    library steps NumPy arrays, without JAX in between.

    Class data sheet:
        action_space: ``MultiDiscrete``: the operation's index in ``params.config.legal_operations``, then the
            coordinates; a ``Dict`` of ``operation`` and ``selection`` in the mask format; ``Discrete`` around
            :class:`~jaxarc.wrappers.FlatActions`.
        observation_space: ``Box`` int8[H, W], -1 as padding, or a ``Dict`` where the config shows more.
        render_mode: ``"rgb_array"`` or ``"ansi"``.

    Args:
        env: without auto-reset.
        params: tasks and rules.
        render_mode: what ``render`` returns; None for nothing.
        cell_size: pixels of a cell's side in a frame; by default a grid has about 200.

    Raises:
        ValueError: the environment resets itself, or the render mode is unknown.
        ForkedProcessError: this process was forked after JAX had started.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 10}  # noqa: RUF012  # as in the base

    def __init__(
        self,
        env: Environment[Any, Any],
        params: EnvParams,
        render_mode: str | None = None,
        cell_size: int | None = None,
    ):
        require_own_jax()
        require_made(env, params)
        require_no_auto_reset(env)
        require_render_mode(render_mode, cell_size)
        self._cell_size = cell_size
        self._env = env
        self._params = without_action_checks(env, params)
        self.render_mode = render_mode
        self.action_space = to_gymnasium_space(env.action_space(params))
        self.observation_space = to_gymnasium_space(env.observation_space(params))
        kind = HostEpisodes if plays_on_host(env, self._params) else _CompiledEpisodes
        self._episodes = kind(env, self._params, self.action_space)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        Raises:
            ValueError: an option is unknown, or the seed is out of range.
            IndexError: there is no such task or pair.
        """
        require_own_jax()
        seed = whole_seed(seed)
        super().reset(seed=seed)
        chosen = read_options(options, ("task_index", "pair_index"))
        # Without a seed the next episode follows from the state's own key. A seed, a chosen task
        # or the very first reset needs a new key.
        if seed is None and not chosen and self._episodes.is_playing:
            return self._episodes.start_next()
        self._params.require_index(chosen.get("task_index"), chosen.get("pair_index"))
        return self._episodes.start(key_words(seed, self.np_random), chosen)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; an episode that has ended stays as it is, with reward 0.

        Raises:
            ResetNeeded: no episode has been started.
            ValueError: the action is not in the action space.
        """
        require_own_jax()
        self._require_episode()
        return self._episodes.step(action)

    def action_masks(self) -> Int8[np.ndarray, " n"]:
        """Return which actions can apply now, 0 or 1, as ``action_space.sample(mask=...)`` and ``MaskablePPO`` take it.

        A flag for each flat action, see :func:`~jaxarc.envs.action_masks.flat_action_mask`; of a ``MultiDiscrete`` one
        for each value of each number, see :func:`~jaxarc.envs.action_masks.factored_action_mask`.

        Raises:
            ResetNeeded: no episode has been started.
            ValueError: selections are masks, which have no numbers.
        """
        require_own_jax()
        self._require_episode()
        return np.array(action_mask(self._env, self._episodes.state, self._params), np.int8)

    def render(self) -> Any:
        """Draw the state as ``render_mode`` says: uint8[rows, columns, 3], or text; see :func:`draw_frame`.

        Raises:
            ResetNeeded: no episode has been started.
        """
        if self.render_mode is None:
            return None
        self._require_episode()
        return draw_frame(self._episodes.state, self._params, self.render_mode, self._cell_size)

    def _require_episode(self) -> None:
        if not self._episodes.is_playing:
            raise gymnasium.error.ResetNeeded("no episode has been started; call reset() first")


class _CompiledEpisodes:
    """Plays one environment by compiled programs: where the library cannot, and behind wrappers."""

    def __init__(self, env: Environment[Any, Any], params: EnvParams, space: gymnasium.Space[Any]):
        self._env = env
        self._params = params
        self._space = space
        self.state: Any = None  # None before the first reset

    @property
    def is_playing(self) -> bool:
        """Whether an episode was started."""
        return self.state is not None

    def start(self, key: UInt32[np.ndarray, " 2"], chosen: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Start the episode of a key, on a task and a pair if they are given; return observation and info."""
        self.state, shown = _reset(self._env, key, self._params, chosen)
        observation, info = shown.unpack()
        return to_gymnasium_observation(observation), _plain(info)

    def start_next(self) -> tuple[Any, dict[str, Any]]:
        """Start the episode that follows; return observation and info."""
        self.state, shown = _reset_next(self._env, self.state, self._params)
        observation, info = shown.unpack()
        return to_gymnasium_observation(observation), _plain(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step.

        Raises:
            ValueError: the action is not in the action space.
        """
        action = require_action(self._space, action)
        # Acting, stepping and translating are one compiled call, and everything that is shown comes to the host in one
        # copy.
        self.state, shown = _step(self._env, self.state, action, self._params)
        observation, reward, info = shown.unpack()
        ends = bool(info["terminated"]), bool(info["truncated"])
        return to_gymnasium_observation(observation), float(reward), *ends, _plain(info)


def make_single(render_mode: str | None = None, cell_size: int | None = None, **choice: Any) -> GymnasiumEnv:
    """Make what ``gymnasium.make`` returns."""
    return GymnasiumEnv(*make_from_arguments(choice), render_mode, cell_size)


vars(make_single)["metadata"] = GymnasiumEnv.metadata  # Gymnasium asks an entry point which render modes there are


@jax.jit
def _reset(env: Environment[Any, Any], key: Any, params: EnvParams, chosen: dict[str, Any]) -> tuple[Any, Packed]:
    state, observation = env.reset(key, params, **chosen)
    return state, pack((observation, env.info(state, params)))


@jax.jit
def _reset_next(env: Environment[Any, Any], state: Any, params: EnvParams) -> tuple[Any, Packed]:
    state, observation = env.reset_next(state, params)
    return state, pack((observation, env.info(state, params)))


@partial(jax.jit, donate_argnums=1)
def _step(env: Environment[Any, Any], state: Any, action: Any, params: EnvParams) -> tuple[Any, Packed]:
    state, observation, reward, _, info = env.step(state, to_our_action(env.action_space(params), action), params)
    return state, pack((observation, reward, info))


def _plain(info: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: value if value.ndim else value.item() for name, value in to_gymnasium_info(info).items()}
