"""Our environment as a ``VecEnv`` of stable-baselines3: a batch of episodes in one compiled call."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32

try:
    from gymnasium.vector import AutoresetMode
    from stable_baselines3.common.vec_env import VecEnv  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ImportError("Sb3VecEnv needs stable-baselines3; pip install stable-baselines3") from error

from jaxarc.adapters.to_gymnasium_vector import GymnasiumVectorEnv
from jaxarc.envs.params import EnvParams
from jaxarc.interface import Environment


class Sb3VecEnv(VecEnv):
    """A batch of environments behind stable-baselines3's interface; no process is started.

    It plays what :class:`~jaxarc.adapters.GymnasiumVectorEnv` plays with ``AutoresetMode.SAME_STEP``. The info of a
    step that ends an episode has ``terminal_observation``, ``TimeLimit.truncated`` (then stable-baselines3 adds the
    value of that observation), and ``is_success``; other infos are empty. Put ``VecMonitor`` around it for returns and
    lengths.

    Args:
        env: without auto-reset; with :class:`~jaxarc.wrappers.FlatActions` or with points or boxes.
        params: tasks and rules, shared by all environments.
        num_envs: B, 1 or more.
        render_mode: ``"rgb_array"`` or None.

    Raises:
        ValueError: the actions are masks, for which stable-baselines3 has no policy, or an argument of
            ``GymnasiumVectorEnv`` is wrong.
    """

    def __init__(
        self, env: Environment[Any, Any], params: EnvParams, num_envs: int = 1, render_mode: str | None = None
    ):
        if params.config.action.selection_format == "mask":
            raise ValueError(
                "stable-baselines3 has no policy for action.selection_format='mask'; choose 'point' or 'bbox'"
            )
        self._envs = GymnasiumVectorEnv(env, params, num_envs, AutoresetMode.SAME_STEP, render_mode)
        self._actions: np.ndarray | None = None
        self.render_mode = render_mode  # the base class reads it through get_attr
        super().__init__(num_envs, self._envs.single_observation_space, self._envs.single_action_space)

    def reset(self) -> Any:
        """Start an episode in every environment, with the seeds of ``seed()`` if it was called before."""
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        self._reset_seeds()
        self._reset_options()
        return self._envs.reset(seed=seeds)[0]

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, Float32[np.ndarray, " B"], Bool[np.ndarray, " B"], list[dict[str, Any]]]:
        observations, rewards, terminations, truncations, batched = self._envs.step(self._actions)
        dones = terminations | truncations
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for index in np.flatnonzero(dones):
            infos[index] = {
                "terminal_observation": batched["final_obs"][index],
                "TimeLimit.truncated": bool(truncations[index]),
                "is_success": bool(batched["final_info"]["success"][index]),
            }
        return observations, rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        self._envs.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        frames = self._envs.render()
        return [None] * self.num_envs if frames is None else list(frames)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of this object or of the batch, once for each environment."""
        source = self if attr_name in vars(self) else self._envs
        return [getattr(source, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError(
            f"{attr_name!r} is shared by all environments of a batch; set it when making the environment"
        )

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Return what ``action_masks()`` says of each environment; a batch has no other method of a single one."""
        if method_name != "action_masks":
            raise NotImplementedError(
                f"{method_name!r}: a batch has no single environments; call a method of the batch, or 'action_masks'"
            )
        masks = self._envs.action_masks()
        return [masks[index] for index in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
