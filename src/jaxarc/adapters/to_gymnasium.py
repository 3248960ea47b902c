"""Our environment as a ``gymnasium.Env``: one episode at a time, NumPy in and out."""

from functools import partial
from typing import Any

import jax

try:
    import gymnasium
except ImportError as error:
    raise ImportError("GymnasiumEnv needs gymnasium; pip install gymnasium") from error

from jaxarc.adapters.conversion import environment_ids
from jaxarc.adapters.gymnasium_conversion import (
    RENDER_MODES,
    draw_frame,
    key_words,
    read_options,
    require_action,
    require_made,
    require_no_auto_reset,
    require_render_mode,
    to_gymnasium_observation,
    to_gymnasium_space,
    to_our_action,
    without_action_checks,
    working_grids,
)
from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.registration import make
from jaxarc.types import Info


class GymnasiumEnv(gymnasium.Env[Any, Any]):
    """One environment behind Gymnasium's interface.

    ``reset(seed=s)`` starts the episode that ``env.reset(jax.random.key(s), params)`` starts; a reset without a seed
    starts the one that follows, as :class:`~jaxarc.wrappers.AutoReset` does. ``options`` may name the ``task_index``
    and the ``pair_index`` to play. Every array that is returned is a new one.

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

    Raises:
        ValueError: the environment resets itself, or the render mode is unknown.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 10}  # noqa: RUF012  # as in the base

    def __init__(self, env: Environment[Any], params: EnvParams, render_mode: str | None = None):
        require_made(env, params)
        require_no_auto_reset(env)
        require_render_mode(render_mode)
        self._env = env
        self._params = without_action_checks(params)
        self._state: Any = None
        self.render_mode = render_mode
        self.action_space = to_gymnasium_space(env.action_space(params))
        self.observation_space = to_gymnasium_space(env.observation_space(params))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        Raises:
            ValueError: an option is unknown, or the seed is out of range.
            IndexError: there is no such task or pair.
        """
        super().reset(seed=seed)
        chosen = read_options(options, ("task_index", "pair_index"))
        # Without a seed the next episode follows from the state's own key. A seed, a chosen task
        # or the very first reset needs a new key.
        if seed is None and not chosen and self._state is not None:
            self._state, observation = self._env.reset_next(self._state, self._params)
        else:
            key = key_words(seed, self.np_random)
            self._state, observation = self._env.reset(key, self._params, **chosen)
        observation, info = jax.device_get((observation, self._env.info(self._state, self._params)))
        return to_gymnasium_observation(observation), _plain(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; an episode that has ended stays as it is, with reward 0.

        Raises:
            ResetNeeded: no episode has been started.
            ValueError: the action is not in the action space.
        """
        self._require_episode()
        action = require_action(self.action_space, action)
        # Acting, stepping and translating are one compiled call, and everything that is
        # shown comes to the host in one copy.
        self._state, *shown = _step(self._env, self._state, action, self._params)
        observation, reward, info = jax.device_get(shown)
        info = _plain(info)
        return to_gymnasium_observation(observation), float(reward), info["terminated"], info["truncated"], info

    def render(self) -> Any:
        """Draw the working grid as ``render_mode`` says: uint8[rows, columns, 3], or text.

        Raises:
            ResetNeeded: no episode has been started.
        """
        if self.render_mode is None:
            return None
        self._require_episode()
        return draw_frame(working_grids(self._state), self.render_mode)

    def _require_episode(self) -> None:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("no episode has been started; call reset() first")


def register_gymnasium() -> tuple[str, ...]:
    """Register every dataset with Gymnasium, single and vectorized; ids that are registered stay as they are.

    ``gymnasium.make("jaxarc/arc-agi-1-training-v1", selection_format="bbox")`` takes the arguments of
    :func:`jaxarc.make`, such as ``flat_actions=True`` for one integer per action, and ``render_mode``;
    ``gymnasium.make_vec`` those of :class:`~jaxarc.adapters.GymnasiumVectorEnv` too. Nothing is loaded before that.

    Returns:
        The ids.
    """
    ids = environment_ids()
    for name, dataset in ids.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="jaxarc.adapters.to_gymnasium:make_single",
                vector_entry_point="jaxarc.adapters.to_gymnasium_vector:make_vector",
                kwargs={"dataset": dataset},
            )
    return tuple(ids)


def make_single(render_mode: str | None = None, **choice: Any) -> GymnasiumEnv:
    """Make what ``gymnasium.make`` returns."""
    return GymnasiumEnv(*make(**choice), render_mode=render_mode)


@partial(jax.jit, donate_argnums=1)
def _step(env: Environment[Any], state: Any, action: Any, params: EnvParams) -> tuple[Any, ...]:
    state, observation, reward, _, info = env.step(state, to_our_action(env.action_space(params), action), params)
    return state, observation, reward, info


def _plain(info: Info) -> dict[str, Any]:
    return {name: value.item() for name, value in info.items()}
