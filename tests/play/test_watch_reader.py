"""Following a run that is written meanwhile, cut by a resume, or odd."""

import json

import numpy as np
import pytest

from jaxarc.agents import Report
from jaxarc.agents.train import write_measured_table
from jaxarc.evaluation import TaskResults
from jaxarc.play import watch_site
from jaxarc.play.watch_site import RunView
from jaxarc.runs import RunFolder
from jaxarc.runs.folder import MetricsFile, RunFolderError


def line(update, seed=0, **more):
    return json.dumps({"update": update, "seed": seed, **more}) + "\n"


def view_of(folder, num_seeds=1):
    (folder / "config.json").write_text(json.dumps({"agent": {}, "training": {"num_seeds": num_seeds}}))
    return RunView(RunFolder(folder))


def test_a_half_written_line_waits_for_its_end_and_a_file_that_was_cut_is_read_anew(tmp_path):
    view = view_of(tmp_path)
    assert view.metrics()["total"] == 0  # there is no file yet
    stamps = [view.stamp()]
    for text, updates in ((line(0) + line(4)[:7], [0]), (line(0) + line(4), [0, 4]), (line(0), [0])):
        view.folder.metrics.write_text(text)
        assert [row["update"] for row in view.metrics()["rows"]] == updates
        stamps.append(view.stamp())
    assert len(set(stamps)) == 4


def test_odd_lines_are_counted_and_odd_numbers_left_out(tmp_path):
    view = view_of(tmp_path)
    large = "1" + "0" * 400
    odd = '{"update": 3, "loss": NaN, "name": "x", "flag": true, "rate": null, "big": ' + large + "}"
    view.folder.metrics.write_text(f"not json\n[1]\n{odd}\n")
    found = view.metrics()
    assert (found["total"], found["num_unreadable"]) == (3, 2)
    assert found["rows"] == [{"update": 3, "loss": None, "rate": None, "big": None}]


def test_of_a_long_run_whole_moments_are_left_out_but_never_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr(watch_site, "MOST_ROWS", 10)
    view = view_of(tmp_path, num_seeds=2)
    view.folder.metrics.write_text("".join(line(update, seed) for update in range(16) for seed in (7, 9)))
    found = view.metrics()
    assert found["total"] == 32
    assert [(row["update"], row["seed"]) for row in found["rows"]] == [
        (update, seed) for update in (0, 4, 8, 12, 15) for seed in (7, 9)
    ]


def test_tables_are_means_over_seeds(tmp_path):
    rows = [(0, "a", 1.0), (0, "b", None), (1, "a", 0.5), (1, "b", None)]
    lines = [json.dumps({"seed": seed, "task_id": task, "success_rate": rate}) for seed, task, rate in rows]
    view = view_of(tmp_path)
    before = view.stamp()
    nothing = {"rows": [], "num_unreadable": 0}
    assert view.tables() == {"learned": nothing, "measured": nothing}
    (tmp_path / "tasks.jsonl").write_text("\n".join([*lines, "half a li"]) + "\n")
    assert view.tables()["learned"] == {"rows": [["a", 0.75], ["b", None]], "num_unreadable": 1}
    assert view.stamp() != before


def test_tables_and_metrics_may_be_edited_and_lost_rows_are_counted(tmp_path):
    view = view_of(tmp_path)
    played = TaskResults(np.array([[True, False]]), np.array([[3, 4]]))
    write_measured_table(view.folder.measured, [5], ["a", "b"], played)
    assert view.tables()["measured"] == {"rows": [["a", 1.0], ["b", 0.0]], "num_unreadable": 0}
    text = view.folder.measured.read_text()
    assert "sha256" not in text
    view.folder.measured.write_text(text.replace('"solved": false', '"solved": true, "sha256": "of other fields"'))
    assert view.tables()["measured"] == {"rows": [["a", 1.0], ["b", 1.0]], "num_unreadable": 0}
    view.folder.measured.write_text(text.splitlines()[0] + "\n")
    assert view.tables()["measured"] == {"rows": [["a", 1.0]], "num_unreadable": 1}
    path = view.folder.metrics
    MetricsFile(path, Report).append([Report(0, 0, 0.25), Report(4, 128, 1.5)])
    path.write_text(path.read_text().replace("128", "129"))
    found = view.metrics()
    assert (found["total"], found["num_unreadable"], found["rows"][1]["environment_steps"]) == (2, 0, 129)


def test_a_damaged_config_is_one_line(tmp_path):
    (tmp_path / "config.json").write_text('{"agent": {')
    with pytest.raises(RunFolderError, match=r"config\.json.*JSON"):
        RunView(RunFolder(tmp_path))
