"""Pairs are the same where their grids are, whatever their tasks are called and however augmentation changes them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.config import AugmentationConfig, TaskConfig
from jaxarc.datasets import load_tasks
from jaxarc.datasets.training_pairs import SeenPairs, canonical_form, load_evaluation_tasks, load_pairs
from jaxarc.evaluation import one_task_per_pair
from jaxarc.tasks import RawTask
from jaxarc.tasks.augmentation import augment_grid, draw_augmentation
from jaxarc.tasks.raw_task import pad_grids

PAIRS = [pair for task in load_tasks("arc-agi-1/training").select(max_side=6)[:40] for pair in task.pairs]
CHANGES = [
    AugmentationConfig(),
    AugmentationConfig(recolor="keep_black"),
    AugmentationConfig(recolor="all"),
    AugmentationConfig(symmetries="flips", recolor="all"),
    AugmentationConfig(symmetries="all"),
]


@pytest.mark.parametrize("augmentation", CHANGES, ids=repr)
def test_what_an_augmentation_makes_of_a_pair_has_the_form_of_the_pair(augmentation):
    grids = np.stack([pad_grids(list(pair), (6, 6)) for pair in PAIRS])

    @jax.vmap
    def change(key, pair):
        drawn = draw_augmentation(key, 1, 1, augmentation)
        return jax.vmap(augment_grid, (0, None))(pair, drawn)

    made = np.asarray(jax.jit(change)(jax.random.split(jax.random.key(0), len(PAIRS)), jnp.asarray(grids)))
    changed = 0
    for pair, padded in zip(PAIRS, made, strict=True):
        other = tuple(grid[: (grid[:, 0] >= 0).sum(), : (grid[0] >= 0).sum()] for grid in padded)
        changed += any(not np.array_equal(*both) for both in zip(pair, other, strict=True))
        assert canonical_form(other, augmentation) == canonical_form(pair, augmentation)
    assert (changed > 0) == augmentation.is_active


def test_pairs_that_an_augmentation_does_not_make_of_one_another_differ():
    grid, black = np.array([[1, 2], [1, 0]], np.int8), np.zeros((1, 1), np.int8)
    recolored = np.array([[0, 2], [0, 1]], np.int8)  # black is another color
    everything = AugmentationConfig(symmetries="all", recolor="all")
    for other, augmentation in (
        ((grid, black + 1), AugmentationConfig()),
        ((recolored, black + 1), AugmentationConfig(recolor="keep_black")),
        ((grid[::-1], black), AugmentationConfig(recolor="all")),
        ((grid.T, black), AugmentationConfig(symmetries="flips")),
        ((grid[::-1], grid), everything),  # only one of the two grids is turned
        ((grid.reshape(1, 4), black), everything),
        ((black, grid), everything),
        ((grid, black + 1), everything),
    ):
        seen = SeenPairs([RawTask("learned", ((grid, black),), ((grid, black),))], augmentation)
        assert (grid, black) in seen
        assert other not in seen


def test_tasks_of_another_data_set_with_the_same_pairs_are_not_called_unseen():
    # ARC-AGI-2 took over all tasks of ARC-AGI-1 up to 10x10, some with pairs in another order.
    task = TaskConfig(train_dataset="arc-agi-2/training", max_side=10)
    with pytest.raises(ValueError, match=r"378.*task\.train_dataset=arc-agi-2/training"):
        load_pairs(task, (10, 10))


@pytest.mark.parametrize(("recolor", "left_out"), [("none", 3), ("all", 5)])
def test_pairs_of_both_halves_of_arc_agi_1_are_left_out(recolor, left_out):
    task = TaskConfig(max_side=30)
    augmentation = AugmentationConfig(recolor=recolor)
    pairs = load_pairs(task, (30, 30), augmentation=augmentation)
    every = one_task_per_pair(load_tasks("arc-agi-1/evaluation"))
    assert (pairs.num_evaluation, pairs.num_left_out) == (len(every) - left_out, left_out)
    missing = set(every.task_ids) - {name.removeprefix("evaluation/") for name in pairs.eval.task_ids}
    assert {name.partition("/")[0] for name in missing} == (
        {"070dd51e"} if recolor == "none" else {"070dd51e", "50a16a69"}
    )
    alone = load_evaluation_tasks(task, (30, 30), augmentation=augmentation)
    assert len(alone) == pairs.num_evaluation
    if recolor == "all":
        learned = {canonical_form(task.pairs[0], augmentation) for task in pairs.train}
        assert not learned & {canonical_form(task.pairs[0], augmentation) for task in alone}
