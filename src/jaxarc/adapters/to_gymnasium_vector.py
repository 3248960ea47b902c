"""Our environment as a ``gymnasium.vector.VectorEnv``: a batch of episodes in one compiled call, NumPy in and out."""

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, UInt32

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError("GymnasiumVectorEnv needs gymnasium; pip install gymnasium") from error

from jaxarc.adapters.gymnasium_conversion import (
    RENDER_MODES,
    LimitInSpec,
    action_mask,
    draw_frame,
    inner_state,
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
from jaxarc.adapters.packing import Packed, pack
from jaxarc.compilation import require_own_jax
from jaxarc.interface import Environment
from jaxarc.rows import reset_where

_VECTOR_ONLY: Final = ("num_envs", "autoreset_mode", "render_mode", "cell_size")
_OPTIONS: Final = ("task_index", "pair_index")


class GymnasiumVectorEnv(  # pyright: ignore[reportIncompatibleVariableOverride]  # `spec`, as a property
    LimitInSpec, VectorEnv[Any, Any, np.ndarray]
):
    """A batch of environments behind Gymnasium's vector interface; one compiled call steps them all.

    Environment ``i`` plays what :class:`~jaxarc.adapters.GymnasiumEnv` plays with its seed: ``reset(seed=s)`` gives it
    ``s + i``, a list gives each its own. What follows an ended episode does not depend on the autoreset mode. Every
    array that is returned is a new one; spaces are those of the single environment, batched.

    - ``NEXT_STEP``, Gymnasium's default: a step that ends an episode returns its last observation; the next step
      ignores the action, starts the next episode, and has reward 0.
    - ``SAME_STEP``: it returns the next episode's first observation; ``infos["final_obs"]`` and ``infos["final_info"]``
      describe the ended one where ``infos["_final_obs"]`` is true.

    Args:
        env: without auto-reset.
        params: tasks and rules, shared by all environments.
        num_envs: B, 1 or more.
        autoreset_mode: one of the two, or its value, such as ``"NextStep"``.
        render_mode: ``"rgb_array"``, ``"ansi"`` or None.
        cell_size: pixels of a cell's side in a frame; by default a grid has about 200.

    Raises:
        ValueError: the environment resets itself, ``num_envs`` is below 1, or there is no such mode.
        ForkedProcessError: this process was forked after JAX had started.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 10}  # noqa: RUF012  # as in the base

    def __init__(
        self,
        env: Environment[Any, Any],
        params: Any,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        cell_size: int | None = None,
    ):
        require_own_jax()
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}; ask for one environment or more")
        require_made(env, params)
        require_no_auto_reset(env)
        require_render_mode(render_mode, cell_size)
        self._cell_size = cell_size
        self._env = env
        self._params = without_action_checks(env, params)
        self.autoreset_mode = AutoresetMode(autoreset_mode)  # where TorchRL looks for it
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise ValueError("a batch resets by itself; choose autoreset_mode='NextStep' or 'SameStep', got 'Disabled'")
        self._states: Any = None
        self._ended = np.zeros(num_envs, np.bool_)  # episodes that ended in the last step
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_action_space = to_gymnasium_space(env.action_space(params))
        self.single_observation_space = to_gymnasium_space(env.observation_space(params))
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in every environment.

        The options ``task_index`` and ``pair_index`` name what to play, for all environments or one for each.

        Raises:
            ValueError: seeds or an option are wrong.
            IndexError: there is no such task or pair.
        """
        require_own_jax()
        self._states = self._start(seed, read_options(options, _OPTIONS))
        self._ended = np.zeros(self.num_envs, np.bool_)
        observation, info = _show_packed(self._env, self._states, self._params).unpack()
        return to_gymnasium_observation(observation, 1), _masked(info, np.ones(self.num_envs, np.bool_))

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take a step in every environment.

        Raises:
            ResetNeeded: no episode has been started.
            ValueError: the actions are not in the action space.
        """
        self._require_started()
        actions = require_action(self.action_space, actions)
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            self._states, seen, last = _step_and_reset(self._env, self._states, actions, self._params)
        else:
            self._states, seen = _reset_or_step(self._env, self._states, actions, self._ended, self._params)
            last = None
        observation, rewards, terminations, truncations, info = seen.unpack()
        self._ended = terminations | truncations
        infos = _masked(info, np.ones(self.num_envs, np.bool_))
        if last is not None and self._ended.any():
            infos |= self._final(*last.unpack())
        rewards = rewards.astype(np.float64)
        return to_gymnasium_observation(observation, 1), rewards, terminations, truncations, infos

    def action_masks(self) -> Int8[np.ndarray, "B n"]:
        """Return for each environment which actions can apply now; see :meth:`GymnasiumEnv.action_masks`.

        Raises:
            ResetNeeded: no episode has been started.
            ValueError: selections are masks, which have no numbers.
        """
        self._require_started()
        return np.array(action_mask(self._env, self._states, self._params), np.int8)

    def render(self) -> tuple[Any, ...] | None:
        """Draw every working grid as ``render_mode`` says.

        Raises:
            ResetNeeded: no episode has been started.
        """
        if self.render_mode is None:
            return None
        self._require_started()
        states = jax.device_get(inner_state(self._states))
        each = [jax.tree.map(lambda leaf, i=i: leaf[i], states) for i in range(self.num_envs)]
        return tuple(draw_frame(state, self._params, self.render_mode, self._cell_size) for state in each)

    def _start(self, seed: int | Sequence[int | None] | None, chosen: dict[str, Any]) -> Any:
        seeds = self._read_seeds(seed)
        if seeds is None and not chosen and self._states is not None:
            return _reset_next(self._env, self._states, self._params)
        keys = np.stack([key_words(one, self.np_random) for one in seeds or [None] * self.num_envs])
        tasks, pairs = (self._read_indices(name, chosen.get(name)) for name in _OPTIONS)
        for task, pair in {*zip(tasks, pairs, strict=True)}:
            self._params.require_index(task, pair)
        # None leaves the choice to the environment, for all rows or for none: the axes of ``vmap`` are static.
        columns = [None if None in column else np.array(column, np.int32) for column in (tasks, pairs)]
        return _reset(self._env, keys, self._params, *columns)

    def _read_seeds(self, seed: Any) -> list[int | None] | None:
        if seed is None:
            return None
        if np.ndim(seed) == 0:
            super().reset(seed=whole_seed(seed))
            return [operator.index(seed) + index for index in range(self.num_envs)]  # 7 for three envs is 7 8 9
        seeds = [whole_seed(one) for one in seed]
        if len(seeds) != self.num_envs:
            raise ValueError(f"a list of seeds has one for each of {self.num_envs} environments, got {len(seeds)}")
        given = [one for one in seeds if one is not None]
        if len(given) == self.num_envs:  # then all that follows is as reproducible as with one seed
            self.np_random = np.random.default_rng(given)
        return seeds

    def _read_indices(self, name: str, value: Any) -> list[int | None]:
        if value is None:
            return [None] * self.num_envs
        indices = np.asarray(value)
        if indices.shape not in ((), (self.num_envs,)) or not np.issubdtype(indices.dtype, np.integer):
            raise ValueError(
                f"options[{name!r}] is an integer, or one for each of {self.num_envs} environments, got "
                f"{indices.dtype}{indices.shape}"
            )
        return np.broadcast_to(indices, self.num_envs).tolist()

    def _require_started(self) -> None:
        require_own_jax()
        if self._states is None:
            raise gymnasium.error.ResetNeeded("no episode has been started; call reset() first")

    def _final(self, observation: Any, info: dict[str, np.ndarray]) -> dict[str, Any]:
        ended = self._ended.copy()
        final = np.full(self.num_envs, None, dtype=object)
        leaves, structure = jax.tree.flatten(to_gymnasium_observation(observation, 1))
        # Gymnasium wants one observation object for each episode that ended, and None for the others.
        for index, *row in zip(np.flatnonzero(ended), *(leaf[ended] for leaf in leaves), strict=True):
            final[index] = jax.tree.unflatten(structure, row)
        return {
            "final_obs": final,
            "_final_obs": ended,
            "final_info": _masked(info, ended),
            "_final_info": ended.copy(),
        }


def make_vector(**choice: Any) -> GymnasiumVectorEnv:
    """Make what ``gymnasium.make_vec`` returns."""
    own = {name: choice.pop(name) for name in _VECTOR_ONLY if name in choice}
    return GymnasiumVectorEnv(*make_from_arguments(choice), **own)


@jax.jit
def _reset(env: Environment[Any, Any], keys: UInt32[Array, "B 2"], params: Any, task: Any, pair: Any) -> Any:
    # Arguments that are None have no axis to be mapped over.
    axes = (0, None, None if task is None else 0, None if pair is None else 0)
    return jax.vmap(env.reset, axes)(keys, params, task, pair)[0]


@jax.jit
def _reset_next(env: Environment[Any, Any], states: Any, params: Any) -> Any:
    return jax.vmap(env.reset_next, (0, None))(states, params)[0]


@jax.jit
def _merge(mask: Bool[Array, " B"], new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(mask.reshape(-1, *(1,) * (a.ndim - 1)), a, b), new, old)


@jax.jit
def _show_packed(env: Environment[Any, Any], states: Any, params: Any) -> Packed:
    return pack(_show(env, states, params))


def _show(env: Environment[Any, Any], states: Any, params: Any) -> Any:
    return jax.vmap(env.observe, (0, None))(states, params), jax.vmap(env.info, (0, None))(states, params)


@partial(jax.jit, donate_argnames="states")
def _step_and_reset(env: Environment[Any, Any], states: Any, actions: Any, params: Any) -> tuple[Any, Packed, Packed]:
    """Step, and reset where an episode ended, as auto-reset does; return states, and what is seen after and before."""
    actions = to_our_action(env.action_space(params), actions)
    states, observation, rewards, dones, info = jax.vmap(env.step_and_reset, (0, 0, None))(states, actions, params)
    last = info.pop("final_observation"), {name: value for name, value in info.items() if name != "action_mask"}
    first = jax.vmap(env.info, (0, None))(states, params)
    seen = (observation, rewards, info["terminated"], info["truncated"], _merge(dones, first, info))
    return states, pack(seen), pack(last)


@partial(jax.jit, donate_argnames="states")
def _reset_or_step(
    env: Environment[Any, Any], states: Any, actions: Any, ended: Bool[Array, " B"], params: Any
) -> tuple[Any, Packed]:
    """Reset the environments whose episode had ended, and step the others; return states, and what is seen of them."""
    # All are stepped, since a state that is done stays as it is, with reward 0.
    actions = to_our_action(env.action_space(params), actions)
    states, _, rewards, _, info = jax.vmap(env.step, (0, 0, None))(states, actions, params)
    flags = info["terminated"] & ~ended, info["truncated"] & ~ended
    reset = lambda state, _, params: env.reset_next(state, params)[0]
    states = jax.vmap(lambda need, state: reset_where(need, reset, state, (), params))(ended, states)
    observation, first = _show(env, states, params)
    return states, pack((observation, rewards, *flags, _merge(ended, first, info)))


def _masked(info: dict[str, np.ndarray], mask: Bool[np.ndarray, " B"]) -> dict[str, np.ndarray]:
    """Lay out infos as Gymnasium does: a new array for each name, zero where its ``_name`` is false.

    The step counts 3 7 of two environments, of which only the second has an info, are ``step_count: [0, 7]`` and
    ``_step_count: [False, True]``.
    """
    infos: dict[str, np.ndarray] = {}
    everywhere = mask.all()
    for name, value in to_gymnasium_info(info).items():
        shaped = mask.reshape(-1, *(1,) * (value.ndim - 1))
        infos[name] = value.copy() if everywhere else np.where(shaped, value, np.zeros_like(value))
        infos[f"_{name}"] = mask.copy()
    return infos
