"""Attempts beside answers: the page with a card for each task."""

import re

import numpy as np
import pytest

from jaxarc.render.attempts import AttemptedTask, write_attempts_page

GRID = np.array([[1, 2], [3, 4]], np.int8)
OTHER = np.array([[5]], np.int8)
UNKNOWN = np.zeros((0, 0), np.int8)


def attempted(task_id, *tests, note=""):
    """A task with an (answer, attempts) for each test input."""
    answers = [(GRID, answer) for answer, _ in tests]
    return AttemptedTask(task_id, [(GRID, OTHER)], answers, [attempts for _, attempts in tests], note)


SOLVED = attempted("solved-one", (GRID, [OTHER, GRID]))
PARTLY = attempted("half", (GRID, [GRID, GRID]), (GRID, [OTHER, OTHER]))
WRONG = attempted("wrong", (GRID, [OTHER, OTHER]), note="ValueError: a < b")
HIDDEN = attempted("hidden", (UNKNOWN, [GRID, OTHER]))


@pytest.mark.parametrize(
    ("task", "outcome", "share"),
    [(SOLVED, "solved", "1/1"), (PARTLY, "partly", "1/2"), (WRONG, "unsolved", "0/1"), (HIDDEN, "unknown", "")],
)
def test_the_outcome_of_a_task(task, outcome, share):
    assert (task.outcome, task.solved_share) == (outcome, share)


def test_every_attempt_is_framed_by_whether_it_is_right(tmp_path):
    write_attempts_page([SOLVED, PARTLY, WRONG, HIDDEN], tmp_path / "page.html", "a <title>")
    page = (tmp_path / "page.html").read_text()
    cards = re.findall(r'<article class="(\w+)" id="task-([\w-]+)">(.*?)</article>', page, re.S)
    assert [(outcome, name) for outcome, name, _ in cards] == [
        ("solved", "solved-one"),
        ("partly", "half"),
        ("unsolved", "wrong"),
        ("unknown", "hidden"),
    ]
    frames = [re.findall(r'<img class="(right|wrong)"', card) for _, _, card in cards]
    assert frames == [["wrong", "right"], ["right", "right", "wrong", "wrong"], ["wrong", "wrong"], []]
    assert "ValueError: a &lt; b" in cards[2][2]
    assert "a &lt;title&gt;" in page
    assert "http" not in page.replace("http-equiv", "")  # loads nothing


def test_an_id_or_note_cannot_add_to_the_page(tmp_path):
    write_attempts_page([attempted('"><script>', (GRID, [GRID]))], tmp_path / "page.html", "")
    assert "<script>" not in (tmp_path / "page.html").read_text()
