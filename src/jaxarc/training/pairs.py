"""The pairs of a run: training pairs, and the pairs that evaluations play."""

from dataclasses import dataclass, replace
from typing import Final

import jax
import numpy as np

from jaxarc.config import TaskConfig
from jaxarc.datasets import TaskSet, load_tasks, sample_task_set
from jaxarc.evaluation import one_task_per_pair, one_task_per_test
from jaxarc.tasks import RawTask
from jaxarc.tasks.procedural import ProceduralTasks, procedural_tasks
from jaxarc.tasks.procedural.names import PREFIX
from jaxarc.tasks.registry import task_id_of

_UNSEEN: Final = 2**31 + 1  # number of the key of the tasks that are measured, beyond those of all seeds


@dataclass(frozen=True)
class TrainingPairs:
    """What training episodes are drawn from, and task sets in which each task is one pair."""

    train: TaskSet | ProceduralTasks
    eval: TaskSet  # what is played to measure: the training pairs, then the evaluation pairs
    num_train: int  # how many of ``eval`` are training pairs; 0 if those are made as they are needed

    @property
    def num_evaluation(self) -> int:
        return len(self.eval) - self.num_train

    @property
    def train_ids(self) -> tuple[str, ...]:
        """The ids of what is learned from: tasks, or rules."""
        if isinstance(self.train, TaskSet):
            return tuple(self.train.task_ids)
        return tuple(task_id_of(index) for index in self.train.registry_index.tolist())


def load_pairs(config: TaskConfig, grid_shape: tuple[int, int], *, hides_answers: bool = False) -> TrainingPairs:
    """Load both data sets and take their small tasks apart: into pairs, tests included, or into tests.

    Args:
        config: names and sides.
        grid_shape: the canvas on which rules make their grids.
        hides_answers: only test pairs count, each with the demonstrations of its task.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        UnknownRuleError: a procedural dataset names a rule that does not exist.
        ValueError: no task is small enough.
    """
    train = load_train_tasks(config, grid_shape, hides_answers=hides_answers)
    train_pairs = train if isinstance(train, TaskSet) else ()
    evaluation = load_evaluation_tasks(config, grid_shape, hides_answers=hides_answers)
    # Training pairs first, so that ``num_train`` tells where the evaluation pairs begin.
    named = [replace(task, task_id=f"train/{task.task_id}") for task in train_pairs]
    named += [replace(task, task_id=f"evaluation/{task.task_id}") for task in evaluation]
    return TrainingPairs(train, TaskSet("measured pairs", tuple(named)), len(train_pairs))


def load_train_tasks(
    config: TaskConfig, grid_shape: tuple[int, int], *, hides_answers: bool = False
) -> TaskSet | ProceduralTasks:
    """Load what training episodes are drawn from; arguments and errors are those of :func:`load_pairs`."""
    if config.train_dataset.startswith(PREFIX):
        return _generator(config.train_dataset, config, grid_shape)
    return _take_apart(load_tasks(config.train_dataset).select(max_side=config.max_side), hides_answers)


def load_evaluation_tasks(config: TaskConfig, grid_shape: tuple[int, int], *, hides_answers: bool = False) -> TaskSet:
    """Load the unseen pairs that evaluations play; arguments and errors are those of :func:`load_pairs`."""
    if config.evaluation_dataset.startswith(PREFIX):
        generator = _generator(config.evaluation_dataset, config, grid_shape)
        return sample_task_set(
            generator, jax.random.fold_in(jax.random.key(0), _UNSEEN), config.num_unseen * generator.num_tasks
        )
    return _take_apart(load_tasks(config.evaluation_dataset).select(max_side=config.max_side), hides_answers)


def _take_apart(tasks: TaskSet, hides_answers: bool) -> TaskSet:
    return one_task_per_test(tasks) if hides_answers else one_task_per_pair(tasks)


def _generator(name: str, config: TaskConfig, grid_shape: tuple[int, int]) -> ProceduralTasks:
    rules = name.removeprefix(PREFIX).split("+")
    # Training plays one of a task's demonstrations and shows the others.
    num_train = config.num_demonstrations + 1
    sides = (config.min_side, config.max_side)
    return procedural_tasks(rules, grid_shape, num_train=num_train, side=sides)


def shared_ids(pairs: TrainingPairs) -> set[str]:
    """Return the ids of the unseen pairs that are learned from all the same, because both data sets hold them."""
    # A pair is shared if its name behind "train/" or "evaluation/" and its contents are both the same.
    named = [(task.task_id.partition("/")[2], contents_of(task)) for task in pairs.eval]
    return {name for name, _ in {*named[: pairs.num_train]} & {*named[pairs.num_train :]}}


def train_pair_contents(config: TaskConfig) -> frozenset[bytes]:
    """Return the content of each pair that a run learns from; nothing where rules make them as they are needed.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
    """
    if config.train_dataset.startswith(PREFIX):
        return frozenset()
    tasks = load_tasks(config.train_dataset).select(max_side=config.max_side)
    return frozenset().union(*map(contents_of, tasks))


def contents_of(task: RawTask) -> frozenset[bytes]:
    """Return the contents of the pairs of a task, which differ from those of other pairs whatever their names."""
    return frozenset(repr([grid.tolist() for grid in pair]).encode() for pair in task.pairs)


def rule_of(task_id: str) -> str:
    """Return the rule that made a measured task, such as ``procedural/gravity``."""
    return "/".join(task_id.split("/")[1:-1])


def pairs_by_rule(pairs: TrainingPairs) -> dict[str, np.ndarray]:
    """Return the indices of the evaluation pairs of each rule; empty if rules did not make them."""
    indices: dict[str, list[int]] = {}
    for index, task_id in enumerate(pairs.eval.task_ids):
        rule = rule_of(task_id)
        if index >= pairs.num_train and rule.startswith(PREFIX):
            indices.setdefault(rule, []).append(index)
    return {rule: np.array(found) for rule, found in indices.items()}
