"""Our environment in the types of gymnax, Gymnasium and Stoa; none of them is imported before it is used."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxarc.adapters.to_gymnasium import GymnasiumEnv, register_gymnasium
    from jaxarc.adapters.to_gymnasium_vector import GymnasiumVectorEnv
    from jaxarc.adapters.to_gymnax import GymnaxEnvironment, GymnaxParams, GymnaxState, register_gymnax
    from jaxarc.adapters.to_stoa import StoaEnvironment

_HOMES = {
    "GymnasiumEnv": "to_gymnasium",
    "GymnasiumVectorEnv": "to_gymnasium_vector",
    "GymnaxEnvironment": "to_gymnax",
    "GymnaxParams": "to_gymnax",
    "GymnaxState": "to_gymnax",
    "StoaEnvironment": "to_stoa",
    "register_gymnasium": "to_gymnasium",
    "register_gymnax": "to_gymnax",
}

__all__ = [
    "GymnasiumEnv",
    "GymnasiumVectorEnv",
    "GymnaxEnvironment",
    "GymnaxParams",
    "GymnaxState",
    "StoaEnvironment",
    "register_gymnasium",
    "register_gymnax",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"jaxarc.adapters.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'jaxarc.adapters' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
