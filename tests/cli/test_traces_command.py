"""``jaxarc traces``: from recording to verifying, files in and out, and what Ctrl-C keeps."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from run_command import run_command

from jaxarc.cli.replay_sources import recorded_in_file
from jaxarc.datasets import load_tasks
from jaxarc.evaluation import read_recordings
from jaxarc.files import without_checksum
from jaxarc.parallel import host_cores
from jaxarc.traces import TraceCache
from jaxarc.traces import replay as replay_module
from jaxarc.traces.trace_files import read_trace_file

CELLS = ("--expert", "trace_experts:CellExpert")


@pytest.fixture(autouse=True, scope="module")
def small_programs():
    """Replay on a small canvas, few traces at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_module, "_BATCH", {"point": 3, "bbox": 3, "mask": 3})
        patch.setattr(replay_module, "_SIDE", 5)
        yield


@pytest.fixture
def data(tmp_path):
    """Two tasks that share a pair."""
    folder = tmp_path / "data"
    folder.mkdir()
    shared = {"input": [[1, 2]], "output": [[2, 1]]}
    for name, color in (("one", 3), ("two", 4)):
        own = {"input": [[0]], "output": [[color, color]]}
        (folder / f"{name}.json").write_text(json.dumps({"train": [shared, own], "test": [own]}))
    return folder


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "traces"


def run(command, *arguments, cache=None):
    tail = () if cache is None else ("--cache", str(cache))
    return run_command("traces", command, *arguments, *tail, columns=600)


def cells_of_first_row(result):
    """The cells of the first row of the first table."""
    line = next(line for line in result.output.splitlines() if line.startswith("│"))
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_what_is_recorded_verifies_and_is_not_recorded_again(data, cache):
    first = run("record", data, *CELLS, "--processes", 0, cache=cache)
    assert first.exit_code == 0, first.output
    assert cells_of_first_row(first)[:5] == ["6", "3", "0", "3", "0"]
    again = run("record", data, *CELLS, "--processes", 0, cache=cache)
    assert cells_of_first_row(again)[:5] == ["6", "3", "3", "0", "0"]
    verified = run("verify", data, *CELLS, cache=cache)
    assert verified.exit_code == 0, verified.output
    assert cells_of_first_row(verified)[1:] == ["6", "6", "6", "0", "0"]
    listed = run("list", cache=cache)
    assert cells_of_first_row(listed) == ["cells", "1", "", "bbox", "30x30", "3", "4.0", "4"]


