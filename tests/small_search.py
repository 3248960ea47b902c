"""A search of small tasks, or an agent that plays them, by the command: the files of any place are those of one."""

import json

from run_command import run_command
from small_tasks import PAIR, write_json

_FILES = ("submission.json", "attempts.html", "tasks.jsonl")


def search_one_after_the_other_and(tmp_path, *place):
    """Search four tasks in one process and again at a place, and return the files of the two."""
    command = ["--agent", "search", "--max-cost", 2, "--seconds", 600]
    here, there = _evaluate_twice(tmp_path, command, ("--processes", 1), place)
    return [[*_read(folder), _programs(folder)] for folder in (here, there)]


def play_one_after_the_other_and(tmp_path, *place, agent="random", more=("--canvas", 2, "--max-steps", 3)):
    """Play the test inputs of four tasks in this process, in batches of three episodes, and again at a place."""
    here, there = _evaluate_twice(tmp_path, ["--agent", agent, "--batch-size", 3, *more], (), place)
    return [_read(folder) for folder in (here, there)]


def _evaluate_twice(tmp_path, options, *places):
    for color in range(2, 6):
        task = {"train": [PAIR, {"input": [[3, 1]], "output": [[3, 2]]}]}
        write_json(
            tmp_path / "data" / f"{color}.json", {**task, "test": [{"input": [[1, color]], "output": [[2, color]]}]}
        )
    folders = tmp_path / "here", tmp_path / "there"
    said = []
    for folder, place in zip(folders, places, strict=True):
        done = run_command("evaluate", tmp_path / "data", *options, "-o", folder, *place)
        assert done.exit_code == 0, done.output
        assert not (folder / "jobs").exists()
        said.append(done.stderr)
    assert not said[-1]  # the first call may build a library, and says so
    return folders


def _read(folder):
    return [(folder / name).read_bytes() for name in _FILES if (folder / name).exists()]


def _programs(folder):
    lines = (folder / "programs.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines]
