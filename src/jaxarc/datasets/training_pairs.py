"""The pairs of a run: training pairs, and the pairs that evaluations play.

Pairs are compared with others by their grids, whatever the names of their tasks. An augmentation makes more pairs of
each: all that it can make of one another have the same canonical form::

    canonical_form(pair, augmentation) in seen    the run may meet this very pair
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import jax
import numpy as np
from jaxtyping import Bool, Int

from jaxarc.config import AugmentationConfig, TaskConfig
from jaxarc.constants import NUM_COLORS
from jaxarc.datasets.catalogue import load_tasks
from jaxarc.datasets.procedural_samples import sample_task_set
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks import RawTask, TaskGenerator
from jaxarc.tasks.procedural import ProceduralTasks, procedural_tasks
from jaxarc.tasks.procedural.names import PREFIX
from jaxarc.tasks.raw_task import Pair
from jaxarc.tasks.registry import task_id_of

_UNSEEN: Final = 2**31 + 1  # number of the key of the tasks that are measured, beyond those of all seeds


@dataclass(frozen=True)
class TrainingPairs:
    """The source of training episodes, and task sets in which each task is one pair."""

    train: TaskSet | TaskGenerator
    eval: TaskSet  # what is played to measure: the training pairs, then the evaluation pairs
    num_train: int  # how many of ``eval`` are training pairs; 0 if those are made as they are needed
    num_left_out: int = 0  # evaluation pairs that are not in ``eval``, because training holds them

    @property
    def num_evaluation(self) -> int:
        return len(self.eval) - self.num_train

    @property
    def train_ids(self) -> tuple[str, ...]:
        """The ids of what is learned from: tasks, or rules."""
        if isinstance(self.train, TaskSet):
            return tuple(self.train.task_ids)
        return tuple(task_id_of(index) for index in self.train.registry_index.tolist())

    def scores(self, solved: Bool[np.ndarray, " T"], steps: Int[np.ndarray, " T"]) -> dict[str, float]:
        """Return what is measured besides the rates, by fields of a report: nothing."""
        return {}


_AS_THEY_ARE: Final = AugmentationConfig()


def load_pairs(
    config: TaskConfig,
    grid_shape: tuple[int, int],
    *,
    hides_answers: bool = False,
    augmentation: AugmentationConfig = _AS_THEY_ARE,
) -> TrainingPairs:
    """Load both data sets and take their small tasks apart: into pairs, tests included, or into tests.

    An evaluation pair with the grids of a training pair is left out, whatever the names of their tasks.

    Args:
        config: names and sides.
        grid_shape: the canvas on which rules make their grids.
        hides_answers: only test pairs count, each with the demonstrations of its task.
        augmentation: of the training; what it can make of a training pair was seen, too.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        UnknownRuleError: a procedural dataset names a rule that does not exist.
        ValueError: no task is small enough, or training holds every evaluation pair.
    """
    train, train_tasks = _train_tasks(config, grid_shape, hides_answers)
    train_pairs = train if isinstance(train, TaskSet) else ()
    evaluation = _evaluation_tasks(config, grid_shape, hides_answers)
    unseen = _unseen(evaluation, train_tasks, config, augmentation)
    # Training pairs first, so that ``num_train`` tells where the evaluation pairs begin.
    named = [replace(task, task_id=f"train/{task.task_id}") for task in train_pairs]
    named += [replace(task, task_id=f"evaluation/{task.task_id}") for task in unseen]
    return TrainingPairs(train, TaskSet("played pairs", tuple(named)), len(train_pairs), len(evaluation) - len(unseen))


def left_out(count: int) -> str:
    """Say how many pairs are not measured; nothing where all are."""
    if not count:
        return ""
    return f" {'One more is' if count == 1 else f'{count:,} more are'} left out: the training pairs hold them."


def load_train_tasks(
    config: TaskConfig, grid_shape: tuple[int, int], *, hides_answers: bool = False
) -> TaskSet | TaskGenerator:
    """Load what training episodes are drawn from; arguments and errors are those of :func:`load_pairs`."""
    return _train_tasks(config, grid_shape, hides_answers)[0]


def _train_tasks(
    config: TaskConfig, grid_shape: tuple[int, int], hides_answers: bool
) -> tuple[TaskSet | TaskGenerator, Sequence[RawTask]]:
    """Return what training episodes are drawn from, and the tasks with all pairs that they may show."""
    if config.train_dataset.startswith(PREFIX):
        return _generator(config.train_dataset, config, grid_shape), ()
    tasks = load_small_tasks(config.train_dataset, config.max_side)
    if not tasks.has_pools:
        apart = _take_apart(tasks, hides_answers)
        return apart, apart.tasks
    num_train = config.num_demonstrations + 1  # training plays one of them and shows the others
    enough = [task for task in tasks if len(task.all_pairs) > num_train]
    if not enough:
        raise ValueError(
            f"task.train_dataset={config.train_dataset} has no task with {num_train + 1} pairs up to "
            f"{config.max_side}x{config.max_side}; lower task.num_demonstrations or raise task.max_side"
        )
    return replace(tasks, tasks=tuple(enough)).pair_pool(grid_shape, num_train), enough


def load_evaluation_tasks(
    config: TaskConfig,
    grid_shape: tuple[int, int],
    *,
    hides_answers: bool = False,
    augmentation: AugmentationConfig = _AS_THEY_ARE,
) -> TaskSet:
    """Load the unseen pairs that evaluations play; arguments and errors are those of :func:`load_pairs`."""
    _, train_tasks = _train_tasks(config, grid_shape, hides_answers)
    evaluation = _evaluation_tasks(config, grid_shape, hides_answers)
    return _unseen(evaluation, train_tasks, config, augmentation)


def _evaluation_tasks(config: TaskConfig, grid_shape: tuple[int, int], hides_answers: bool) -> TaskSet:
    if config.evaluation_dataset.startswith(PREFIX):
        generator = _generator(config.evaluation_dataset, config, grid_shape)
        return sample_task_set(
            generator, jax.random.fold_in(jax.random.key(0), _UNSEEN), config.num_unseen * generator.num_tasks
        )
    return _take_apart(load_small_tasks(config.evaluation_dataset, config.max_side), hides_answers)


def _unseen(
    evaluation: TaskSet, train: Iterable[RawTask], config: TaskConfig, augmentation: AugmentationConfig
) -> TaskSet:
    unseen = without_seen(evaluation, SeenPairs(train, augmentation))
    if not unseen:
        raise ValueError(
            f"task.evaluation_dataset={config.evaluation_dataset} has {len(evaluation)} pairs, and "
            f"task.train_dataset={config.train_dataset} holds them all, so none is unseen; name another data set"
        )
    return replace(evaluation, tasks=unseen)


def _take_apart(tasks: TaskSet, hides_answers: bool) -> TaskSet:
    return one_task_per_test(tasks) if hides_answers else one_task_per_pair(tasks)


def _generator(name: str, config: TaskConfig, grid_shape: tuple[int, int]) -> ProceduralTasks:
    rules = name.removeprefix(PREFIX).split("+")
    # Training plays one of a task's demonstrations and shows the others.
    num_train = config.num_demonstrations + 1
    sides = (config.min_side, config.max_side)
    return procedural_tasks(rules, grid_shape, num_train=num_train, side=sides)


def one_task_per_pair(task_set: TaskSet) -> TaskSet:
    """Make each pair, demonstrations and tests alike, a task with this one demonstration.

    Where the answer is shown, a test pair is one more pair to learn from or to play. The third pair of task
    ``007bbfb7`` gets the id ``007bbfb7/2``; its test repeats its demonstration, because a task needs one.
    """
    named = ((f"{task.task_id}/{index}", pair) for task in task_set for index, pair in enumerate(task.pairs))
    tasks = tuple(RawTask(name, (pair,), (pair,)) for name, pair in named)
    return TaskSet(f"{task_set.name}, pair by pair", tasks, task_set.canvas)


def one_task_per_test(task_set: TaskSet) -> TaskSet:
    """Make each test pair a task of its own: its first pair is the test, the others are the demonstrations.

    Where the answer is hidden, the first pair is played and the others are shown. The second test pair of task
    ``007bbfb7`` gets the id ``007bbfb7/1``.
    """
    named = ((task, f"{task.task_id}/{index}", pair) for task in task_set for index, pair in enumerate(task.test))
    tasks = tuple(RawTask(name, (pair, *task.train), (pair,)) for task, name, pair in named)
    return TaskSet(f"{task_set.name}, test by test", tasks, task_set.canvas)


def rule_of(task_id: str) -> str:
    """Return the rule that made an evaluation task, such as ``procedural/gravity``."""
    return "/".join(task_id.split("/")[1:-1])


def pairs_by_rule(pairs: TrainingPairs) -> dict[str, np.ndarray]:
    """Return the indices of the evaluation pairs of each rule; empty if rules did not make them."""
    indices: dict[str, list[int]] = {}
    for index, task_id in enumerate(pairs.eval.task_ids):
        rule = rule_of(task_id)
        if index >= pairs.num_train and rule.startswith(PREFIX):
            indices.setdefault(rule, []).append(index)
    return {rule: np.array(found) for rule, found in indices.items()}


class SeenPairs:
    """The pairs of some tasks, demonstrations and tests, and all that an augmentation makes of them."""

    def __init__(self, tasks: Iterable[RawTask], augmentation: AugmentationConfig):
        self.augmentation = augmentation
        self._forms = {canonical_form(pair, augmentation) for task in tasks for pair in task.all_pairs}

    def __contains__(self, pair: Pair) -> bool:
        return canonical_form(pair, self.augmentation) in self._forms


def pairs_seen_by(config: TaskConfig, augmentation: AugmentationConfig) -> SeenPairs:
    """Load the pairs that a run learns from; none where rules make them as they are needed, which nobody lists.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        ValueError: no task is small enough.
    """
    if config.train_dataset.startswith(PREFIX):
        return SeenPairs((), augmentation)
    return SeenPairs(load_small_tasks(config.train_dataset, config.max_side), augmentation)


def load_small_tasks(dataset: str, max_side: int) -> TaskSet:
    """Load the tasks whose grids are all small enough; of tasks with pools, the pairs that are.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        ValueError: no task is small enough.
    """
    tasks = load_tasks(dataset)
    return tasks.fit((max_side, max_side), "skip") if tasks.has_pools else tasks.select(max_side=max_side)


def without_seen(tasks: Iterable[RawTask], seen: SeenPairs) -> tuple[RawTask, ...]:
    """Return the tasks of which the first pair, which is played to measure, was not seen."""
    return tuple(task for task in tasks if task.pairs[0] not in seen)


def canonical_form(pair: Pair, augmentation: AugmentationConfig) -> bytes:
    """Return sizes and cells of a pair, the same for all pairs that an augmentation makes of one another.

    Colors are numbered in the order in which they appear, so 5 5 3 -> 3 0 and 1 1 2 -> 2 7 are both 0 0 1 -> 1 2. Of
    the forms under several symmetries the least one counts.
    """
    turned = _under_symmetries(pair, augmentation.num_symmetries)
    return min(_sizes_and_cells(grids, augmentation.recolor) for grids in turned)


def _under_symmetries(pair: Pair, count: int) -> Iterator[Pair]:
    # In the order of jaxarc.tasks.augmentation: bit 1 turns upside down, bit 2 left to right, bit 4 swaps rows and
    # columns. Which of the eight comes with which number does not matter for the least form.
    for symmetry in range(count):
        rows = slice(None, None, -1 if symmetry & 1 else 1)
        columns = slice(None, None, -1 if symmetry & 2 else 1)
        source, output = (grid.T if symmetry & 4 else grid for grid in pair)
        yield source[rows, columns], output[rows, columns]


def _sizes_and_cells(pair: Pair, recolor: str) -> bytes:
    source, output = pair
    cells = source.tobytes() + output.tobytes()
    if recolor != "none":
        # Where each color appears first, -1 for one that does not; a color that stays as it is comes first.
        first_index = [cells.find(color) for color in range(NUM_COLORS)]
        present = [color for color in sorted(range(NUM_COLORS), key=first_index.__getitem__) if first_index[color] >= 0]
        order = bytes(dict.fromkeys([0, *present] if recolor == "keep_black" else present))
        cells = cells.translate(bytes.maketrans(order, bytes(range(len(order)))))
    return bytes(np.array((source.shape, output.shape), np.uint8)) + cells