def test_an_expert_of_the_working_directory_is_found_also_by_processes(data, cache, monkeypatch):
    (data.parent / "own_expert.py").write_text("from trace_experts import CellExpert\nclass Own(CellExpert): ...\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(data.parent)
    result = run("record", data, "--expert", "own_expert:Own", "--processes", 1, cache=cache)
    assert result.exit_code == 0, result.output


def test_what_was_not_recorded_does_not_verify(data, cache):
    run("record", data, *CELLS, "--pairs", "test", "--processes", 0, cache=cache)
    result = run("verify", data, *CELLS, cache=cache)
    assert result.exit_code == 1
    assert cells_of_first_row(result)[1:] == ["6", "4", "4", "2", "0"]
    assert "no trace of: one/train/0, two/train/0" in result.output


def test_an_exported_file_is_read_by_evaluation_and_imported_again(data, cache, tmp_path):
    run("record", data, *CELLS, "--processes", 0, cache=cache)
    file = tmp_path / "traces.jsonl"
    exported = run("export", data, file, *CELLS, cache=cache)
    assert exported.exit_code == 0
    assert "of test pairs" in exported.output
    assert "--pairs all" in exported.output
    assert sorted(read_recordings(file)) == [("one", 0), ("two", 0)]
    imported = run("import", file, data, cache=tmp_path / "other")
    assert imported.exit_code == 0, imported.output
    assert "2 traces imported, 0 rejected" in imported.output
    assert set(TraceCache(tmp_path / "other").traces()) < set(TraceCache(cache).traces())


@pytest.fixture
def numbered_otherwise(tmp_path):
    """A set, and the same tasks with their pairs in another order, the second by another id."""
    pairs = [{"input": [[color]], "output": [[color, color]]} for color in range(8)]
    tasks = {"one": (pairs[:2], pairs[2:4]), "two": (pairs[4:6], pairs[6:])}
    for name, step, ids in (("first", 1, {}), ("second", -1, {"two": "2"})):
        (tmp_path / name).mkdir()
        for task_id, (train, test) in tasks.items():
            task = {"train": train[::step], "test": test[::step]}
            (tmp_path / name / f"{ids.get(task_id, task_id)}.json").write_text(json.dumps(task))
    return tmp_path / "first", tmp_path / "second"


def lines_of(file):
    return [line.pair_id for line in read_trace_file(file)]


def test_traces_find_their_pairs_by_content_in_a_set_of_another_order(numbered_otherwise, cache, tmp_path):
    first, second = numbered_otherwise
    run("record", first, *CELLS, "--processes", 0, cache=cache)
    file = tmp_path / "traces.jsonl"
    run("export", first, file, *CELLS, "--pairs", "all", cache=cache)
    imported = run("import", file, second, cache=tmp_path / "other")
    assert imported.exit_code == 0, imported.output
    assert "8 traces imported, 0 rejected" in imported.output
    known = read_recordings(file)
    assert read_recordings(file, load_tasks(str(second))) == {
        ({"two": "2"}.get(task_id, task_id), 1 - index): actions for (task_id, index), actions in known.items()
    }
    shown = [one.pair_id for one in recorded_in_file(file, str(second))]
    assert shown == [({"two": "2"}.get(one, one), split, 1 - index) for one, split, index in lines_of(file)]
    nameless = tmp_path / "nameless.jsonl"
    lines = [json.loads(line) | {"dataset": ""} for line in file.read_text().splitlines()]
    nameless.write_text("".join(json.dumps(line) + "\n" for line in map(without_checksum, lines)))
    verified = run("verify", nameless, "--dataset", second)
    assert verified.exit_code == 0, verified.output


def test_lines_of_another_program_find_their_pairs_by_what_they_solve(numbered_otherwise, cache, tmp_path):
    first, second = numbered_otherwise
    run("record", first, *CELLS, "--processes", 0, cache=cache)
    file = tmp_path / "traces.jsonl"
    run("export", first, file, *CELLS, "--pairs", "all", cache=cache)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    plain = [{name: line[name] for name in ("task_id", "split", "pair_index", "actions")} for line in lines]
    plain.append(plain[0] | {"actions": [[34, 0, 0, 0, 0]]})
    file.write_text("".join(json.dumps(line) + "\n" for line in plain))
    imported = run("import", file, second, cache=tmp_path / "other")
    assert "4 traces imported, 5 rejected" in imported.output  # the ids of the second task, and a lone submit
    assert "1 actions end in a grid of 1x1, the output is 1x2" in imported.output


def test_an_imported_trace_takes_the_place_of_a_longer_one_only(data, cache, tmp_path):
    run("record", data, *CELLS, "--processes", 0, cache=cache)
    file, longer = tmp_path / "traces.jsonl", tmp_path / "longer.jsonl"
    run("export", data, file, *CELLS, cache=cache)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    unsealed = [{name: value for name, value in line.items() if name != "sha256"} for line in lines]
    twice = [{**line, "actions": line["actions"][:1] + line["actions"]} for line in unsealed]
    longer.write_text("".join(json.dumps(line) + "\n" for line in twice))
    before = sorted(TraceCache(cache).traces())
    again = run("import", longer, data, cache=cache)
    assert again.exit_code == 0, again.output
    assert "0 traces imported, 0 rejected\n2 are no shorter than those in the cache, which stay" in again.output
    assert sorted(TraceCache(cache).traces()) == before
    assert "2 traces imported" in run("import", longer, data, cache=tmp_path / "other").output
    shorter = run("import", file, data, cache=tmp_path / "other")
    assert "2 traces imported, 0 rejected\n" in shorter.output
    assert all(trace in before for trace in TraceCache(tmp_path / "other").traces())


def test_a_broken_line_does_not_keep_the_others_out(data, cache, tmp_path):
    run("record", data, *CELLS, "--processes", 0, cache=cache)
    file = tmp_path / "traces.jsonl"
    run("export", data, file, *CELLS, cache=cache)
    first, second = file.read_text().splitlines()
    file.write_text("\n".join((first, '{"task_id": 5', second)))
    result = run("import", file, data, cache=tmp_path / "other")
    assert result.exit_code == 1
    assert "2 traces imported, 1 rejected" in result.output
    assert "traces.jsonl, line 2" in result.output


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        ((), "workers"),
        (("--processes", 0), "sequential"),
        (("--time-limit", 20, "--processes", 0), "workers"),
        (("--strategy", "sequential"), "sequential"),
        (("--strategy", "vmap"), "vmap"),
        (("--strategy", "workers", "--processes", 1), "workers"),
    ],
)
def test_every_strategy_records_the_same_and_tells_its_memory(data, cache, tmp_path, options, strategy):
    result = run("record", data, *CELLS, *options, cache=cache)
    assert result.exit_code == 0, result.output
    memory = next(line for line in result.output.splitlines() if line.startswith("Strategy"))
    assert re.fullmatch(rf"Strategy {strategy}; store \d+ KiB at most; cache \d+ KiB: .*traces.sqlite", memory)
    run("record", data, *CELLS, "--processes", 0, cache=tmp_path / "other")
    assert list(TraceCache(cache).traces()) == list(TraceCache(tmp_path / "other").traces())


