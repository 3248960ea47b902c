"""The pairs of a run: which are learned from, and which are played to measure."""

from dataclasses import dataclass, replace

from jaxarc.config import TaskConfig
from jaxarc.evaluation import one_task_per_pair
from jaxarc.tasks import TaskSet, load_tasks


@dataclass(frozen=True)
class TrainingPairs:
    """Task sets in which each task is one pair."""

    learned: TaskSet  # what training episodes are drawn from
    measured: TaskSet  # what is played to measure: the training pairs, then the evaluation pairs
    num_train: int  # how many of the measured ones are training pairs

    @property
    def num_evaluation(self) -> int:
        return len(self.measured) - self.num_train


def load_pairs(config: TaskConfig) -> TrainingPairs:
    """Load both data sets and take their small tasks apart into pairs, tests included.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.tasks.load_tasks`.
        ValueError: no task is small enough.
    """
    train, evaluation = (
        one_task_per_pair(load_tasks(name).select(max_side=config.max_side))
        for name in (config.train_dataset, config.evaluation_dataset)
    )
    named = [replace(task, task_id=f"train/{task.task_id}") for task in train]
    named += [replace(task, task_id=f"evaluation/{task.task_id}") for task in evaluation]
    return TrainingPairs(train, TaskSet("measured pairs", tuple(named)), len(train))
