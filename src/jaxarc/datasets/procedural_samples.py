"""A sample of a generator's tasks, on the host: to look at, to measure."""

from typing import Final

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.datasets.task_set import TaskSet
from jaxarc.prng import as_typed_key
from jaxarc.tasks.buffer import TaskGenerator
from jaxarc.tasks.procedural import procedural_tasks
from jaxarc.tasks.raw_task import Pair, RawTask, crop_padding
from jaxarc.tasks.registry import task_id_of
from jaxarc.types import PRNGKey

_NUM_SAMPLES: Final = 16  # tasks of a rule that load_tasks makes to look at


def sample_task_set(generator: TaskGenerator, key: PRNGKey, num_tasks: int) -> TaskSet:
    """Make tasks and copy them to the host, alternating between the rules.

    Ids are the rule's name and a number, such as ``procedural/gravity/0``; the concept is the rule's name.

    Raises:
        ValueError: ``num_tasks`` is less than 1.
    """
    if not isinstance(generator, TaskGenerator):
        raise TypeError(f"tasks are made by what procedural_tasks returns, got {type(generator).__name__}; pass that")
    if num_tasks < 1:
        raise ValueError(f"num_tasks must be at least 1, got {num_tasks}; ask for a task or more")
    # Two rules and five tasks: 0 1 0 1 0. The number in an id counts the tasks of
    # its rule, so the ids end in 0 0 1 1 2.
    rules = np.arange(num_tasks, dtype=np.int32) % generator.num_tasks
    keys = jax.random.split(as_typed_key(key), num_tasks)
    # One compiled call makes all tasks, [N, P, HW].
    inputs, outputs = jax.jit(jax.vmap(generator.generate))(keys, jnp.asarray(rules))
    names = [task_id_of(index) for index in generator.registry_index.tolist()]
    grids = zip(np.asarray(inputs), np.asarray(outputs), strict=True)
    tasks = [
        _task_of(names[rule], index // generator.num_tasks, generator, [*zip(*pairs, strict=True)])
        for index, (rule, pairs) in enumerate(zip(rules, grids, strict=True))
    ]
    return TaskSet(" + ".join(names), tuple(tasks), generator.grid_shape)


def sample_of_rule(name: str) -> TaskSet:
    """Make a few tasks of a rule by its name, the same ones each time."""
    return sample_task_set(procedural_tasks(name), jax.random.key(0), _NUM_SAMPLES)


def _task_of(name: str, number: int, generator: TaskGenerator, padded: list[Pair]) -> RawTask:
    grid_of = lambda flat: crop_padding(flat.reshape(generator.grid_shape))
    pairs = tuple((grid_of(grid), grid_of(output)) for grid, output in padded)
    return RawTask(f"{name}/{number}", pairs[: generator.num_train], pairs[generator.num_train :], concept=name)