def test_an_expert_that_releases_the_gil_goes_through_devices(data, cache):
    (data.parent / "free.py").write_text(
        "from trace_experts import CellExpert\nclass Free(CellExpert):\n    releases_gil = True\n"
    )
    command = ["traces", "record", str(data), "--expert", "free:Free", "--cache", str(cache)]
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *command],
        env={**os.environ, "PYTHONPATH": path},
        cwd=data.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert ("Strategy pmap" if host_cores() > 1 else "Strategy workers") in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--expert", "paint"], "did you mean 'painter'?"),
        (["--expert", "nowhere:Painter"], "ModuleNotFoundError"),
        (["--format", "boxes"], "'boxes'"),
        (["--pairs", "both"], "'both'"),
        (["--strategy", "threads"], "'threads'"),
        (["--strategy", "vmap", "--time-limit", "2"], "--time-limit"),
        (["--strategy", "vmap", "--shards", "2"], "--shards"),
    ],
)
def test_a_wrong_wish_is_one_line(data, cache, arguments, complaint):
    result = run_command("traces", "record", data, *arguments, "--cache", cache, columns=600)
    assert result.exit_code == 2
    assert complaint in " ".join(result.stderr.split())


KILLED = """
import sys
from jaxarc.cli.main import main
main(sys.argv[1:])
"""


def started(data, cache, *arguments):
    """Start a recording of 30 slow pairs in a process of its own and wait until some are recorded."""
    pairs = [{"input": [[0, i % 10], [0, i // 10]], "output": [[1]]} for i in range(30)]
    (data / "many.json").write_text(json.dumps({"train": pairs, "test": pairs[:1]}))
    command = ["traces", "record", str(data / "many.json"), "--cache", str(cache), *arguments]
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen([sys.executable, "-c", KILLED, *command], env={**os.environ, "PYTHONPATH": path})
    end = time.monotonic() + 60
    while len(list(TraceCache(cache).traces())) < 3:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    return process


def test_ctrl_c_keeps_what_was_recorded(data, cache):
    process = started(data, cache, "--expert", "trace_experts:SlowExpert", "--processes", "0", "--chunk-size", "1")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert 3 <= len(list(TraceCache(cache).traces())) < 30


def o2arc(*steps):
    """A session of ARCTraj: operations, each with the grid before it."""
    return json.dumps([{"operation": name, "grid": grid, **fields} for name, grid, fields in steps])


def test_every_session_of_arctraj_has_a_verdict(data, tmp_path):
    cells = [{"x": 0, "y": 0}, {"x": 1, "y": 0}]
    painted = ("Paint", [[0, 0]], {"color": 3, "object": cells})
    sessions = [
        ("one", o2arc(("ResizeGrid", [[0]], {}), painted, ("Submit", [[3, 3]], {}))),
        ("one", o2arc(("Undo", [[0]], {}), painted, ("Submit", [[3, 3]], {}))),
        ("one", o2arc(("Submit", [[0]], {}))),
        ("three", o2arc(("Submit", [[0]], {}))),
        ("one", "no session"),
    ]
    with (tmp_path / "ARCTraj.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["logId", "userId", "taskId", "score", "actionSequence"])
        table.writerows((number, 7, task_id, 0, actions) for number, (task_id, actions) in enumerate(sessions))
    result = run("import", tmp_path / "ARCTraj.csv", data, cache=tmp_path / "other")
    assert result.exit_code == 0, result.output
    assert "1 traces imported, 3 rejected of 5 sessions" in result.output
    counted = [line.strip("│").split("│") for line in result.output.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row] for row in counted[:5]] == [
        ["exact", "", "1", "3", "0", "1"],
        ["rewritten", "", "1", "3", "1", "1"],
        ["rejected", "it does not end in the answer", "1", "1", "0", "0"],
        ["rejected", "its task is not in the dataset", "1", "1", "0", "0"],
        ["rejected", "it cannot be read", "1", "0", "0", "0"],
    ]
