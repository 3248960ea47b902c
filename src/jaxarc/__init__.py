"""jaxarc: a reinforcement-learning environment for ARC, on JAX.

>>> import jax, jaxarc
>>> env, params = jaxarc.make("arc-agi-1/training", selection_format="bbox")
>>> state, observation = env.reset(jax.random.key(0), params)
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING

from jaxarc.lazy import lazy as _lazy
from jaxarc.lazy import when_imported as _when_imported
from jaxarc.notebooks import draw_with as _draw_with

if _TYPE_CHECKING:
    from jaxarc import adapters, datasets, evaluation, render, tasks, testing, wrappers
    from jaxarc.agents.saved_agent import load_agent
    from jaxarc.config import JaxArcConfig
    from jaxarc.datasets import dataset_names, load_tasks
    from jaxarc.display import record_episode, show
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
    from jaxarc.evaluation import evaluate
    from jaxarc.interface import Environment
    from jaxarc.registration import make
    from jaxarc.surrogate.held_out import load_surrogate

__version__ = "0.2.0"

_HOMES = {
    "make": "jaxarc.registration",
    "JaxArcConfig": "jaxarc.config",
    "Environment": "jaxarc.interface",
    "evaluate": "jaxarc.evaluation",
    "load_agent": "jaxarc.agents.saved_agent",
    "load_surrogate": "jaxarc.surrogate.held_out",
    **dict.fromkeys(["dataset_names", "load_tasks"], "jaxarc.datasets"),
    **dict.fromkeys(["record_episode", "show"], "jaxarc.display"),
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
    **{
        name: f"jaxarc.{name}"
        for name in ("adapters", "datasets", "evaluation", "render", "tasks", "testing", "wrappers")
    },
}

__all__ = [
    "ArcEnvironment",
    "BboxAction",
    "EnvParams",
    "Environment",
    "JaxArcConfig",
    "MaskAction",
    "PointAction",
    "adapters",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
    "dataset_names",
    "datasets",
    "evaluate",
    "evaluation",
    "load_agent",
    "load_surrogate",
    "load_tasks",
    "make",
    "record_episode",
    "render",
    "show",
    "tasks",
    "testing",
    "wrappers",
]


# Only a notebook that shows a task or a state loads what draws.
_draw_with(
    lambda thing: _importlib.import_module("jaxarc.display").picture_of(thing),
    lambda thing: _importlib.import_module("jaxarc.display").sheet_of(thing),
)

__getattr__, __dir__ = _lazy(__name__, _HOMES)

# Ids such as "jaxarc/starter-v1", whichever is imported first.
_when_imported("gymnasium", lambda: _importlib.import_module("jaxarc.gymnasium_ids").register_gymnasium())
