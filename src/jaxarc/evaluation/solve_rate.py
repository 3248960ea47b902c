"""Play every pair of a task set once and count which ones are solved, and in how many steps."""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.fusion import compiles_for_cpu, compute_once
from jaxarc.parallel.mesh import UNSHARDED, DataShard
from jaxarc.unroll import BatchPolicy, actor_step

_ENV: Final = ArcEnvironment()


class TaskResults(NamedTuple):
    """The result of one episode of each task."""

    solved: Bool[Array, " T"]
    steps: Int32[Array, " T"]  # the submit included


class _Slots(eqx.Module):
    """B episodes in progress; where one ends, the next task begins."""

    states: ArcEnvState  # [B]
    task_index: Int32[Array, " B"]  # of the task that a slot plays; past this device's last task: the slot is idle
    next_task: Int32[Array, ""]
    results: TaskResults


def play_every_task(
    policy: BatchPolicy, params: EnvParams, num_slots: int | None = None, shard: DataShard = UNSHARDED
) -> TaskResults:
    """Play one episode of each task of the buffer, on its first pair, and return which ones were solved.

    Nothing is sampled: each task is played exactly once, without augmentation and from the input of its pair. With
    :func:`jaxarc.evaluation.one_task_per_pair` the tasks are the pairs of a data set.

    Args:
        policy: gets the task indices [B] as its key. Under ``eqx.filter_jit`` its arrays may change from call to call.
        params: tasks and rules. The weights are not used, and whatever the config says, episodes start from the input
            and nothing is augmented.
        num_slots: episodes side by side, on which the results do not depend; by default 64 on a CPU, where more leave
            its cache and wait for the longest at the end, and 256 elsewhere.
        shard: of the tasks that this device plays; all get all results.
    """
    params = params.without_augmentation()
    num_tasks = params.tasks.num_tasks
    if num_slots is None:
        num_slots = 64 if compiles_for_cpu() else 256
    begin, end = shard.bounds(num_tasks)
    start = jax.vmap(lambda task: first_state(params, task))

    # Slots take the next task as they become free. With three slots and tasks 0 .. 6, after the first step in which
    # episodes end, here those of slots 0 and 2:
    #   task_index [0, 1, 2], ended [1, 0, 1], next_task 3
    #   cumsum(ended) - 1 = [0, 0, 1]: the first free slot takes task 3 + 0, the second 3 + 1
    #   task_index [3, 1, 4], next_task 5
    # A slot that gets a task past the last one is idle: it repeats the last task and its results are dropped.
    def play_on(slots: _Slots) -> _Slots:
        tasks = slots.task_index
        states, _ = actor_step(_ENV, params, policy, slots.states, jnp.minimum(tasks, num_tasks - 1))
        ended = states.done & (tasks < end)
        row = jnp.where(ended, tasks, num_tasks)  # one past the last row is dropped
        results = TaskResults(
            solved=slots.results.solved.at[row].set(states.is_solved, mode="drop"),
            steps=slots.results.steps.at[row].set(states.step_count, mode="drop"),
        )
        following = slots.next_task + jnp.cumsum(ended, dtype=jnp.int32) - 1
        tasks = compute_once(jnp.where(ended, following, tasks))
        fresh = start(jnp.minimum(tasks, num_tasks - 1))
        reset_ended = lambda new, old: jnp.where(ended.reshape(-1, *[1] * (old.ndim - 1)), new, old)
        states = jax.tree.map(reset_ended, fresh, states)
        return _Slots(states, tasks, slots.next_task + ended.sum(dtype=jnp.int32), results)

    count = min(num_slots, -(-num_tasks // shard.count))
    first = begin + jnp.arange(count, dtype=jnp.int32)
    zeros = TaskResults(jnp.zeros(num_tasks, jnp.bool_), jnp.zeros(num_tasks, jnp.int32))
    slots = _Slots(start(jnp.minimum(first, num_tasks - 1)), first, begin + count, zeros)
    results = jax.lax.while_loop(lambda slots: jnp.any(slots.task_index < end), play_on, slots).results
    # Each device has set the rows of its own tasks and left zeros in the others, so a sum puts them together.
    return TaskResults(shard.sum(results.solved.astype(jnp.int32)) > 0, shard.sum(results.steps))


def first_state(params: EnvParams, task_index: Int32[Array, ""]) -> ArcEnvState:
    """Start an episode on the first pair of a task; a generated task is the same each time."""
    key = jax.random.fold_in(jax.random.key(0), task_index)
    return _ENV.reset(key, params, task_index, pair_index=0)[0]
