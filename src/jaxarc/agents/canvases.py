"""The tasks of a run on canvases of several sizes, all learned by one agent.

Most ARC grids are small: padded to 30x30 the pairs of ARC-AGI-1 have 900 cells each, and the grids 151 on average. So
a task is played on the smallest of a few canvases that holds it. Each canvas has environments and a curriculum of its
own, and a compiled program; it makes a part of every update, the largest canvas first:

    canvas    tasks   environments   minibatches
    30x30       141             20             5
    20x20       260             40            10
    15x15       378             56            14
    10x10       939            140            35

Policy, optimizer and schedules go from one to the next: what learns does not notice that shapes differ.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from jaxarc.agents.ppo import TrainConfig
from jaxarc.agents.updates import Progress, TrainingState, make_params
from jaxarc.config import ConfigValidationError, JaxArcConfig
from jaxarc.datasets import TaskSet


class TasksOnCanvas(NamedTuple):
    """The tasks of a run that are played on one canvas."""

    tasks: Any  # a TaskSet; of a run on one canvas whatever it learns from
    rules: JaxArcConfig
    places: Int[np.ndarray, " T_g"] | slice  # of the tasks among those of the run

    @property
    def params(self) -> Any:
        """The tasks on the device, each as likely as any other."""
        return make_params(self.tasks, self.rules)


def canvases_of(tasks: Any, rules: JaxArcConfig, sides: Sequence[int]) -> list[TasksOnCanvas]:
    """Split tasks by the canvases that hold them, the largest first; without sides all are on the rules' own.

    Raises:
        ConfigValidationError: the tasks are no task set but a pool of pairs.
        ValueError: a task fits no canvas, see :meth:`jaxarc.datasets.TaskSet.by_size`.
    """
    if not sides:
        return [TasksOnCanvas(tasks, rules, slice(None))]
    if not isinstance(tasks, TaskSet):
        raise ConfigValidationError(f"task.canvases must be empty, as each episode draws pairs of {tasks!r:.100} anew")
    canvases = []
    for group in reversed(tasks.by_size(sides)):
        height, width = group.grid_shape
        places = np.array([tasks.index_of(task_id) for task_id in group.task_ids])
        canvases.append(TasksOnCanvas(group, rules.with_fields(max_grid_height=height, max_grid_width=width), places))
    return canvases


def configs_of(train_config: TrainConfig, canvases: Sequence[TasksOnCanvas]) -> list[TrainConfig]:
    """Divide the environments of an update among canvases, in proportion to their tasks, whole minibatches of them.

    The minibatches are dealt as the seats of a parliament by the method of Sainte-Lague, one at least to each canvas:
    141, 260, 378 and 939 tasks get 5, 10, 14 and 35 of 64.

    Raises:
        ConfigValidationError: there are fewer minibatches than canvases.
    """
    agent, answer, count = train_config.agent, train_config.answer, len(canvases)
    if count == 1:
        return [train_config]
    num_tasks = [len(canvas.tasks) for canvas in canvases]
    if agent.num_minibatches < count:
        raise ConfigValidationError(
            f"agent.num_minibatches must be at least {count}, the number of canvases with pairs, as a minibatch holds "
            f"trajectories of one canvas; got {agent.num_minibatches}"
        )
    seats = [1] * count
    for _ in range(agent.num_minibatches - count):
        seats[max(range(count), key=lambda g: num_tasks[g] / (2 * seats[g] + 1))] += 1
    share = lambda whole, g: max(1, round(whole * seats[g] / agent.num_minibatches))
    return [
        dataclasses.replace(
            train_config,
            agent=agent.replace(num_envs=share(agent.num_envs, g), num_minibatches=seats[g]),
            answer=answer.replace(batches_per_update=share(answer.batches_per_update, g)),
            canvases=tuple(seats),
        )
        for g in range(count)
    ]


def split_state(state: TrainingState, count: int) -> list[TrainingState]:
    """Return what each canvas learns with: its own environments and curriculum, and what all share."""
    if count == 1:
        return [state]
    whole: Any = state  # with tuples
    return [
        dataclasses.replace(state, env_states=whole.env_states[g], curriculum=whole.curriculum[g]) for g in range(count)
    ]


def join_states(states: Sequence[TrainingState]) -> TrainingState:
    """Put the states of all canvases together; what they share is that of the last, which learned last."""
    if len(states) == 1:
        return states[0]
    own = {"env_states": tuple(x.env_states for x in states), "curriculum": tuple(x.curriculum for x in states)}
    return dataclasses.replace(states[-1], **own)


def share_learned(state: TrainingState, learned: TrainingState) -> TrainingState:
    """Return the state of a canvas with the shared parts of another that has learned since."""
    return dataclasses.replace(learned, env_states=state.env_states, curriculum=state.curriculum)


def merge_progress(calls: Sequence[Sequence[Progress]], configs: Sequence[TrainConfig]) -> Progress:
    """Sum up calls, each a part of an update on each canvas: leaves [K], on the host.

    Counts add up, and losses are weighed by minibatches. Of the next draws first a canvas is drawn by its share of the
    environments, and then a task as if from ``effective_tasks`` equally likely ones; so the entropy of both is that of
    the shares and, in their proportion, those of the canvases.
    """
    if len(configs) == 1:
        return calls[0][0]
    share = np.array([config.agent.num_minibatches for config in configs], np.float32)
    share /= share.sum()
    parts = [part for call in calls for part in call]

    def total(*leaves: Any) -> Any:
        return np.sum(leaves, axis=0, dtype=leaves[0].dtype)

    def mean(*leaves: Any) -> Any:
        return np.average(np.stack(leaves), axis=0, weights=np.tile(share, len(calls)))

    entropies = [np.log(part.effective_tasks / mine) for part, mine in zip(calls[-1], share, strict=True)]
    effective: Any = np.exp(np.average(np.stack(entropies), axis=0, weights=share))
    return Progress(
        episodes=jax.tree.map(total, *(part.episodes for part in parts)),
        losses=jax.tree.map(mean, *(part.losses for part in parts)),
        answer_loss=jax.tree.map(mean, *(part.answer_loss for part in parts)),
        tasks_played=total(*(part.tasks_played for part in calls[-1])),
        effective_tasks=effective,
    )
