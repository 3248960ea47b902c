"""Our environment as an ``Environment`` of gymnax 1.0."""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, UInt32

try:
    import gymnax
    from flax import struct
    from gymnax.environments import environment, spaces
except ImportError as error:
    raise ImportError("GymnaxEnvironment needs gymnax 1.0; pip install gymnax six") from error

from jaxarc.adapters.conversion import action_of_fields, choice_of_id, field_sizes
from jaxarc.compilation import in_own_process
from jaxarc.datasets.task_set import TaskSet
from jaxarc.envs.action_space import ActionSpace
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.gymnasium_ids import environment_ids
from jaxarc.interface import with_next_info
from jaxarc.prng import as_typed_key, from_key_data
from jaxarc.registration import make
from jaxarc.rows import reset_where
from jaxarc.spaces import Box, Dict, Discrete, Space
from jaxarc.tasks.buffer import TaskGenerator
from jaxarc.types import Info, Observation, PRNGKey


@struct.dataclass
class GymnaxParams(environment.EnvParams):
    """Params of gymnax: ours, and a time limit that can change without a recompilation."""

    max_steps_in_episode: Any = struct.field(kw_only=True)  # int or int32[]; no effect above the limit of the config
    arc: EnvParams = struct.field(kw_only=True)

    # Clients such as ajax-rl give params to `jit` as a static argument. Arrays have no hash: an object equals itself.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@struct.dataclass
class GymnaxState(environment.EnvState):
    """The state of an episode, and how many steps it has taken."""

    time: Any  # int32[*B]
    arc: ArcEnvState


class GymnaxEnvironment(environment.Environment[GymnaxState, GymnaxParams]):
    """One environment behind gymnax's interface: six values from ``step``, which also resets.

    A step starts what gymnax's own would, by the same keys, but computes a reset only where an episode has ended.
    ``reset(key, params)`` starts what ``env.reset(key, params.arc)`` starts. The params hold the tasks, so
    ``params.replace(arc=params.arc.only(task_index=3))`` plays another task without
    a recompilation. ``info["final_observation"]`` is gymnax's.

    Class data sheet:
        action: with ``flat_actions=True`` one integer, see :class:`~jaxarc.wrappers.FlatActions`; otherwise a
            dictionary of integers, ``operation`` (its index in ``params.arc.config.legal_operations``) and the
            coordinates, or ``operation`` and ``selection`` int8[H, W] in the mask format.
        observation: int8[H, W], -1 as padding, or a dictionary where the config shows more.

    Args:
        dataset: what :func:`jaxarc.make` takes.
        legacy_step: step as before gymnax 1.0: ``step`` returns five values, observation, state, reward, done and info,
            and the fourth value of ``step_env`` is done, too, by the rules or by time.
        **choice: the other arguments of :func:`jaxarc.make`, such as ``flat_actions=True``.

    Raises:
        ConfigValidationError: a field is unknown or breaks a rule.
        ValueError: there are too many actions for flat ones.
    """

    def __init__(
        self,
        dataset: str | Path | TaskSet | TaskGenerator,
        *,
        legacy_step: bool = False,
        **choice: Any,
    ):
        with jax.ensure_compile_time_eval():  # an environment may be made inside jit
            # Not `_env` or `env`, which clients such as ajax-rl follow to what is inside a wrapper.
            self._native, arc = make(dataset, **choice)
        self._has_legacy_step = legacy_step
        self._native.action_space(arc)  # refuses more flat actions than a policy can have logits for
        self._default_params = GymnaxParams(max_steps_in_episode=arc.config.environment.max_episode_steps, arc=arc)

    @property
    def default_params(self) -> GymnaxParams:
        """All tasks with equal weights, and the config's time limit."""
        return self._default_params

    @in_own_process
    def reset(  # pyright: ignore[reportIncompatibleVariableOverride]  # gymnax's is compiled
        self, key: PRNGKey, params: GymnaxParams | None = None
    ) -> tuple[Observation, GymnaxState]:
        """Start an episode."""
        return super().reset(key, params)

    @in_own_process
    @partial(jax.jit, static_argnames=("self",))
    def step(  # pyright: ignore[reportIncompatibleVariableOverride]
        self, key: PRNGKey, state: GymnaxState, action: Any, params: GymnaxParams | None = None
    ) -> tuple[Any, ...]:
        """Take a step, and start the next episode where one ends.

        Returns:
            Observation, state, reward, terminated, truncated and info; with ``legacy_step`` done in place of both.
            State and observation are those of the next episode where one has ended, all else is of the one that ended;
            ``info["final_observation"]`` is the observation before any reset.
        """
        params = self.default_params if params is None else params
        key_step, key_reset = jax.random.split(key)
        last, ended, reward, _, info = self.step_env(key_step, state, action, params)
        terminated = self.is_terminated(ended, params)
        truncated = self.is_truncated(ended, params)
        done = terminated | truncated
        words = jax.random.key_data(as_typed_key(key_reset))
        after = reset_where(done, self._start, ended.arc, words, params.arc)
        info = {**info, "terminated": terminated, "truncated": truncated, "final_observation": last}
        info = with_next_info(self._native, info, after, params.arc)
        started = self._native.observe(after, params.arc), GymnaxState(after.step_count, after), reward
        return (*started, done, info) if self._has_legacy_step else (*started, terminated, truncated, info)

    def _start(self, _: ArcEnvState, words: UInt32[Array, " words"], arc: EnvParams) -> ArcEnvState:
        return self._native.reset(from_key_data(words), arc)[0]

    def reset_env(self, key: PRNGKey, params: GymnaxParams) -> tuple[Observation, GymnaxState]:
        state, observation = self._native.reset(key, params.arc)
        return observation, GymnaxState(state.step_count, state)

    def step_env(
        self, key: PRNGKey, state: GymnaxState, action: Any, params: GymnaxParams
    ) -> tuple[Observation, GymnaxState, Float32[Array, ""], Bool[Array, ""], Info]:
        """Take one step, without a reset; nothing in it is random, so the key has no use.

        The fourth value is ``terminated``: clients add the end by time themselves. With ``legacy_step`` it is done.
        """
        space = self._native.action_space(params.arc)
        ours = action_of_fields(space, action) if isinstance(space, ActionSpace) else action
        after, observation, reward, _, info = self._native.step(state.arc, ours, params.arc)
        ended = GymnaxState(after.step_count, after)
        done = self.is_terminated(ended, params)
        if self._has_legacy_step:
            done = done | self.is_truncated(ended, params)
        return observation, ended, reward, done, info

    def get_obs(
        self, state: GymnaxState, params: GymnaxParams | None = None, key: PRNGKey | None = None
    ) -> Observation:
        """Show a state as ``reset`` and ``step`` do; gymnax's ``observe`` calls this."""
        params = self.default_params if params is None else params
        return self._native.observe(state.arc, params.arc)

    def is_terminated(self, state: GymnaxState, params: GymnaxParams) -> Bool[Array, ""]:
        return state.arc.terminated

    def is_truncated(self, state: GymnaxState, params: GymnaxParams) -> Bool[Array, ""]:
        """Whether the time limit of the params or of the config is reached; False for an episode that terminated."""
        return state.arc.truncated | (~state.arc.terminated & (state.time >= params.max_steps_in_episode))

    @property
    def name(self) -> str:
        return self._native.name

    @property
    def num_actions(self) -> int:
        """Number of flat actions, one logit of a policy for each.

        Raises:
            ValueError: the environment was made without ``flat_actions=True``.
        """
        return self._native.num_actions

    def action_space(self, params: GymnaxParams | None = None) -> spaces.Space:
        params = self.default_params if params is None else params
        return _to_gymnax_space(self._native.action_space(params.arc))

    def observation_space(self, params: GymnaxParams | None = None) -> spaces.Space:
        params = self.default_params if params is None else params
        return _to_gymnax_space(self._native.observation_space(params.arc))


