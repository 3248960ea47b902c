"""Kaggle's pairs of files: challenges, and solutions beside them."""

import json

import pytest

from jaxarc.datasets.json_files import find_problems, read_json
from jaxarc.tasks import TaskFormatError

CHALLENGES = {
    "one": {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]]}]},
    "two": {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[4]]}, {"input": [[5]]}]},
}
SOLUTIONS = {"one": [[[6]]], "two": [[[7]], [[8]]]}


@pytest.fixture
def write(tmp_path):
    def write(challenges=CHALLENGES, solutions=SOLUTIONS, name="arc_training"):
        file = tmp_path / f"{name}_challenges.json"
        file.write_text(json.dumps(challenges))
        if solutions is not None:
            (tmp_path / f"{name}_solutions.json").write_text(json.dumps(solutions))
        return file

    return write


def test_solutions_are_put_into_the_tests(write):
    tasks = read_json(write())
    assert tasks.task_ids == ("one", "two")
    assert [(pair[0].tolist(), pair[1].tolist()) for pair in tasks.raw_task("two").test] == [
        ([[4]], [[7]]),
        ([[5]], [[8]]),
    ]


def test_folder_may_hold_several_pairs_of_files(write, tmp_path):
    write()
    write({"three": CHALLENGES["one"]}, {"three": [[[9]]]}, "arc_evaluation")
    assert read_json(tmp_path).task_ids == ("three", "one", "two")


def test_outputs_that_are_there_already_need_no_solutions(write):
    solved = {"one": {**CHALLENGES["one"], "test": [{"input": [[3]], "output": [[6]]}]}}
    assert len(read_json(write(solved, None))) == 1
    assert len(read_json(write(solved, {"one": [[[6]]]}))) == 1
    assert len(read_json(write(solved, {}))) == 1


@pytest.mark.parametrize(
    ("solutions", "message"),
    [
        (None, "put arc_training_solutions.json beside it"),
        ({"one": [[[6]]]}, "two: no solution, 2 needed"),
        ({**SOLUTIONS, "two": [[[7]]]}, "two: 1 solutions for 2 test inputs"),
        ({**SOLUTIONS, "two": 7}, "two: no list of solutions for 2 test inputs"),
        ({**SOLUTIONS, "two": [[[7]], [[11]]]}, "two: test pair 1 output, row 0, column 0: got 11"),
        ({**SOLUTIONS, "three": [], "four": []}, "solves 'three' and 1 more tasks"),
        ([], "solutions are an object from task id"),
    ],
)
def test_solutions_that_do_not_match_are_refused(write, solutions, message):
    with pytest.raises(TaskFormatError, match=message):
        read_json(write(solutions=solutions))


def test_solution_that_contradicts_the_challenge_is_refused(write):
    solved = {"one": {**CHALLENGES["one"], "test": [{"input": [[3]], "output": [[5]]}]}}
    with pytest.raises(TaskFormatError, match="one: solution 0 contradicts the output"):
        read_json(write(solved, {"one": [[[6]]]}))


def test_solutions_alone_say_what_is_missing(write, tmp_path):
    challenges = write()
    solutions = tmp_path / "arc_training_solutions.json"
    with pytest.raises(TaskFormatError, match=r"give the path of arc_training_challenges\.json"):
        read_json(solutions)
    challenges.unlink()
    with pytest.raises(TaskFormatError, match=r"put arc_training_challenges\.json beside it"):
        read_json(solutions)


def test_every_task_without_a_matching_solution_is_listed(write):
    file = write(solutions={"one": [], "two": [[[7]]]})
    assert [problem.task_id for problem in find_problems(file)] == ["one", "two"]
