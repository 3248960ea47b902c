"""What the bad calls are made of: small good objects, some broken files, and every public name."""

import importlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc import make
from jaxarc.adapters import GymnasiumEnv
from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs import BboxAction, PointAction, arc_reset, batch_reset
from jaxarc.experts import Pair
from jaxarc.parallel import RandomPolicy
from jaxarc.tasks import RawTask
from jaxarc.tasks.procedural import procedural_tasks
from jaxarc.traces import Graph

ROOMS: Final = (
    *("registration", "envs", "envs.functional", "envs.structured_actions", "utils.error_handling", "config"),
    *("config.build", "tasks", "datasets", "tasks.procedural", "tasks.curriculum", "wrappers", "adapters", "experts"),
    *("traces", "surrogate", "agents", "runs", "evaluation", "search", "parallel", "render", "io.serialization"),
    *("testing", "profiling"),
)
"""Whose names are public, as the pages of the API list them."""
HAS_GYMNAX: Final = find_spec("gymnax") is not None  # it allows no JAX after 0.11
_OF_GYMNAX: Final = {"GymnaxEnvironment", "GymnaxParams", "GymnaxState", "register_gymnax"}
# Libraries that are rarely installed; tests/adapters/test_to_sb3.py and test_to_envelope.py have the bad calls.
NEEDS_MORE: Final = {"EnvelopeEnvironment", "Sb3VecEnv"} | (set() if HAS_GYMNAX else _OF_GYMNAX)


def public_names() -> dict[str, Any]:
    """Return every public name with what it means."""
    found: dict[str, Any] = {}
    for room in ROOMS:
        module = importlib.import_module(f"jaxarc.{room}")
        names = module.__dict__.get("__all__")
        mine = names or [name for name, value in vars(module).items() if _is_defined_in(value, module.__name__)]
        public = [name for name in mine if not name.startswith("_") and name not in NEEDS_MORE]
        found |= {name: getattr(module, name) for name in public}
    return found


def things(folder: Path) -> dict[str, Any]:
    """Return the names that calls use."""
    broken, wrong = folder / "broken.json", folder / "wrong_color.json"
    broken.write_text("{")
    wrong.write_text('{"train": [{"input": [[0]], "output": [[10]]}], "test": [{"input": [[0]], "output": [[1]]}]}')
    grids = [([[0, 1], [2, 3]], [[3, 2], [1, 0]])]
    tasks = TaskSet("small", tuple(RawTask(name, grids, grids) for name in ("one", "two")))
    config = JaxArcConfig().with_fields(
        selection_format="point", max_grid_height=2, max_grid_width=2, max_episode_steps=5, history_enabled=False
    )
    env, params = make(tasks, config)
    task, key = tasks.get_task_by_id("one"), jax.random.key(0)
    return {
        **public_names(),
        "jax": jax,
        "jnp": jnp,
        "np": np,
        "Path": Path,
        "key": key,
        "config": config,
        "tasks": tasks,
        "task": task,
        "raw_task": tasks.raw_task("one"),
        "pair": Pair(*tasks.raw_task("one").test[0]),
        "buffer": params.tasks,
        "env": env,
        "params": params,
        "env_state": env.reset(key, params)[0],
        "state": arc_reset(key, config, task)[0],
        "states": batch_reset(jax.random.split(key, 2), config, task)[0],
        "point": PointAction(0, 1, 1),
        "points": PointAction([0, 1], [0, 0], [0, 0]),
        "bbox": BboxAction(0, 0, 0, 1, 1),
        "generator": procedural_tasks("procedural/gravity", (5, 5)),
        "graph": Graph.of_tasks(tasks),
        "gymnasium_env": GymnasiumEnv(env, params),
        "policy": RandomPolicy(env.action_space(params)),
        "broken_file": broken,
        "wrong_color_file": wrong,
    }


def _is_defined_in(value: Any, module: str) -> bool:
    return getattr(value, "__module__", None) == module
