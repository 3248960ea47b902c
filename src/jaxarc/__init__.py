"""jaxarc: a reinforcement-learning environment for ARC, on JAX.

>>> import jax, jaxarc
>>> env, params = jaxarc.make("arc-agi-1/training", selection_format="bbox")
>>> state, observation = env.reset(jax.random.key(0), params)
"""

import importlib
from typing import TYPE_CHECKING, Any

from jaxarc.notebooks import draw_with

if TYPE_CHECKING:
    from jaxarc import datasets, tasks, wrappers
    from jaxarc.config import JaxArcConfig
    from jaxarc.envs import (
        ArcEnvironment,
        BboxAction,
        EnvParams,
        MaskAction,
        PointAction,
        arc_reset,
        arc_step,
        batch_reset,
        batch_step,
    )
    from jaxarc.registration import make

__version__ = "0.2.0"

_HOMES = {
    "make": "jaxarc.registration",
    "JaxArcConfig": "jaxarc.config",
    **dict.fromkeys(
        [
            "ArcEnvironment",
            "BboxAction",
            "EnvParams",
            "MaskAction",
            "PointAction",
            "arc_reset",
            "arc_step",
            "batch_reset",
            "batch_step",
        ],
        "jaxarc.envs",
    ),
}
_ROOMS = ("adapters", "datasets", "tasks", "wrappers")

__all__ = [
    "ArcEnvironment",
    "BboxAction",
    "EnvParams",
    "JaxArcConfig",
    "MaskAction",
    "PointAction",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
    "datasets",
    "make",
    "tasks",
    "wrappers",
]


# Only a notebook that shows a task or a state loads what draws.
draw_with(lambda thing: importlib.import_module("jaxarc.render.pictures").picture_of(thing))


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"jaxarc.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'jaxarc' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
