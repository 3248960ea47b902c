"""Our environment as an ``Environment`` of Stoa."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

try:
    import stoa
    from stoa import spaces
    from stoa.stoa_struct import dataclass
except ImportError as error:
    raise ImportError("StoaEnvironment needs stoa-env; pip install stoa-env") from error

from jaxarc.adapters.conversion import action_of_fields, action_of_vector, field_sizes
from jaxarc.envs.action_space import ActionSpace
from jaxarc.interface import Environment
from jaxarc.spaces import Box, Dict, Discrete, Space
from jaxarc.types import Info, Observation, PRNGKey
from jaxarc.wrappers.wrapper import AutoReset, resets_itself


def _replace_all_but_ends(time_step: "_OwnEnds", **changes: Any) -> "_OwnEnds":
    if "step_type" in changes:
        raise TypeError(
            "Stoa's wrappers that end episodes, such as EpisodeStepLimitWrapper, see no reset of an environment that "
            "resets itself; give jaxarc.make max_episode_steps, or StoaEnvironment auto_reset=False"
        )
    return dataclasses.replace(time_step, **changes)


@dataclass(custom_replace_fn=_replace_all_but_ends)
class _OwnEnds(stoa.TimeStep):
    """The time step of an environment that resets itself, so that nobody else can end its episodes."""


class StoaEnvironment(stoa.Environment):
    """One environment behind Stoa's interface.

    With ``auto_reset`` it starts the next episode in the step that ends one, as Stoa's ``AutoResetWrapper`` with
    ``next_obs_in_extras=True`` does: the time step is that of the episode that ended, its observation that of the next,
    and ``extras["next_obs"]`` that of before any reset. Unlike Stoa's it keeps the params it is given, and needs no key
    in the state. Put ``RecordEpisodeMetrics`` and ``VmapWrapper`` around it, and no ``AutoResetWrapper``, nor a wrapper
    that counts the steps of an episode or remembers them: it would never start again.

    Class data sheet:
        action: int32[3] or [5], the operation's index in ``params.config.legal_operations``, then the coordinates; a
            dictionary of ``operation`` and ``selection`` in the mask format; one integer around
            :class:`~jaxarc.wrappers.FlatActions`.
        env_params: an :class:`~jaxarc.envs.EnvParams`, or those of a game.
        discount: 0 where the episode terminated, 1 elsewhere, truncation included.
        extras: the ``info`` of our environment, with the same structure at reset.

    Args:
        env: without auto-reset.
        params: for calls without ``env_params``.
        auto_reset: whether to start the next episode after one that ends.

    Raises:
        ValueError: the environment is an ``AutoReset`` already.
    """

    def __init__(self, env: Environment[Any, Any], params: Any, auto_reset: bool = True):
        if not isinstance(env, Environment):
            kinds = f"{type(env).__name__} and {type(params).__name__}"
            raise TypeError(f"an environment and its params were expected, got {kinds}; jaxarc.make returns both")
        env.require(params)
        if resets_itself(env):
            raise ValueError("hand in the environment without AutoReset; auto_reset=True adds it")
        self._env = AutoReset(env) if auto_reset else env
        self._params = params

    def reset(self, rng_key: PRNGKey, env_params: Any = None) -> tuple[PyTree, stoa.TimeStep]:
        params = self._chosen(env_params)
        state, observation = self._env.reset(rng_key, params)
        info = self._env.info(state, params)
        return state, self._time_step(stoa.StepType.FIRST, jnp.float32(0), observation, info)

    def step(self, state: PyTree, action: Any, env_params: Any = None) -> tuple[PyTree, stoa.TimeStep]:
        params = self._chosen(env_params)
        state, observation, reward, _, info = self._env.step(state, self._our_action(action, params), params)
        # Three kinds of steps: MID, TRUNCATED with the discount 1, TERMINATED with the discount 0.
        running_or_truncated = jnp.where(info["truncated"], stoa.StepType.TRUNCATED, stoa.StepType.MID)
        step_type = jnp.where(info["terminated"], stoa.StepType.TERMINATED, running_or_truncated)
        return state, self._time_step(step_type, reward, observation, info)

    def observation_space(self, env_params: Any = None) -> stoa.Space:
        return _to_stoa_space(self._env.observation_space(self._chosen(env_params)))

    def action_space(self, env_params: Any = None) -> stoa.Space:
        return _to_stoa_space(self._env.action_space(self._chosen(env_params)))

    def state_space(self, env_params: Any = None) -> stoa.Space:
        """Shapes and dtypes of the arrays of a state, by their path."""
        params = self._chosen(env_params)
        shapes, _ = jax.eval_shape(self._env.reset, jax.random.key(0), params)
        # Shapes are traced, so asking for a space computes nothing.
        leaves = jax.tree_util.tree_leaves_with_path(shapes)
        named = {jax.tree_util.keystr(path).lstrip("."): leaf for path, leaf in leaves}
        return spaces.DictSpace({name: spaces.ArraySpace(leaf.shape, leaf.dtype, name) for name, leaf in named.items()})

    def _chosen(self, params: Any) -> Any:
        return self._params if params is None else params

    def _time_step(self, step_type: Any, reward: Any, observation: Observation, info: Info) -> stoa.TimeStep:
        # Stoa's learners look for the observation before an auto-reset under this name.
        extras: dict[str, Any] = dict(info)
        if "final_observation" in extras:
            extras["next_obs"] = extras.pop("final_observation")
        kind = _OwnEnds if resets_itself(self._env) else stoa.TimeStep
        return kind(
            step_type=step_type, reward=reward, discount=info["discount"], observation=observation, extras=extras
        )

    def _our_action(self, action: Any, params: Any) -> Any:
        space = self._env.action_space(params)
        if not isinstance(space, ActionSpace):
            return action
        return action_of_fields(space, action) if space.selection_format == "mask" else action_of_vector(space, action)


def _to_stoa_space(space: Space) -> stoa.Space:
    match space:
        case Box():
            return spaces.BoundedArraySpace(space.shape, space.dtype, space.low, space.high)
        case Discrete():
            return spaces.DiscreteSpace(space.n, jnp.int32)
        case Dict():
            return spaces.DictSpace({name: _to_stoa_space(entry) for name, entry in space.entries.items()})
        case ActionSpace(selection_format="mask"):
            operation = spaces.DiscreteSpace(field_sizes(space)["operation"], jnp.int32)
            cells = spaces.MultiDiscreteSpace(np.full(space.grid_shape, 2), jnp.int8)
            return spaces.DictSpace({"operation": operation, "selection": cells})
        case ActionSpace():
            return spaces.MultiDiscreteSpace(list(field_sizes(space).values()), jnp.int32)
    raise TypeError(f"no space of Stoa stands for a {type(space).__name__}; wrap the environment first")
