"""Kaggle's pairs of files: challenges, and solutions beside them."""

import json

import jax
import pytest

import jaxarc
from jaxarc.constants import SUBMIT
from jaxarc.datasets.installed import install, read_installed
from jaxarc.datasets.json_files import read_json
from jaxarc.datasets.task_set import digest_of
from jaxarc.envs import BboxAction
from jaxarc.evaluation import one_task_per_pair
from jaxarc.tasks import TaskFormatError, UnknownAnswerError
from jaxarc.traces import pairs_by_id

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
        ({"one": [[[6]]]}, "two: no list of solutions for 2 test inputs"),
        ({**SOLUTIONS, "two": [[[7]]]}, "two: 1 solutions for 2 test inputs"),
        ({**SOLUTIONS, "two": [[[7]], [[11]]]}, "two: test pair 1 output, row 0, column 0: got 11"),
        ({**SOLUTIONS, "three": [], "four": []}, "solves 'three' and 1 more tasks"),
        ([], "solutions are an object from task id"),
    ],
)
def test_solutions_that_do_not_match_are_refused(write, solutions, message):
    with pytest.raises(TaskFormatError, match=message):
        read_json(write(solutions=solutions))


def test_solutions_alone_say_what_is_missing(write, tmp_path):
    challenges = write()
    solutions = tmp_path / "arc_training_solutions.json"
    with pytest.raises(TaskFormatError, match=r"give the path of arc_training_challenges\.json"):
        read_json(solutions)
    challenges.unlink()
    with pytest.raises(TaskFormatError, match=r"put arc_training_challenges\.json beside it"):
        read_json(solutions)


def test_a_hidden_set_has_no_answers_and_never_looks_solved(write):
    tasks = read_json(write(solutions=None))
    assert not tasks.has_answers
    assert [output.shape for _, output in tasks.raw_task("two").test] == [(0, 0), (0, 0)]
    env, params = jaxarc.make(
        tasks, mode="test", selection_format="bbox", score_on_submit=True, allowed_operations=(SUBMIT,)
    )
    state, _ = env.reset(jax.random.key(0), params)
    assert float(state.similarity_score) == 0.0
    state, _, _, _, _ = env.step(state, BboxAction(SUBMIT, 0, 0, 0, 0), params)
    assert bool(state.terminated)
    assert not bool(state.is_solved)


def test_answers_may_be_missing_in_challenges_only(write, tmp_path):
    file = write(solutions=None)
    with pytest.raises(TaskFormatError, match="the key 'output' is missing"):
        read_json(file.rename(tmp_path / "tasks.json"))
    no_output = {"one": {**CHALLENGES["one"], "train": [{"input": [[1]]}]}}
    with pytest.raises(TaskFormatError, match="train pair 0: the key 'output' is missing"):
        read_json(write(no_output, None))


def test_an_unknown_answer_is_no_demonstration(write):
    tasks = read_json(write(solutions=None))
    with pytest.raises(UnknownAnswerError, match="'two/1': train pair 0"):
        one_task_per_pair(tasks.select(["two"]))
    with pytest.raises(UnknownAnswerError, match="'two', test pair 0"):
        pairs_by_id(tasks.select(["two"]))


def test_a_hidden_set_can_be_imported_and_read_again(write, tmp_path):
    tasks = read_json(write(solutions=None))
    install(tasks, "hidden", tmp_path)
    again = read_installed("hidden", tmp_path)
    assert digest_of(again) == digest_of(tasks)
    assert not again.has_answers
