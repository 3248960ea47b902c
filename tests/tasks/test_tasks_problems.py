"""Listing all that is wrong with a folder."""

import pytest
from small_tasks import PAIR, TASK, write_json

from jaxarc.datasets import find_problems
from jaxarc.datasets.json_files import read_json
from jaxarc.tasks import TaskFormatError


def test_every_problem_of_every_file_is_listed(tmp_path):
    write_json(tmp_path / "a.json", {"train": [{"input": [[10]], "output": [[11]]}], "test": []})
    write_json(tmp_path / "b.json", "{")
    write_json(tmp_path / "c.json", TASK)
    write_json(tmp_path / "deep" / "c.json", TASK)
    (tmp_path / "d.json").symlink_to("nowhere")
    write_json(tmp_path / "e.json", {"good": TASK, "bad": {"train": [PAIR]}})
    found = [(problem.file.name, problem.task_id) for problem in find_problems(tmp_path)]
    assert found == [
        ("a.json", "a"),
        ("b.json", ""),
        ("d.json", ""),
        ("c.json", "c"),
        ("e.json", "bad"),
    ]
    with pytest.raises(TaskFormatError) as first:
        read_json(tmp_path)
    assert str(first.value) == find_problems(tmp_path)[0].message


def test_empty_folder_is_a_problem_and_a_missing_path_an_error(tmp_path):
    assert "has no *.json file" in find_problems(tmp_path)[0].message
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        find_problems(tmp_path / "none")
