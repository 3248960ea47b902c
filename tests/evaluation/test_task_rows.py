import json

import pytest

from jaxarc.evaluation import best_first, write_task_rows
from jaxarc.evaluation.task_rows import EpisodeResult, make_row

AT_TWO_INPUTS = [
    [EpisodeResult(True, True, 8, 1.0), EpisodeResult(True, False, 6, 1.0)],
    [EpisodeResult(False, True, 3, 0.5), EpisodeResult(False, True, 5, 0.25)],
]


def test_a_row_sums_up_the_episodes_of_a_task():
    row = make_row("a", (True, False), AT_TWO_INPUTS)
    assert (row.num_outputs, row.solved_outputs) == (2, 1)
    assert (row.attempts, row.solves, row.submitted) == (4, 2, 3)
    assert (row.first_solving_step, row.best_similarity, row.mean_steps) == (6, 1.0, 5.5)


def test_nothing_solved_has_no_first_solving_step():
    row = make_row("a", (False,), AT_TWO_INPUTS[1:])
    assert (row.first_solving_step, row.best_similarity) == (None, 0.5)


def row(task_id, solved, *episodes):
    return make_row(task_id, solved, [episodes] * len(solved))


def test_tasks_are_sorted_by_outputs_then_episodes_then_similarity_then_id():
    right = EpisodeResult(True, True, 5, 1.0)
    wrong = EpisodeResult(False, True, 5, 0.2)
    close = EpisodeResult(False, True, 5, 0.9)
    rows = [
        row("far-b", (False,), wrong, wrong),
        row("far-a", (False,), wrong, wrong),
        row("close", (False,), close, wrong),
        row("half", (True, False), right, wrong),
        row("once", (True,), right, wrong),
        row("twice", (True,), right, right),
    ]
    assert [r.task_id for r in best_first(rows)] == ["twice", "once", "half", "close", "far-a", "far-b"]


@pytest.fixture
def table(tmp_path):
    rows = [make_row(name, (True, False), AT_TWO_INPUTS) for name in ("a", "b")]
    return write_task_rows(tmp_path / "tasks.jsonl", rows)


def test_the_table_is_a_line_of_json_a_task(table):
    first, second = (json.loads(text) for text in table.read_text().splitlines())
    assert first == {
        "task_id": "a",
        "num_outputs": 2,
        "solved_outputs": 1,
        "attempts": 4,
        "solves": 2,
        "submitted": 3,
        "first_solving_step": 6,
        "best_similarity": 1.0,
        "mean_steps": 5.5,
        "error": None,
    }
    assert second == {**first, "task_id": "b"}
