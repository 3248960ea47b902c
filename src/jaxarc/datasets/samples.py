"""Generated tasks on the host, to look at and to write to files."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.constants import PADDING
from jaxarc.datasets.task_set import TaskSet
from jaxarc.prng import as_typed_key
from jaxarc.tasks.procedural.generator import ProceduralTasks
from jaxarc.tasks.raw_task import Pair, RawTask
from jaxarc.tasks.registry import task_id_of
from jaxarc.types import PRNGKey


def sample_task_set(generator: ProceduralTasks, key: PRNGKey, num_tasks: int) -> TaskSet:
    """Make tasks and copy them to the host, the rules in turn.

    Ids are the rule's name and a number, such as ``procedural/gravity/0``; the concept is the rule's name.

    Raises:
        ValueError: ``num_tasks`` is less than 1.
    """
    if not isinstance(generator, ProceduralTasks):
        raise TypeError(f"tasks are made by what procedural_tasks returns, got {type(generator).__name__}; pass that")
    if num_tasks < 1:
        raise ValueError(f"num_tasks must be at least 1, got {num_tasks}; ask for a task or more")
    rules = np.arange(num_tasks, dtype=np.int32) % generator.num_tasks
    keys = jax.random.split(as_typed_key(key), num_tasks)
    inputs, outputs = jax.jit(jax.vmap(generator.generate))(keys, jnp.asarray(rules))
    names = [task_id_of(index) for index in generator.registry_index.tolist()]
    grids = zip(np.asarray(inputs), np.asarray(outputs), strict=True)
    tasks = [
        _task_of(names[rule], place // generator.num_tasks, generator, [*zip(*pairs, strict=True)])
        for place, (rule, pairs) in enumerate(zip(rules, grids, strict=True))
    ]
    return TaskSet(" + ".join(names), tuple(tasks), generator.grid_shape)


def _task_of(name: str, number: int, generator: ProceduralTasks, padded: list[Pair]) -> RawTask:
    pairs = tuple((_active_area(grid, generator), _active_area(output, generator)) for grid, output in padded)
    train, test = pairs[: generator.num_train], pairs[generator.num_train :]
    return RawTask(f"{name}/{number}", train, test, concept=name)


def _active_area(flat: np.ndarray, generator: ProceduralTasks) -> np.ndarray:
    grid = flat.reshape(generator.grid_shape)
    return grid[: (grid[:, 0] != PADDING).sum(), : (grid[0] != PADDING).sum()]
