"""The agent that searches programs, scored by the rules of ARC."""

import numpy as np

from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.evaluation import EvaluationConfig, ShortProgramAgent, evaluate
from jaxarc.tasks import RawTask

RULES = JaxArcConfig().with_fields(
    selection_format="bbox",
    max_grid_height=4,
    max_grid_width=4,
    max_episode_steps=12,
    include_demonstrations=True,
    include_input=True,
    include_step_count=True,
    invalid_action_policy="noop",
)


def make_task(name, rule, sources):
    pairs = tuple((source, rule(source).astype(np.int8)) for source in sources)
    return RawTask(name, pairs[:-1], pairs[-1:])


def sources_of(*sizes):
    random = np.random.default_rng(5)
    return [random.integers(0, 10, size).astype(np.int8) for size in sizes]


def test_the_first_attempt_is_the_best_program_and_each_other_one_another_grid():
    """A symmetric demonstration fits many rules: the test input tells them apart, so more attempts help."""
    symmetric = [np.array([[1, 2], [2, 1]], np.int8), np.array([[3, 4], [4, 3]], np.int8)]
    asymmetric = np.array([[5, 6], [7, 8]], np.int8)
    tasks = TaskSet(
        "rules",
        (
            make_task("mirror", lambda grid: grid[:, ::-1], sources_of((2, 3), (3, 2), (3, 4))),
            make_task("open", np.rot90, [*symmetric, asymmetric]),
        ),
    )
    solved = {}
    for attempts in (1, 8):
        result = evaluate(ShortProgramAgent(), tasks, RULES, EvaluationConfig(attempts=attempts, batch_size=8))
        solved[attempts] = {row.task_id: row.solved_outputs for row in result.rows}
        grids = [tuple(map(tuple, grid.tolist())) for grid in result.submission["open"][0]]
        assert len(set(grids)) == attempts  # each attempt is another grid
    assert solved[1]["mirror"] == 1
    assert solved[8] == {"mirror": 1, "open": 1}
