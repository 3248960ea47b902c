"""Which pairs an agent solves, and in how many steps."""

import dataclasses
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from jaxarc.config import AugmentationConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.parallel.shards import UNSHARDED, DataShard
from jaxarc.tasks import RawTask
from jaxarc.types import Observation


def one_task_per_pair(task_set: TaskSet) -> TaskSet:
    """Make each pair, demonstrations and tests alike, a task with this one demonstration.

    Where the answer is shown, a test pair is one more pair to learn from or to play. The pair of task ``007bbfb7`` that
    comes third gets the id ``007bbfb7/2``; its test repeats its demonstration, because a task needs one.
    """
    named = ((f"{task.task_id}/{index}", pair) for task in task_set for index, pair in enumerate(task.pairs))
    tasks = tuple(RawTask(name, (pair,), (pair,)) for name, pair in named)
    return TaskSet(f"{task_set.name}, pair by pair", tasks, task_set.canvas)


def one_task_per_test(task_set: TaskSet) -> TaskSet:
    """Make each test pair a task of its own, whose first pair it is and whose others are the demonstrations.

    Where the answer is hidden, what is played is the first pair, and the others are shown. The second test pair of task
    ``007bbfb7`` gets the id ``007bbfb7/1``.
    """
    named = ((task, f"{task.task_id}/{index}", pair) for task in task_set for index, pair in enumerate(task.test))
    tasks = tuple(RawTask(name, (pair, *task.train), (pair,)) for task, name, pair in named)
    return TaskSet(f"{task_set.name}, test by test", tasks, task_set.canvas)


BatchPolicy: TypeAlias = Callable[[Observation, Int32[Array, " B"]], StructuredAction]
"""From a batch of observations and the tasks that they are of to a batch of actions."""

_NUM_SLOTS: Final = 256  # episodes side by side: enough to be fast, few enough to stay in a CPU's cache
_ENV: Final = ArcEnvironment()


class TaskResults(NamedTuple):
    """How one episode of each task went."""

    solved: Bool[Array, " T"]
    steps: Int32[Array, " T"]  # the submit included


class _Slots(eqx.Module):
    """Episodes that go on; where one ends, the next task begins."""

    states: ArcEnvState  # [B]
    task_index: Int32[Array, " B"]  # the end or more: nothing is left to play here
    next_task: Int32[Array, ""]
    played: TaskResults


def play_every_task(
    policy: BatchPolicy, params: EnvParams, num_slots: int = _NUM_SLOTS, shard: DataShard = UNSHARDED
) -> TaskResults:
    """Play one episode of each task of the buffer, on its first pair, and tell which ones were solved.

    Nothing is sampled: each task is played exactly once, as it is and from the input of its pair. With
    :func:`jaxarc.evaluation.one_task_per_pair` the tasks are the pairs of a data set.

    Args:
        policy: decides; under ``eqx.filter_jit`` its arrays may change from call to call.
        params: tasks and rules. The weights are not used, and whatever the config says, episodes start from the input
            and nothing is augmented.
        num_slots: episodes side by side; the results do not depend on it.
        shard: of the tasks that this device plays; all get all results.
    """
    params = without_augmentation(params)
    num_tasks = params.tasks.num_tasks
    begin, end = shard.bounds(num_tasks)
    start = jax.vmap(lambda task: first_state(params, task))
    take_steps = jax.vmap(_ENV.step, (0, 0, None))

    def play_on(slots: _Slots) -> _Slots:
        tasks = slots.task_index
        actions = policy(_ENV.observe(slots.states, params), jnp.minimum(tasks, num_tasks - 1))
        states = take_steps(slots.states, actions, params)[0]
        ended = states.done & (tasks < end)
        place = jnp.where(ended, tasks, num_tasks)  # one past the end is dropped
        played = TaskResults(
            slots.played.solved.at[place].set(states.is_solved, mode="drop"),
            slots.played.steps.at[place].set(states.step_count, mode="drop"),
        )
        following = slots.next_task + jnp.cumsum(ended, dtype=jnp.int32) - 1
        tasks = jnp.where(ended, following, tasks)
        fresh = start(jnp.minimum(tasks, num_tasks - 1))
        renew = lambda new, old: jnp.where(ended.reshape(-1, *[1] * (old.ndim - 1)), new, old)
        states = jax.tree.map(renew, fresh, states)
        return _Slots(states, tasks, slots.next_task + ended.sum(dtype=jnp.int32), played)

    count = min(num_slots, -(-num_tasks // shard.count))
    first = begin + jnp.arange(count, dtype=jnp.int32)
    nothing = TaskResults(jnp.zeros(num_tasks, jnp.bool_), jnp.zeros(num_tasks, jnp.int32))
    slots = _Slots(start(jnp.minimum(first, num_tasks - 1)), first, begin + count, nothing)
    played = jax.lax.while_loop(lambda slots: jnp.any(slots.task_index < end), play_on, slots).played
    return TaskResults(shard.sum(played.solved.astype(jnp.int32)) > 0, shard.sum(played.steps))


def without_augmentation(params: EnvParams) -> EnvParams:
    """Return params whose episodes start from the input of an unchanged task."""
    rules = params.config.with_fields(start_grid="input", augmentation=AugmentationConfig())
    return dataclasses.replace(params, config=rules)


def first_state(params: EnvParams, task_index: Int32[Array, ""]) -> ArcEnvState:
    """Start an episode on the first pair of a task; a task that is made by a rule is always the same."""
    key = jax.random.fold_in(jax.random.key(0), task_index)
    return _ENV.reset(key, params, task_index, pair_index=0)[0]
