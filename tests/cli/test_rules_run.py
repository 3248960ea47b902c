"""``jaxarc train surrogate=rules`` from a drawn set of rules to the score of what it has learned, by commands alone."""

import json

import pytest
from run_command import run_command
from small_run import only_folder

from jaxarc.datasets import load_tasks

TINY = (
    "surrogate=rules",
    "rules.learned=rules/tiny",
    "rules.measured=[rules/tiny-words]",
    "rules.hidden_size=8",
    "rules.puzzles_per_batch=4",
    "surrogate.steps_per_report=2",
    "surrogate_training.num_steps=4",
    "surrogate_training.warmup_steps=1",
)


def succeed(*arguments):
    result = run_command(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.usefixtures("standard_promotion")
def test_rules_are_drawn_learned_measured_and_the_model_answers_other_tasks(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    draw = ("--count", 20, "--held-out", 4, "--canvas", 6, "--processes", 1)
    succeed("tasks", "generate", "rules", "tiny", *draw)
    out = succeed("train", *TINY, "logging.run_root=runs")
    folder = only_folder(tmp_path / "runs")
    assert "20 rules of rules/tiny; measured on 4 of rules/tiny-words." in out
    share, count = json.loads(folder.evaluation.read_text())["rules"]["rules/tiny-words"]
    assert (count, share) in [(4, right / 4) for right in range(5)]
    (row,) = [line for line in out.splitlines() if line.startswith("│ rules/tiny-words")]
    assert f"{100 * share:.1f} %" in row

    scored = json.loads(succeed("evaluate", "rules/tiny-words", "--agent", folder.path, "-o", "out", "--json"))
    submission = json.loads((tmp_path / "out" / "submission.json").read_text())
    assert submission.keys() == {task.task_id for task in load_tasks("rules/tiny-words")}
    assert scored["score"]["num_tasks"] == 4
    for option in (("--votes", 3), ("--precision", "bfloat16"), ("--minutes", 1)):
        refused = run_command("evaluate", "rules/tiny-words", "--agent", folder.path, *option)
        assert (refused.exit_code, option[0] in refused.stderr) == (2, True)
