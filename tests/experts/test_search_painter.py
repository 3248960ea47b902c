"""The search as an expert: it paints what it finds, whatever the output of the pair is."""

import numpy as np
import pytest

from jaxarc.datasets import TaskSet
from jaxarc.experts import CannotSolveError, HiddenAnswerExpert, SearchPainter
from jaxarc.tasks import RawTask
from jaxarc.traces import ExpertSpec, TraceCache, WorkUnit, pairs_by_id, record_traces


def mirrored(*grids):
    return tuple((np.array(grid, np.int8), np.array(grid, np.int8)[:, ::-1]) for grid in grids)


def tasks_of(train, test):
    return TaskSet("mirrored", (RawTask("mirror", train, test),))


TRAIN = mirrored([[1, 0, 2]], [[0, 3, 3], [1, 0, 0]], [[4, 0], [0, 5]])
TEST = mirrored([[6, 0, 7], [0, 8, 8]])
TASKS = tasks_of(TRAIN, TEST)
GARBAGE = np.array([[9, 9, 9, 9]], np.int8)


class Watched(HiddenAnswerExpert):
    """Lets the search solve one input, and keeps its actions."""

    name = "watched"
    version = 1
    actions = None

    def __init__(self, grid):
        self.wanted = grid

    def solve_hidden(self, demonstrations, grid, action_format):
        if not np.array_equal(grid, self.wanted):
            raise CannotSolveError("not asked for")
        self.actions = SearchPainter(max_cost=2).solve_hidden(demonstrations, grid, action_format)
        return self.actions


def replaced(pairs, index):
    return tuple((grid, GARBAGE if at == index else answer) for at, (grid, answer) in enumerate(pairs))


def actions_for(tasks, split, index):
    expert = Watched((TRAIN if split == "train" else TEST)[index][0])
    record_traces(tasks, expert, pairs=split)
    return expert.actions


@pytest.mark.parametrize(("split", "index"), [("train", 2), ("test", 0)])
def test_with_another_output_of_the_pair_the_actions_are_the_same(split, index):
    spoiled = tasks_of(
        replaced(TRAIN, index) if split == "train" else TRAIN, replaced(TEST, index) if split == "test" else TEST
    )
    actions = actions_for(TASKS, split, index)
    assert actions is not None
    assert actions_for(spoiled, split, index) == actions


def test_what_is_found_is_kept_under_its_pair_and_what_is_not_found_fails(tmp_path):
    cache, expert = TraceCache(tmp_path), SearchPainter(max_cost=2)
    spoiled = tasks_of(TRAIN, (*TEST, (TEST[0][0][::-1], GARBAGE)))
    recording = record_traces(spoiled, expert, pairs="test", cache=cache, strategy="workers", processes=1)
    assert [failure.kind for failure in recording.failures.values()] == ["NotSolvedError"]
    spec = ExpertSpec.of(expert, "bbox")
    for pair in pairs_by_id(TASKS, "test").values():  # where `jaxarc traces verify` looks
        assert cache.get(WorkUnit(pair, spec).content_hash) is not None


def test_a_pair_with_the_same_input_is_no_demonstration():
    twice = tasks_of((TRAIN[0], TRAIN[0]), (TRAIN[0],))
    recording = record_traces(twice, SearchPainter())
    assert [failure.kind for failure in recording.failures.values()] == ["CannotSolveError"]
