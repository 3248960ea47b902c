"""Following a run that is written meanwhile, cut by a resume, or odd."""

import json

import numpy as np
import pytest

from jaxarc.agents import Report
from jaxarc.agents.train import write_measured_table
from jaxarc.evaluation import TaskResults
from jaxarc.play import watch_site
from jaxarc.play.watch_site import MetricsReader, RunView
from jaxarc.runs import RunFolder
from jaxarc.runs.folder import MetricsFile, RunFolderError


def line(update, seed=0, **more):
    return json.dumps({"update": update, "seed": seed, **more}) + "\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def test_only_what_is_new_is_reported(path):
    reader = MetricsReader(path)
    assert reader.read(-1, 0).total == 0  # there is no file yet
    path.write_text(line(0) + line(4))
    first = reader.read(-1, 0)
    assert [row["update"] for row in first.rows] == [0, 4]
    with path.open("a") as file:
        file.write(line(8))
    news = reader.read(first.reading, first.total)
    assert (news.first, news.total, [row["update"] for row in news.rows]) == (2, 3, [8])


def test_a_half_written_line_waits_for_its_end(path):
    reader = MetricsReader(path)
    path.write_text(line(0) + line(4)[:7])
    assert reader.read(-1, 0).total == 1
    path.write_text(line(0) + line(4))
    assert reader.read(-1, 0).total == 2


def test_a_file_that_was_cut_and_grew_again_is_read_anew(path):
    reader = MetricsReader(path)
    path.write_text(line(0) + line(4, loss=1.0) + line(8, loss=1.0))
    before = reader.read(-1, 0)
    path.write_text(line(0) + line(4, loss=2.0) + line(8, loss=2.0) + line(12, loss=2.0))
    news = reader.read(before.reading, before.total)
    assert news.reading == before.reading + 1
    assert (news.first, news.total, news.rows[-1]["loss"]) == (0, 4, 2.0)
    path.write_text(line(0))
    assert reader.read(news.reading, news.total).total == 1


def test_odd_lines_are_counted_and_odd_numbers_left_out(path):
    path.write_text('not json\n[1]\n{"update": 3, "loss": NaN, "name": "x", "flag": true, "rate": null}\n')
    found = MetricsReader(path).read(-1, 0)
    assert found.num_unreadable == 2
    assert found.rows == [{"update": 3, "loss": None, "rate": None}]


def test_of_a_long_run_whole_moments_are_left_out_but_never_the_last(path, monkeypatch):
    monkeypatch.setattr(watch_site, "MOST_ROWS", 10)
    path.write_text("".join(line(update, seed) for update in range(16) for seed in (7, 9)))
    found = MetricsReader(path).read(-1, 0)
    assert found.total == 32
    assert [(row["update"], row["seed"]) for row in found.rows] == [
        (update, seed) for update in (0, 4, 8, 12, 15) for seed in (7, 9)
    ]
    assert found.first == 0


def test_tables_are_means_over_seeds(tmp_path):
    rows = [(0, "a", 1.0), (0, "b", None), (1, "a", 0.5), (1, "b", None)]
    lines = [json.dumps({"seed": seed, "task_id": task, "success_rate": rate}) for seed, task, rate in rows]
    (tmp_path / "config.json").write_text('{"agent": {}}')
    view = RunView(RunFolder(tmp_path))
    before = view.stamp()
    nothing = {"rows": [], "num_unreadable": 0}
    assert view.tables() == {"learned": nothing, "measured": nothing}
    (tmp_path / "tasks.jsonl").write_text("\n".join([*lines, "half a li"]) + "\n")
    assert view.tables()["learned"] == {"rows": [["a", 0.75], ["b", None]], "num_unreadable": 1}
    assert view.stamp() != before


def test_tables_and_metrics_may_be_edited_and_lost_rows_are_counted(tmp_path, path):
    (tmp_path / "config.json").write_text('{"agent": {}}')
    view = RunView(RunFolder(tmp_path))
    played = TaskResults(np.array([[True, False]]), np.array([[3, 4]]))
    write_measured_table(view.folder.measured, [5], ["a", "b"], played)
    assert view.tables()["measured"] == {"rows": [["a", 1.0], ["b", 0.0]], "num_unreadable": 0}
    text = view.folder.measured.read_text()
    assert "sha256" not in text
    view.folder.measured.write_text(text.replace('"solved": false', '"solved": true, "sha256": "of other fields"'))
    assert view.tables()["measured"] == {"rows": [["a", 1.0], ["b", 1.0]], "num_unreadable": 0}
    view.folder.measured.write_text(text.splitlines()[0] + "\n")
    assert view.tables()["measured"] == {"rows": [["a", 1.0]], "num_unreadable": 1}
    MetricsFile(path, Report).append([Report(0, 0, 0.25), Report(4, 128, 1.5)])
    path.write_text(path.read_text().replace("128", "129"))
    found = MetricsReader(path).read(-1, 0)
    assert (found.total, found.num_unreadable, found.rows[1]["environment_steps"]) == (2, 0, 129)


def test_a_damaged_config_is_one_line(tmp_path):
    (tmp_path / "config.json").write_text('{"agent": {')
    with pytest.raises(RunFolderError, match=r"config\.json.*JSON"):
        RunView(RunFolder(tmp_path))
