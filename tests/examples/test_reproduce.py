"""The programs of ``examples/reproduce``: they run, they learn, and the page is what their committed results print."""

import csv
import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from jaxarc.datasets import TaskSet
from jaxarc.evaluation import one_task_per_pair
from jaxarc.tasks import RawTask

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "examples" / "reproduce"
SMALL = "--tasks arc-agi-1/training:max_side=5"
TINY = {
    "arcle_ppo.py": "--settings 3618c87e --policies sequential --updates 5 --seeds 2",
    "decision_transformer.py": f"{SMALL} --updates 3 --seeds 2",
    "dreamer_ppo.py": "--updates 2 --seeds 2",
    "gflownet.py": "--updates 3 --seeds 2",
    "jaxarc_baselines.py": f"{SMALL} --methods pqn --steps 1 --seeds 2",
    "offline.py": f"{SMALL} --methods returns iql --updates 3 --seeds 2",
}


def module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, arguments: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(PROGRAMS / name), *arguments.split()],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **variables},
    )


@functools.cache
def results(name: str, arguments: str, folder: Path) -> dict:
    done = run(name, f"{arguments} --json {folder / 'results.json'}")
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text())


def test_every_program_is_listed_and_short():
    programs = {path.name: len(path.read_text().splitlines()) for path in PROGRAMS.glob("*.py")}
    assert set(programs) == set(TINY)
    assert max(programs.values()) <= 250


@pytest.mark.parametrize("name", TINY)
def test_a_program_runs_with_a_tiny_budget_and_keeps_every_seed(name, tmp_path):
    rows = results(name, TINY[name], tmp_path)["rows"]
    if name == "gflownet.py":  # a row for each seed
        assert len(rows) == 2
        return
    for row in rows.values() if isinstance(rows, dict) else rows:
        lists = [row[key] for key in ("solved", "right", "unseen") if key in row]
        per_seed = lists[0][0] if name == "jaxarc_baselines.py" else lists[0]  # [points][seeds], the others [seeds]
        assert len(per_seed) == 2


def test_a_gflownet_samples_nearly_in_proportion_to_the_reward(tmp_path):
    found = results("gflownet.py", "--updates 300 --seeds 2", tmp_path)
    assert max(row["total_variation"] for row in found["rows"]) < 0.25 < found["uniform"]["total_variation"] - 0.3


def test_ppo_learns_a_flip_that_it_never_sees_answered(tmp_path):
    rows = results("dreamer_ppo.py", "--updates 30 --seeds 2", tmp_path)["rows"]
    (flip,) = (row for row in rows if row["rule"] == "flip")
    assert min(seed[-1] for seed in flip["right"]) >= flip["random"] + 70  # of 100


def test_the_equivariant_policy_learns_to_copy_random_grids(tmp_path):
    arguments = "--settings random --policies equivariant --updates 20 --seeds 1"
    (row,) = results("arcle_ppo.py", arguments, tmp_path)["rows"]
    assert row["solved"][0][-1] > row["random"] + 0.8


LEARN = {  # arguments, and by how much at least the share of unseen pairs exceeds that of random actions
    "offline.py": (f"{SMALL} --methods best --updates 300 --seeds 1", 0.05),
    "decision_transformer.py": (f"{SMALL} --methods transformer --updates 300 --seeds 1", 0.05),
    "jaxarc_baselines.py": (f"{SMALL} --methods ppo-cells --seeds 1", 0.5),
}


@pytest.mark.parametrize("name", LEARN)
def test_it_solves_pairs_of_tasks_that_it_never_saw(name, tmp_path):
    arguments, margin = LEARN[name]
    found = results(name, arguments, tmp_path)
    row = found["rows"]["ppo-cells"] if name == "jaxarc_baselines.py" else found["rows"][0]
    unseen = row["unseen"][-1][0] if name == "jaxarc_baselines.py" else row["unseen"][0]
    chance = found["random"][1] if name == "jaxarc_baselines.py" else found["random"]["unseen"]
    assert unseen > chance + margin


