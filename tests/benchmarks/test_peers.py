import json
import sys
from contextlib import nullcontext
from pathlib import Path

import compare_peers
import contests
import pytest
from draw_speed import draw_speed
from peer_tasks import write_tasks
from turns import Contest, Entrant, Worker, WorkerError, alternate, report

from jaxarc.datasets import load_tasks

FAKE = Path(__file__).with_name("fake_worker.py")
SCRIPTS = Path(compare_peers.__file__).parent


class Fakes:
    """Fake workers that share a log."""

    def __init__(self, folder):
        self.log, self.folder, self.workers = folder / "log", folder, {}

    def start(self, name, rate=1.0, time_limit=30.0):
        command = [sys.executable, str(FAKE), str(SCRIPTS), name, str(self.log), str(rate)]
        self.workers[name] = Worker(command, self.folder, time_limit)
        return self.workers[name]

    def asked(self):
        return [tuple(json.loads(line)) for line in self.log.read_text().splitlines()]


@pytest.fixture
def fakes(tmp_path):
    made = Fakes(tmp_path)
    yield made
    for worker in made.workers.values():
        worker.close()


def contest(*modes, batch=1):
    entrants = tuple(Entrant(f"{worker} {mode}", worker, mode) for worker, mode in modes)
    return Contest("bbox-1024", "a question", {"kind": "steps", "batch": batch}, entrants)


def test_workers_take_turns_in_alternating_order_and_forget_at_the_end(fakes):
    fakes.start("ours", 50.0)
    fakes.start("theirs", 2.0)
    turns = []
    asked = contest(("ours", "vmap"), ("theirs", "vmap"), ("theirs", "map"), batch=3)
    samples = alternate(asked, fakes.workers, 2, turns.append)
    assert samples == {"ours vmap": [150.0] * 2, "theirs vmap": [6.0] * 2, "theirs map": [6.0] * 2}
    assert turns == ["ours vmap", "theirs vmap", "theirs map", "theirs map", "theirs vmap", "ours vmap"]
    log = fakes.asked()
    assert [f"{name} {mode}" for name, mode in log[:6]] == turns
    assert sorted(log[6:]) == [("ours", "forget"), ("theirs", "forget")]
    assert fakes.workers["ours"].description == {"package": "ours", "jax": "0.0"}


def test_a_worker_that_dies_is_named_with_its_exit_code(fakes):
    worker = fakes.start("ours")
    with pytest.raises(WorkerError, match=r"ended \(exit code -?\d+\)"):
        worker.ask({"kind": "steps", "mode": "crash", "batch": 1})
    assert worker.ask({"kind": "steps", "mode": "vmap", "batch": 1}) == 1.0  # a new process takes over


def test_a_silent_worker_is_given_up(fakes):
    worker = fakes.start("ours", time_limit=2.0)
    with pytest.raises(WorkerError, match="2 s"):
        worker.ask({"kind": "steps", "mode": "sleep", "batch": 1})


def test_a_ratio_compares_the_samples_of_one_round():
    asked = contest(("ours", "vmap"), ("theirs", "vmap"), ("theirs", "map"))
    samples = {"ours vmap": [10.0, 20.0, 60.0], "theirs vmap": [5.0, 4.0, 6.0], "theirs map": [10.0, 10.0, 10.0]}
    ours, vmap, by_map = report(asked, samples)["entrants"]
    assert ours["median"] == 20.0
    assert (ours["min"], ours["max"]) == (10.0, 60.0)
    assert ours["first_is_faster_by"] is None
    assert vmap["first_is_faster_by"]["samples"] == [2.0, 5.0, 10.0]
    assert vmap["first_is_faster_by"]["median"] == 5.0
    assert by_map["first_is_faster_by"]["median"] == 2.0


def test_a_comparison_prints_ratios_and_writes_results_and_picture(fakes, monkeypatch, capsys):
    python = fakes.folder / "peers" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    for name, rate in (("ours", 240.0), ("jaxarc", 2.0), ("arcle", 30.0)):
        fakes.start(name, rate)
    results, picture = fakes.folder / "results" / "peers.json", fakes.folder / "speed.svg"
    monkeypatch.setattr(compare_peers, "PEERS", python.parents[1])
    monkeypatch.setattr(compare_peers, "PICTURE", picture)
    monkeypatch.setattr(compare_peers, "_workers", lambda python: fakes.workers)
    monkeypatch.setattr(compare_peers, "pinned_to_cores", lambda _: nullcontext())
    monkeypatch.setenv("COLUMNS", "160")
    assert compare_peers.main(["--rounds", "2", "--json", str(results)]) == 0
    out = capsys.readouterr().out
    assert "120.0x" in out
    written = json.loads(results.read_text())
    assert [one["id"] for one in written["contests"]] == [one.contest_id for one in contests.all_contests(False)]
    assert set(written["packages"]) == {"ours", "jaxarc", "arcle"}
    assert picture.read_text().startswith("<?xml")


def test_without_the_peers_the_command_says_how_to_get_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compare_peers, "PEERS", tmp_path / ".venv-peers")
    assert compare_peers.main(["--quick"]) == 1
    assert "run: make benchmark-peers" in capsys.readouterr().out


def made_results(rate=1e5):
    asked = [
        Contest("bbox-1024", "", {"batch": 1024}, (contests.OURS, contests.JAXARC)),
        Contest("bbox-16", "", {"batch": 16}, (contests.OURS, contests.JAXARC, contests.JAXARC_EPISODES)),
        Contest("point-1024", "", {"batch": 1024}, (contests.OURS,)),
    ]
    reports = [report(one, {entrant.name: [rate, rate * 2] for entrant in one.entrants}) for one in asked]
    return {"hardware": "a machine", "packages": {}, "contests": reports}


def test_equal_results_give_equal_pictures_and_others_do_not(tmp_path):
    pictures = [tmp_path / "a.svg", tmp_path / "b.svg", tmp_path / "c.svg"]
    for path, rate in zip(pictures, (1e5, 1e5, 3e5), strict=True):
        draw_speed(made_results(rate), path)
    first, again, other = (path.read_bytes() for path in pictures)
    assert first == again != other


def test_the_peers_read_the_tasks_that_we_play(tmp_path):
    write_tasks(tmp_path)
    ours = load_tasks("arc-agi-1/training")
    theirs = load_tasks(tmp_path / "data" / "ARC-AGI-1" / "data" / "training")
    assert sorted(theirs.task_ids) == sorted(ours.task_ids)
    for name in ours.task_ids[::80]:
        pairs = zip(ours.raw_task(name).named_grids(), theirs.raw_task(name).named_grids(), strict=True)
        assert all(label == other and (grid == read).all() for (label, grid), (other, read) in pairs)
    small = load_tasks(tmp_path / "data" / "side-5" / "data" / "training")
    assert max(small.max_grid_shape) == 5
    assert (tmp_path / ".here").is_file()
