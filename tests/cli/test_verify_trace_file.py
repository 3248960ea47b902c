"""``jaxarc traces verify FILE``: traces that came as a file."""

import json

import pytest
from run_command import run_command

from jaxarc.traces import replay as replay_module

TASK = {"train": [{"input": [[1, 0]], "output": [[1, 1]]}], "test": [{"input": [[2, 0]], "output": [[2, 2]]}]}


@pytest.fixture(autouse=True, scope="module")
def small_programs():
    """Replay on a small canvas, few traces at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_module, "_BATCH", {"point": 3, "bbox": 3, "mask": 3})
        patch.setattr(replay_module, "_SIDE", 4)
        yield


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.json").write_text(json.dumps(TASK))
    return str(tmp_path / "data")


@pytest.fixture
def verify(tmp_path):
    def verify(*lines, more=()):
        file = tmp_path / "some.jsonl"
        file.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
        return run_command("traces", "verify", file, *more, columns=300)

    return verify


def solution(dataset, split="train", **more):
    color = 1 if split == "train" else 2
    actions = [[color, 0, 1, 0, 1], [34, 0, 0, 0, 0]]
    return {"task_id": "one", "pair_index": 0, "split": split, "actions": actions, "dataset": dataset} | more


def counts(result):
    line = next(line for line in result.output.splitlines() if line.startswith("│"))
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_solutions_in_several_formats_verify(verify, data):
    mask = solution(data, "test", action_format="mask", actions=[[2, 0, 1], [34]])
    result = verify(solution(data), mask)
    assert (result.exit_code, counts(result)) == (0, ["2", "2", "0"]), result.output


def test_each_line_that_does_not_solve_is_reported_with_the_reason(verify, data):
    result = verify(
        solution(data),
        solution(data, actions=[[34, 0, 0, 0, 0]]),
        solution(data, actions=[[1, 0, 1, 0, 1]]),
        solution(data, pair_index=7),
        solution("no-such-set"),
        solution(data, task_id="two"),
        "not json\n",
        {name: value for name, value in solution(data).items() if name != "dataset"},
    )
    assert (result.exit_code, counts(result)) == (1, ["8", "1", "7"])
    for number, reason in (
        (2, "1 actions leave 1 of 2 cells wrong"),
        (3, "no submit at their end"),
        (4, "'one' has 1 train and "),
        (5, "no dataset, file or folder 'no-such-set'"),
        (6, "has no task 'two'"),
        (7, "not JSON"),
        (8, "--dataset NAME"),
    ):
        assert any(f"line {number}: " in line and reason in line for line in result.output.splitlines()), reason


def test_a_file_without_a_trace_does_not_verify(verify):
    assert verify().exit_code == 1
