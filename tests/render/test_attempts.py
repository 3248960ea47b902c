"""Attempts beside answers: the page with a card for each task."""

import re

import numpy as np
import pytest

from jaxarc.render.attempts import MISSED, AttemptedTask, write_attempts_page

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


def test_why_a_task_was_missed_stands_on_its_card_and_can_be_filtered(tmp_path):
    missed = ("limit", "none", "some", "all", "all")
    tasks = [WRONG._replace(task_id=str(index), missed=why, note="a program") for index, why in enumerate(missed)]
    failed = WRONG._replace(task_id="failed", missed="error", error="a fault", note="")
    write_attempts_page([SOLVED, *tasks, failed], tmp_path / "page.html", "")
    page = (tmp_path / "page.html").read_text()
    for why, count in {"limit": 1, "none": 1, "some": 1, "all": 2, "error": 1}.items():
        assert f'id="{why}" checked> {MISSED[why]} ({count})' in page
        assert page.count(f'<article class="unsolved missed-{why}"') == count
        assert f"body:has(#{why}:not(:checked)) .missed-{why}" in page
    assert page.count('<p class="note">a program</p>') == 5  # in no error's color
    assert page.count('<p class="error">a fault</p>') == 1
    write_attempts_page([SOLVED, WRONG], tmp_path / "page.html", "")
    assert "Missed" not in (tmp_path / "page.html").read_text()


def test_an_id_or_note_cannot_add_to_the_page(tmp_path):
    write_attempts_page([attempted('"><script>', (GRID, [GRID]))], tmp_path / "page.html", "")
    assert "<script>" not in (tmp_path / "page.html").read_text()
