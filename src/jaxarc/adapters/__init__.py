"""Our environment in the types of gymnax, Gymnasium, stable-baselines3 and Stoa; none is imported before it is used.

Where Gymnasium or gymnax is imported already, importing this module registers our environments there, so that
``gymnasium.register_envs(jaxarc.adapters)`` works as its documentation says; where flax is, our classes for its
serialization.
"""

import contextlib
import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxarc.adapters.to_flax import register_flax
    from jaxarc.adapters.to_gymnasium import GymnasiumEnv, register_gymnasium
    from jaxarc.adapters.to_gymnasium_vector import GymnasiumVectorEnv
    from jaxarc.adapters.to_gymnax import GymnaxEnvironment, GymnaxParams, GymnaxState, register_gymnax
    from jaxarc.adapters.to_sb3 import Sb3VecEnv
    from jaxarc.adapters.to_stoa import StoaEnvironment

_HOMES = {
    "GymnasiumEnv": "to_gymnasium",
    "GymnasiumVectorEnv": "to_gymnasium_vector",
    "GymnaxEnvironment": "to_gymnax",
    "GymnaxParams": "to_gymnax",
    "GymnaxState": "to_gymnax",
    "Sb3VecEnv": "to_sb3",
    "StoaEnvironment": "to_stoa",
    "register_flax": "to_flax",
    "register_gymnasium": "to_gymnasium",
    "register_gymnax": "to_gymnax",
}

__all__ = [
    "GymnasiumEnv",
    "GymnasiumVectorEnv",
    "GymnaxEnvironment",
    "GymnaxParams",
    "GymnaxState",
    "Sb3VecEnv",
    "StoaEnvironment",
    "register_flax",
    "register_gymnasium",
    "register_gymnax",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"jaxarc.adapters.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'jaxarc.adapters' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)


for _library in ("flax", "gymnasium", "gymnax"):
    if sys.modules.get(_library) is not None:
        with contextlib.suppress(ImportError):  # an old version of one library is no reason to refuse the others
            __getattr__(f"register_{_library}")()
