"""Tables of an evaluated surrogate: each number of the evaluation, in the row and column it belongs to."""

import io

import pytest
from rich.console import Console

from jaxarc.cli.surrogate_run import show_evaluation
from jaxarc.envs.structured_actions import get_operation_name
from jaxarc.runs import RunFolder
from jaxarc.training.surrogates.agreement import Agreement
from jaxarc.training.surrogates.dynamics import OpenLoopError, StepAccuracy
from jaxarc.training.surrogates.evaluate import EvalResult, SurrogateEvaluation

FLOOD, ROTATE = 10, 24
STEPS = StepAccuracy(0.5, 0.875, 0.625, 0.25, 0.0625, {FLOOD: (1200, 0.75, 0.125), ROTATE: (7, 1.0, 0.0)})
OPEN_LOOP = (
    OpenLoopError(FLOOD, (1.0, 0.5, 0.25), (0.0, 0.1, 0.2), (0.9, 0.8, 0.7)),
    OpenLoopError(ROTATE, (0.0, 0.01, 0.02), (0.3, 0.4, 0.6), (0.05, 0.04, 0.03)),
)
POLICIES = {"surrogate": EvalResult(0.992, 3.25, 123456.7, 60.0), "nobody": EvalResult(0.0, None)}


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


def test_steps_are_reported_by_operation(rows):
    shown, _ = rows(steps=STEPS)
    assert shown["all held-out steps"] == ["", "50.0 %", "25.0 %"]
    assert shown[get_operation_name(FLOOD)] == ["1,200", "75.0 %", "12.5 %"]
    assert shown[get_operation_name(ROTATE)] == ["7", "100.0 %", "0.0 %"]
    assert shown["cells right"] == ["", "87.5 %", ""]
    assert shown["reward, mean distance"] == ["", "0.0625", ""]


def test_first_choices_are_reported_by_group(rows):
    agreement = Agreement(0.5, 0.875, 1.0, 0.0, None, (), 2000, {"flood": (1200, 0.25)})
    shown, _ = rows(agreement=agreement)
    assert shown["where only flood is best, 1,200 of them"] == ["25.0 %"]


def test_the_open_loop_error_is_reported_after_each_step_and_against_keeping_the_grid(rows):
    shown, _ = rows(open_loop_errors=OPEN_LOOP)
    assert shown[get_operation_name(FLOOD)] == ["100", "50", "25", "70", "20"]
    assert shown[get_operation_name(ROTATE)] == ["0", "1", "2", "3", "60"]


def test_a_contest_tells_how_each_player_did_and_who_could_not_play(rows):
    shown, text = rows(policies=POLICIES, num_left_out=1234)
    assert shown["surrogate"] == ["99.2 %", "3.2", "123,456.7", "60.0"]
    assert shown["nobody"] == ["0.0 %", "-", "-", "-"]
    assert "1,234 held-out pairs are left out" in text


def test_what_was_not_measured_is_not_shown(rows):
    assert rows()[1] == ""
    assert "left out" not in rows(policies=POLICIES)[1]
