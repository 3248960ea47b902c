"""How Gymnasium asks for an episode: seeds and options, read on the host."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.wrappers.auto_reset import AutoReset
from jaxarc.wrappers.wrapper import Wrapper

_MAX_SEED: Final = 2**64 - 1


def key_words(seed: int | None, generator: np.random.Generator) -> Any:
    """Return the data of a key, uint32[2]: that of ``jax.random.key(seed)`` in 64 bits; random when there is no seed.

    Raises:
        ValueError: the seed is negative or needs more than 64 bits.
    """
    if seed is None:
        return generator.integers(0, 2**32, 2, np.uint32)
    if not 0 <= seed <= _MAX_SEED:
        raise ValueError(f"a seed must be in [0, 2**64 - 1], got {seed}; choose another")
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
        ValueError: it holds an :class:`AutoReset`.
    """
    while isinstance(env, Wrapper):
        if isinstance(env, AutoReset):
            raise ValueError("Gymnasium's interface decides when to reset; hand in the environment without AutoReset")
        env = env.env


def without_action_checks(params: EnvParams) -> EnvParams:
    """Return params whose steps raise nothing, for actions that were checked on the host."""
    return dataclasses.replace(params, config=params.config.with_fields(invalid_action_policy="noop"))
