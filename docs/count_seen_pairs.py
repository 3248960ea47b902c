"""Print how many of the pairs that each experiment measures occur among those that it learns from.

    python docs/count_seen_pairs.py

Pairs are compared by their grids, under the augmentation of the training. Where rules make the training pairs as they
are needed, DRAWN tasks are drawn by the same rules, with a key that no run uses.
"""

from typing import Final

import jax

from jaxarc.agents import Experiment
from jaxarc.cli.settings import read_experiment
from jaxarc.config.choices import EXPERIMENT, choices_of
from jaxarc.datasets import TaskSet, sample_task_set
from jaxarc.datasets.seen_pairs import SeenPairs
from jaxarc.datasets.training_pairs import load_pairs

DRAWN: Final = 20_000


def main() -> None:
    print("| experiment | learns from | measured pairs | among those learned from | left out |")
    print("| --- | --- | --- | --- | --- |")
    for name in choices_of(EXPERIMENT):
        experiment = read_experiment([f"{EXPERIMENT}={name}"])
        assert isinstance(experiment, Experiment)
        print(f"| `{name}` | {' | '.join(row(experiment))} |", flush=True)


def row(experiment: Experiment) -> tuple[str, ...]:
    rules = experiment.environment
    hides = experiment.answer.is_hidden
    pairs = load_pairs(experiment.task, rules.grid_shape, hides_answers=hides, augmentation=rules.augmentation)
    train = pairs.train
    what = f"{pairs.num_train:,} pairs"
    if not isinstance(train, TaskSet):
        train = sample_task_set(train, jax.random.key(1), DRAWN)
        what = f"rules; {sum(len(task.pairs) for task in train):,} pairs drawn"
    seen = SeenPairs(train, rules.augmentation)
    count = pairs.num_left_out + sum(task.pairs[0] in seen for task in pairs.eval[pairs.num_train :])
    return what, f"{pairs.num_evaluation + pairs.num_left_out:,}", f"{count:,}", f"{pairs.num_left_out:,}"


if __name__ == "__main__":
    main()