def register_gymnax() -> tuple[str, ...]:
    """Register every dataset with gymnax; ids that are registered stay as they are.

    ``gymnax.make("jaxarc/arc-agi-1-training-v1", max_grid_height=5)`` takes the arguments of
    :class:`GymnaxEnvironment` and loads the tasks; nothing is loaded before. By default an id has one array
    as observation and one integer as action. An id with ``-`` in place of the slash stands for the same environment:
    rejax reads a slash as the name of a library.

    Returns:
        The ids.
    """
    ids = {
        spelled: dataset for name, dataset in environment_ids().items() for spelled in (name, name.replace("/", "-"))
    }
    for name, dataset in ids.items():
        if name not in gymnax.registered_envs:
            gymnax.register(name, partial(_make_of_id, dataset=dataset))
    return tuple(ids)


def _make_of_id(**choice: Any) -> GymnaxEnvironment:
    return GymnaxEnvironment(**choice_of_id(choice))


class IntegerBox(spaces.Box):
    """A box of integers or bools; gymnax's own draws real numbers and rounds them, which never gives the highest."""

    def sample(self, key: PRNGKey) -> Array:
        return Box(float(self.low), float(self.high), self.shape, self.dtype).sample(key)

    def contains(self, x: Array) -> Array:
        return super().contains(x.astype(jnp.int32))


class NamedSpaces(spaces.Dict):
    """A dictionary of spaces; gymnax's own looks for attributes where a dictionary has keys."""

    def contains(self, x: Any) -> Any:
        return jnp.all(jnp.stack([space.contains(x[name]) for name, space in self.spaces.items()]))


# Clients such as jaxnasium tell gymnax's spaces by the names of their classes.
IntegerBox.__name__ = spaces.Box.__name__
NamedSpaces.__name__ = spaces.Dict.__name__


def _to_gymnax_space(space: Space) -> spaces.Space:
    match space:
        case Box():
            return IntegerBox(space.low, space.high, space.shape, space.dtype)
        case Discrete():
            return spaces.Discrete(space.n)
        case Dict():
            return NamedSpaces({name: _to_gymnax_space(entry) for name, entry in space.entries.items()})
        case ActionSpace():
            entries: dict[str, spaces.Space] = {
                name: spaces.Discrete(size) for name, size in field_sizes(space).items()
            }
            if space.selection_format == "mask":
                entries["selection"] = IntegerBox(0, 1, space.grid_shape, jnp.int8)
            return NamedSpaces(entries)
    raise TypeError(f"no space of gymnax stands for a {type(space).__name__}; wrap the environment first")
