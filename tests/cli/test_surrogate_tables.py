"""Tables of an evaluated surrogate: each number of the evaluation, in the row and column it belongs to."""

import io

import pytest
from rich.console import Console

from jaxarc.cli.surrogate_run import show_evaluation
from jaxarc.runs import RunFolder
from jaxarc.surrogate.agreement import Agreement
from jaxarc.surrogate.held_out import PlayedPairs, SurrogateEvaluation

POLICIES = {"surrogate": PlayedPairs(0.992, 3.25), "nobody": PlayedPairs(0.0, None)}


@pytest.fixture
def rows(tmp_path):
    """What is shown of an evaluation, as the words of each row by its first cell."""

    def show(**parts):
        out = io.StringIO()
        show_evaluation(SurrogateEvaluation(3, **parts), RunFolder(tmp_path), Console(file=out, width=160))
        cells = [
            [cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")]
            for line in out.getvalue().splitlines()
        ]
        return {first: rest for first, *rest in cells}, out.getvalue()

    return show


def test_first_choices_are_reported_by_group(rows):
    agreement = Agreement(0.5, 0.875, 1.0, 0.0, None, (), 2000, {"flood": (1200, 0.25)})
    shown, _ = rows(agreement=agreement)
    assert shown["where only flood is best, 1,200 of them"] == ["25.0 %"]


def test_each_player_has_a_row_of_what_it_solved(rows):
    shown, _ = rows(policies=POLICIES)
    assert shown["surrogate"] == ["99.2 %", "3.2"]
    assert shown["nobody"] == ["0.0 %", "-"]


def test_what_was_not_measured_is_not_shown(rows):
    assert rows()[1] == ""