INPUT, OUTPUT = [[1, 0], [0, 0]], [[0, 1], [0, 3]]
PEOPLE = TaskSet("people", (RawTask("l6ab", ((OUTPUT, INPUT),), ((INPUT, OUTPUT),), "Turn it"),))
FILLED = [(0, 0, 0), (1, 0, 1), (3, 1, 1), (34, 0, 0)]


def session_of_mini_arc(path: Path, *grids: list) -> Path:
    entries = [{"action": {"tool": "start" if n == 0 else "edit"}, "grid": grid} for n, grid in enumerate(grids)]
    record = {"task_id": "turn_it_l6ab", "action_sequence": json.dumps({"action_sequence": entries})}
    path.write_text(json.dumps(record))
    return path


def table_of_arctraj(path: Path, columns: tuple[str, str], *sessions: list) -> Path:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        for grids in sessions:
            table.writerow(["l6ab", json.dumps([{"operation": "Paint", "grid": grid} for grid in grids])])
    return path


def test_sessions_of_people_are_the_fills_that_lead_from_the_input_through_their_grids(tmp_path):
    of_people = module_of(PROGRAMS / "decision_transformer.py").of_people
    pairs = one_task_per_pair(PEOPLE)
    halfway, blank = [[0, 1], [0, 0]], [[0]]
    file = session_of_mini_arc(tmp_path / "trace_1.json", blank, INPUT, halfway, OUTPUT)
    assert of_people(file, pairs) == [(1, FILLED)]  # the test pair follows the demonstration
    table = table_of_arctraj(tmp_path / "people.csv", ("taskId", "actionSequence"), [INPUT, OUTPUT], [blank, OUTPUT])
    resized = [(33, 0, 0), (0, 0, 0), (33, 1, 1), (1, 0, 1), (3, 1, 1), (34, 0, 0)]
    assert of_people(table, pairs) == [(1, FILLED), (1, resized)]


def test_sessions_of_another_layout_are_refused_by_name(tmp_path):
    of_people = module_of(PROGRAMS / "decision_transformer.py").of_people
    pairs = one_task_per_pair(PEOPLE)
    table = table_of_arctraj(tmp_path / "others.csv", ("task", "actions"), [INPUT, OUTPUT])
    (tmp_path / "other.json").write_text(json.dumps({"task_id": "l6ab", "steps": []}))
    other = tmp_path / "other.json"
    for path, reason in ((table, "needs 'taskId' and 'actionSequence'"), (other, "no field 'action_sequence'")):
        with pytest.raises(SystemExit, match=rf"{path.name}.*{reason}"):
            of_people(path, pairs)
    with pytest.raises(SystemExit, match=r"nowhere\.csv"):
        of_people(tmp_path / "nowhere.csv", pairs)
    with pytest.raises(SystemExit, match=r"trace_1\.json: 1 sessions"):
        of_people(
            session_of_mini_arc(tmp_path / "trace_1.json", INPUT, OUTPUT),
            one_task_per_pair(TaskSet("others", (RawTask("l7", ((INPUT, OUTPUT),), ((INPUT, OUTPUT),)),))),
        )


@pytest.mark.parametrize("name", TINY)
def test_a_library_that_is_not_installed_is_told_in_one_line(name, tmp_path):
    (tmp_path / "optax.py").write_text("raise ModuleNotFoundError(\"No module named 'optax'\")")
    done = run(name, "", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.strip().splitlines()
    assert "pip install optax" in line


@pytest.mark.parametrize("name", ["jaxarc_baselines.py", "offline.py"])
def test_a_set_that_is_not_installed_is_told_in_one_line(name, tmp_path):
    done = run(name, "--tasks mini-arc", JAXARC_DATA=str(tmp_path))
    assert done.returncode != 0
    (line,) = done.stderr.strip().splitlines()
    assert "jaxarc tasks download mini-arc" in line
    assert "--tasks arc-agi-1/training:max_side=5" in line


def test_the_page_is_what_the_results_print():
    module = module_of(ROOT / "docs" / "make_reproductions.py")
    assert (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8") == module.reproductions_page()
