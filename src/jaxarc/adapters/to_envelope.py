"""Our environment as an ``Environment`` of envelope (``jax-envelope``)."""

from functools import cached_property
from typing import Any

import jax.numpy as jnp

try:
    import envelope  # pyright: ignore[reportMissingImports]  Python 3.11 has none
except ImportError as error:
    raise ImportError("EnvelopeEnvironment needs envelope; pip install jax-envelope (Python 3.12)") from error

from jaxarc.adapters.conversion import action_of_fields, choice_of_id, field_sizes
from jaxarc.envs.action_space import ActionSpace
from jaxarc.envs.params import EnvParams
from jaxarc.interface import Environment
from jaxarc.registration import make
from jaxarc.spaces import Box, Dict, Discrete, Space
from jaxarc.types import PRNGKey
from jaxarc.wrappers.wrapper import resets_itself


class EnvelopeEnvironment(envelope.Environment):
    """One environment behind envelope's interface, without auto-reset: ``AutoResetWrapper`` adds it.

    ``envelope.create("jaxarc::arc-agi-1/training")`` makes it with one array to see and one integer to act.

    Class data sheet:
        state: that of our environment. A reset depends on its key alone, so ``task_order="in_turn"`` does not advance.
        truncated: by ``max_episode_steps`` of the rules, so envelope's ``TruncationWrapper`` is not needed.
        action: int32[], around :class:`~jaxarc.wrappers.FlatActions`; else a dictionary of integers, ``operation`` as
            an index in ``params.config.legal_operations`` and the coordinates, or ``selection`` in the mask format.
        info: ``obs``, ``reward``, ``terminated``, ``truncated``, and the ``info`` of our environment by its names.

    Args:
        env: without auto-reset.
        params: the tasks, their weights and the rules.
    """

    env: Any
    params: EnvParams

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.env, Environment) and resets_itself(self.env):
            raise ValueError("hand in the environment without AutoReset; envelope's AutoResetWrapper adds it")

    @classmethod
    def from_name(cls, name: str, env_kwargs: dict[str, Any] | None = None) -> "EnvelopeEnvironment":
        """Make the environment of a dataset; ``env_kwargs`` are further arguments of :func:`jaxarc.make`."""
        return cls(*make(name, **choice_of_id(env_kwargs or {})))

    def init(self, key: PRNGKey) -> tuple[Any, Any]:
        state, observation = self.env.reset(key, self.params)
        return state, _info(observation, jnp.float32(0), self.env.info(state, self.params))

    def step(self, state: Any, action: Any) -> tuple[Any, Any]:
        space = self.env.action_space(self.params)
        ours = action_of_fields(space, action) if isinstance(space, ActionSpace) else action
        state, observation, reward, _, info = self.env.step(state, ours, self.params)
        return state, _info(observation, reward, info)

    @cached_property
    def observation_space(self) -> envelope.Space:
        return _to_envelope_space(self.env.observation_space(self.params))

    @cached_property
    def action_space(self) -> envelope.Space:
        return _to_envelope_space(self.env.action_space(self.params))


def _info(observation: Any, reward: Any, info: dict[str, Any]) -> envelope.InfoContainer:
    container = envelope.InfoContainer(observation, reward, info["terminated"], info["truncated"])
    return container.update(**{name: value for name, value in info.items() if name not in ("terminated", "truncated")})


class Integers(envelope.Continuous):
    """A box of integers or bools; envelope's own draws real numbers."""

    def sample(self, key: PRNGKey) -> Any:
        space = Box(int(jnp.min(self.low)), int(jnp.max(self.high)), self.shape, self.dtype)
        return space.sample(key)


def _to_envelope_space(space: Space) -> envelope.Space:
    match space:
        case Box() if jnp.issubdtype(space.dtype, jnp.floating):
            kind = envelope.Continuous
        case Box():
            kind = Integers
        case Discrete():
            return envelope.Discrete(jnp.int32(space.n))
        case Dict():
            return envelope.PyTreeSpace({name: _to_envelope_space(entry) for name, entry in space.entries.items()})
        case ActionSpace():
            entries = {name: envelope.Discrete(jnp.int32(size)) for name, size in field_sizes(space).items()}
            if space.selection_format == "mask":
                entries["selection"] = envelope.Discrete(jnp.full(space.grid_shape, 2, jnp.int32))
            return envelope.PyTreeSpace(entries)
        case _:
            raise TypeError(f"no space of envelope stands for a {type(space).__name__}; wrap the environment first")
    return kind.from_shape(*(jnp.asarray(bound, space.dtype) for bound in (space.low, space.high)), space.shape)
