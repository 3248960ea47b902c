"""``jaxarc search``, and ``jaxarc evaluate --agent search``: files, limits, and hidden answers that change nothing."""

import json

import numpy as np
import pytest
from run_command import run_command

from jaxarc.search.search_library import search_library
from jaxarc.search.words import FUNCTIONS

RULES = {"flip": lambda grid: grid[::-1], "turn": np.rot90}


def run(*arguments):
    result = run_command(*arguments)
    return result.exit_code, result.stdout, result.stderr


def write_tasks(folder, change_answer=lambda grid: grid):
    random = np.random.default_rng(4)
    folder.mkdir()
    for name, rule in RULES.items():
        pairs = []
        for _ in range(4):
            source = random.integers(1, 9, (3, 4))
            pairs.append({"input": source.tolist(), "output": rule(source).tolist()})
        pairs[-1]["output"] = change_answer(np.array(pairs[-1]["output"])).tolist()
        (folder / f"{name}.json").write_text(json.dumps({"train": pairs[:-1], "test": pairs[-1:]}))
    return folder


def test_the_search_is_an_agent_and_hidden_answers_change_nothing_that_it_hands_in(tmp_path):
    tasks = write_tasks(tmp_path / "tasks")
    changed = write_tasks(tmp_path / "changed", lambda grid: 9 - grid)
    limits = ("--agent", "search", "--max-cost", 2, "--processes", 1, "--json")
    code, out, _ = run("evaluate", tasks, *limits, "-o", tmp_path / "a")
    summary = json.loads(out)
    assert (code, summary["score"]["solved_outputs"], summary["explained"], summary["at_a_limit"]) == (0, 2, 2, 0)
    code, out, _ = run("evaluate", changed, *limits, "-o", tmp_path / "b")
    assert (code, json.loads(out)["score"]["solved_outputs"]) == (0, 0)
    lines = [json.loads(line) for line in (tmp_path / "a" / "programs.jsonl").read_text().splitlines()]
    assert [(line["task_id"], line["pair_index"]) for line in lines] == [("flip", 0), ("turn", 0)]
    programs = [line["answers"][0]["program"] for line in lines]
    assert [text in one for text, one in zip(("flip_rows", "turn_90"), programs, strict=True)] == [True, True]
    page = (tmp_path / "a" / "attempts.html").read_text()
    assert all(f"attempt 1: {one}" in page for one in programs)
    submissions = [(tmp_path / folder / "submission.json").read_bytes() for folder in ("a", "b")]
    assert submissions[0] == submissions[1]


def test_two_processes_hand_in_what_one_does(tmp_path):
    tasks = write_tasks(tmp_path / "tasks")
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        limits = ("--max-cost", 1, "--processes", processes, "--quiet", "-o", folder)
        assert run("evaluate", tasks, "--agent", "search", *limits)[0] == 0
    assert (tmp_path / "1" / "submission.json").read_bytes() == (tmp_path / "2" / "submission.json").read_bytes()


def test_a_budget_of_zero_still_hands_in_a_grid_for_every_test(tmp_path):
    tasks = write_tasks(tmp_path / "tasks")
    limits = ("--agent", "search", "--minutes", 0, "--processes", 1, "--json", "-o", tmp_path / "out")
    code, out, _ = run("evaluate", tasks, *limits)
    assert (code, json.loads(out)["at_a_limit"]) == (0, 2)
    assert set(json.loads((tmp_path / "out" / "submission.json").read_text())) == set(RULES)


def test_a_task_is_explained_in_words_as_json_and_as_a_picture(tmp_path):
    tasks = write_tasks(tmp_path / "tasks")
    code, out, _ = run("search", "flip", "--dataset", tasks, "--max-cost", 2, "-o", tmp_path / "found.svg")
    assert code == 0
    assert "rigid(flip_rows)" in out
    assert "explains all 3 demonstrations" in out
    assert (tmp_path / "found.svg").read_text().startswith("<svg")
    code, out, _ = run("search", "flip", "--dataset", tasks, "--max-cost", 2, "--json")
    best = json.loads(out)["test"][0]["answers"][0]
    assert (code, best["right"], best["fits"]) == (0, True, [True, True, True])


@pytest.mark.parametrize(
    "words", [("search", "flip", "--dataset"), ("evaluate", "--agent", "search", "--processes", 2)]
)
def test_without_the_library_a_line_says_what_to_do(words, tmp_path, monkeypatch):
    tasks = write_tasks(tmp_path / "tasks")
    monkeypatch.setenv("CXX", "no-compiler")
    monkeypatch.setenv("JAXARC_CACHE", str(tmp_path / "cache"))
    search_library.cache_clear()
    code, _, err = run(*words, tasks)
    assert code == 1
    assert err.count("\n") == 1
    assert all(name in err for name in ("no-compiler", "CXX=g++", "wheel"))


def test_a_folder_of_several_tasks_is_refused_with_what_searches_all_of_them(tmp_path):
    tasks = write_tasks(tmp_path / "tasks")
    code, _, err = run("search", tasks)
    assert (code, err.count("\n")) == (2, 1)
    assert f"jaxarc evaluate {tasks} --agent search" in err
    assert run("search", tasks / "turn.json", "--max-cost", 2)[0] == 0


def test_all_functions_of_programs_are_listed_with_their_arguments_and_costs():
    code, out, _ = run("search", "--functions")
    assert code == 0
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in out.splitlines()[2:]]
    listed = {name.strip("`"): (len([one for one in takes.split("; ") if one]), cost) for name, takes, cost, _ in rows}
    assert listed == {name: (len(one.takes), str(one.cost)) for name, one in FUNCTIONS.items()}
    choices = next(takes for name, takes, *_ in rows if name == "`half`")
    assert choices == "top, bottom, left, right"
