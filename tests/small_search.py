"""A search of small tasks by the command, whose files are compared: those of any place are those of one process."""

import json

from run_command import run_command
from small_tasks import PAIR, write_json


def search_one_after_the_other_and(tmp_path, *place):
    """Search four tasks in one process and again at a place, and return the files of the two."""
    for color in range(2, 6):
        task = {"train": [PAIR, {"input": [[3, 1]], "output": [[3, 2]]}]}
        write_json(
            tmp_path / "data" / f"{color}.json", {**task, "test": [{"input": [[1, color]], "output": [[2, color]]}]}
        )
    here, there = tmp_path / "here", tmp_path / "there"
    command = ["evaluate", tmp_path / "data", "--agent", "search", "--max-cost", 2, "--seconds", 600]
    assert run_command(*command, "-o", here, "--processes", 1).exit_code == 0
    done = run_command(*command, "-o", there, *place)
    assert (done.exit_code, done.stderr) == (0, "")
    assert not (there / "jobs").exists()
    names = ("submission.json", "attempts.html", "tasks.jsonl")
    return [[*((folder / name).read_bytes() for name in names), _programs(folder)] for folder in (here, there)]


def _programs(folder):
    lines = (folder / "programs.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines]
