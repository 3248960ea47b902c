"""``jaxarc evaluate`` as a user runs it: agents, recorded actions, trained agents, submission files."""

import json
import subprocess
import sys

import jax
import numpy as np
import pytest
import typer
from run_command import run_command
from small_search import play_one_after_the_other_and, search_one_after_the_other_and
from small_tasks import write_json
from untrained_run import write_untrained_run

from jaxarc import constants as c
from jaxarc.cli import players
from jaxarc.cli.place_options import sbatch_options
from jaxarc.cli.players import Asked, PlayRequest, load_player, plan
from jaxarc.config import EvaluationConfig
from jaxarc.datasets import load_tasks
from jaxarc.evaluation import AgentMismatchError
from jaxarc.evaluation.evaluate import PlannedEvaluation
from jaxarc.jobs import JobsError

ANSWERS = {"flip": [[[1, 2]], [[3, 3]]], "same": [[[4], [5]]], "grow": [[[7, 7], [7, 7]]]}
INPUTS = {"flip": [[[2, 1]], [[3, 3]]], "same": [[[4], [5]]], "grow": [[[7]]]}
SMALL = ["--canvas", "3", "--max-steps", "4"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Three tasks with four test inputs; two of them are their own answer."""
    folder = tmp_path_factory.mktemp("dataset")
    for task_id, answers in ANSWERS.items():
        tests = [{"input": i, "output": o} for i, o in zip(INPUTS[task_id], answers, strict=True)]
        task = {"train": [{"input": [[1]], "output": [[2]]}], "test": tests}
        (folder / f"{task_id}.json").write_text(json.dumps(task))
    return str(folder)


def run(*arguments):
    result = run_command("evaluate", *arguments)
    return result.exit_code, result.stdout, result.stderr


def read(file):
    return json.loads(file.read_text())


def rows(folder):
    return {row["task_id"]: row for row in map(json.loads, (folder / "tasks.jsonl").read_text().splitlines())}


def test_submitting_at_once_leaves_the_files_and_prints_what_is_solved(dataset, tmp_path):
    code, out, err = run(dataset, "--agent", "submit", "--output", tmp_path, *SMALL)
    assert (code, err) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {
        "submission.json",
        "tasks.jsonl",
        "attempts.html",
        "summary.json",
    }
    assert "50.0 %" in out
    assert "33.3 %" in out
    summary = read(tmp_path / "summary.json")
    assert summary["score"] == {
        "output_score": 0.5,
        "task_score": 1 / 3,
        "mean_task_share": 0.5,
        "solved_outputs": 2,
        "num_outputs": 4,
        "solved_tasks": 1,
        "num_tasks": 3,
    }
    assert (summary["agent"], summary["evaluation"]["attempts"]) == ("submit", 2)
    assert summary["rules"]["environment"]["max_episode_steps"] == 4
    assert read(tmp_path / "submission.json") == {
        task_id: [{"attempt_1": grid, "attempt_2": grid} for grid in grids] for task_id, grids in INPUTS.items()
    }
    assert rows(tmp_path)["same"]["solved_outputs"] == 1


def test_a_submission_file_is_scored(dataset, tmp_path):
    submission = {t: [{"attempt_1": [[0]], "attempt_2": grid} for grid in grids] for t, grids in ANSWERS.items()}
    submission["grow"][0]["attempt_2"] = [[7, 7]]
    (tmp_path / "submission.json").write_text(json.dumps(submission))
    code, out, _ = run(dataset, "--score", tmp_path / "submission.json", "--output", tmp_path / "out")
    assert (code, "75.0 %" in out, "same" in out) == (0, True, True)
    files = {"tasks.jsonl", "attempts.html", "summary.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == files
    summary = read(tmp_path / "out" / "summary.json")
    assert summary["score"]["solved_tasks"] == 2
    assert summary["solved"] == {"flip": [True, True], "grow": [False], "same": [True]}
    assert (rows(tmp_path / "out")["flip"]["solves"], rows(tmp_path / "out")["flip"]["attempts"]) == (2, 4)


SOLVER = """
import os, signal, time

def same(train, test_input):
    print("chatter")
    if test_input.shape == (2, 1):
        raise ValueError("upright")
    return test_input

def stopped(train, test_input):
    if test_input.shape == (2, 1):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    return [test_input.tolist()]

number = 3
"""


@pytest.fixture
def solver(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.delitem(sys.modules, "a_solver", raising=False)
    (tmp_path / "a_solver.py").write_text(SOLVER)
    return "a_solver"


def test_a_solver_is_a_function_of_a_module(dataset, solver, tmp_path):
    code, out, err = run(dataset, "--agent", f"{solver}:same", "--output", tmp_path / "out", "--json")
    summary = json.loads(out)
    assert (code, summary["score"]["solved_outputs"], summary["tasks_done"]) == (0, 1, 3)
    assert "chatter" in err
    assert "ValueError: upright" in rows(tmp_path / "out")["same"]["error"]
    assert rows(tmp_path / "out")["flip"]["error"] is None
    assert summary.pop("folder") == str(tmp_path / "out")
    assert read(tmp_path / "out" / "summary.json") == summary
    assert run(dataset, "--score", tmp_path / "out" / "submission.json")[0] == 0


def test_ctrl_c_keeps_the_tasks_that_a_solver_has_done(dataset, solver, tmp_path):
    command = [sys.executable, "-m", "jaxarc", "evaluate", dataset, "--agent", f"{solver}:stopped", "--output", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 130
    assert "2 of 3 tasks are done" in done.stderr
    assert list(rows(tmp_path / "out")) == list(read(tmp_path / "out" / "submission.json")) == ["flip", "grow"]
    assert read(tmp_path / "out" / "summary.json")["tasks_done"] == 2


def test_a_solver_is_a_function_of_a_file_anywhere(dataset, tmp_path):
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    (elsewhere / "colors_of.py").write_text("FIRST = 1")
    (elsewhere / "my solver.py").write_text(
        "from colors_of import FIRST\ndef solve(train, grid):\n    return grid[:FIRST]"
    )
    code, out, err = run(dataset, "--agent", f"{elsewhere}/my solver.py:solve", "--json", "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    assert json.loads(out)["tasks_done"] == 3
    code, _, err = run(dataset, "--agent", f"{elsewhere}/none.py:solve")
    assert (code, err.count("\n")) == (2, 1)
    assert "none.py" in err


LIMITED = """
import os, signal, time

def solve(train, test_input):
    print("chatter")
    os.chdir("/")
    if test_input.shape == (2, 1):
        time.sleep(600)
    if len(test_input.ravel()) > 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return test_input
"""


def test_a_solver_that_hangs_or_dies_costs_only_its_test_input(dataset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "limited.py").write_text(LIMITED)
    options = ["--agent", "limited.py:solve", "--seconds", "5", "--processes", "2", "--json", "-o", "out"]
    code, out, _ = run(dataset, *options)
    summary = json.loads(out)
    assert (code, summary["tasks_done"], summary["processes"], summary["seconds"]) == (0, 3, 2, 5.0)
    errors = {name: row["error"] for name, row in rows(tmp_path / "out").items()}
    assert list(errors) == ["flip", "grow", "same"]
    assert errors["same"] == "test input 0: time limit of 5 s"
    died = [name for name, grids in INPUTS.items() if any(len(np.ravel(grid)) > 2 for grid in grids)]
    assert [name for name, error in errors.items() if error and "the process died (SIGKILL)" in error] == died


def test_any_number_of_processes_writes_the_files_of_one(tmp_path):
    here, there = search_one_after_the_other_and(tmp_path, "--shards", 2)
    assert here == there


DEADLY = """
import os

def solve(train, test_input):
    with open("calls", "a") as file:
        file.write(f"{test_input.tolist()}\\n")
    if test_input.tolist() == [[7]] and not os.path.exists("lived"):
        open("lived", "w").close()
        os._exit(9)
    return test_input
"""


def test_the_same_command_goes_on_after_a_kill(dataset, tmp_path):
    (tmp_path / "deadly.py").write_text(DEADLY)
    command = [sys.executable, "-m", "jaxarc", "evaluate", dataset, "--agent", "deadly.py:solve", "-o", "out"]
    first = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert first.returncode == 9
    other = subprocess.run([*command, "--attempts", "3"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (other.returncode, other.stderr.count("\n")) == (1, 1)
    assert "attempts is 2 there and 3 here" in other.stderr
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False).returncode == 0
    asked = (tmp_path / "calls").read_text().splitlines()
    assert sorted(asked) == sorted([str(grid) for grids in INPUTS.values() for grid in grids] + ["[[7]]"])
    assert list(rows(tmp_path / "out")) == ["flip", "grow", "same"]
    assert not (tmp_path / "out" / "jobs").exists()


def test_a_solver_that_changes_the_folder_takes_no_results_along(dataset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wandering.py").write_text("import os\ndef solve(train, grid):\n    os.chdir('/')\n    return grid")
    code, out, _ = run(dataset, "--agent", "wandering.py:solve", "-o", "out")
    assert code == 0
    assert "Files: out" in out
    assert (tmp_path / "out" / "submission.json").exists()


def test_a_solver_takes_the_place_of_no_module_of_python(dataset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "random.py").write_text("def solve(train, grid):\n    return grid")
    before = sys.modules["random"]
    assert run(dataset, "--agent", "in/random.py:solve", "-o", "out")[0] == 0
    assert sys.modules["random"] is before
    assert __import__("random").Random


def test_a_solver_that_fails_at_every_task_ends_with_1(dataset, tmp_path):
    (tmp_path / "bad.py").write_text("def solve(train, grid):\n    return grid[len(train):][99]")
    code, out, err = run(dataset, "--agent", f"{tmp_path}/bad.py:solve", "-o", tmp_path / "out")
    assert code == 1
    assert "IndexError" in out
    assert "every task" in err
    assert (tmp_path / "out" / "submission.json").exists()


@pytest.fixture
def hidden(tmp_path):
    """A challenges file without solutions."""
    tests = {task_id: [{"input": grid} for grid in grids] for task_id, grids in INPUTS.items()}
    tasks = {name: {"train": [{"input": [[1]], "output": [[2]]}], "test": of} for name, of in tests.items()}
    file = tmp_path / "arc-agi_test_challenges.json"
    file.write_text(json.dumps(tasks))
    return file


def test_a_hidden_test_set_gets_a_submission_and_no_score(dataset, hidden, tmp_path):
    code, out, err = run(hidden, "--agent", "submit", "--output", tmp_path / "out", *SMALL)
    assert (code, err) == (0, "")
    assert "answers are unknown: no score" in out
    assert read(tmp_path / "out" / "summary.json")["score"] is None
    row = rows(tmp_path / "out")["flip"]
    assert (row["attempts"], row["submitted"], row["solved_outputs"], row["best_similarity"]) == (4, 4, None, None)
    # The file that is handed in is scored where the answers are.
    code, out, _ = run(dataset, "--score", tmp_path / "out" / "submission.json")
    assert (code, "50.0 %" in out) == (0, True)


def test_a_hidden_test_set_is_not_scored_and_not_shown(hidden, tmp_path):
    for arguments in (["--agent", "painter", "--answers-visible"], ["--score", tmp_path / "submission.json"]):
        submission = {t: [{"attempt_1": g, "attempt_2": g} for g in grids] for t, grids in INPUTS.items()}
        (tmp_path / "submission.json").write_text(json.dumps(submission))
        code, _, err = run(hidden, *arguments)
        assert code == 1
        assert "its answer is unknown" in err


@pytest.fixture(scope="module")
def actions(tmp_path_factory):
    """A file that paints every answer."""
    file = tmp_path_factory.mktemp("recorded") / "actions.jsonl"
    lines = []
    for task_id, answers in ANSWERS.items():
        for pair_index, answer in enumerate(answers):
            cells = [[color, row, column] for (row, column), color in np.ndenumerate(np.array(answer))]
            painted = [[int(color), row, column, row, column] for color, row, column in cells]
            resize = [c.RESIZE, 0, 0, len(answer) - 1, len(answer[0]) - 1]
            steps = [resize, *painted, [c.SUBMIT, 0, 0, 0, 0]]
            lines.append(json.dumps({"task_id": task_id, "pair_index": pair_index, "actions": steps}))
    file.write_text("\n".join(lines))
    return file


def test_recorded_right_actions_score_100_percent_as_efficiently_as_themselves(dataset, actions, tmp_path):
    code, out, err = run(dataset, "--agent", actions, "--canvas", 3, "--output", tmp_path)
    assert (code, err) == (0, "")
    summary = read(tmp_path / "summary.json")
    assert (summary["score"]["output_score"], summary["score"]["task_score"]) == (1.0, 1.0)
    assert summary["rules"]["environment"]["max_episode_steps"] == 7  # the longest recording and one more
    assert "100.0 %" in out
    assert rows(tmp_path)["flip"]["first_solving_step"] == 4


@pytest.fixture(scope="module")
def trained(dataset, tmp_path_factory):
    """A run folder with fresh agents of two seeds, and their weights."""
    measured = tmp_path_factory.mktemp("measured")
    pair = {"input": [[6]], "output": [[6, 6]]}
    (measured / "other.json").write_text(json.dumps({"train": [pair], "test": [pair]}))
    folder = tmp_path_factory.mktemp("run")
    return folder, write_untrained_run(folder, dataset, measured, num_seeds=2)


def find(folder, dataset, **request):
    return load_player(str(folder), load_tasks(dataset), PlayRequest(answers_visible=True, **request))


@pytest.mark.parametrize(
    ("of_run", "seed_index", "factor"),
    [({}, 0, 1), ({"checkpoint": "last"}, 0, 2), ({"seed": 5}, 1, 1)],
    ids=["best", "last", "seed"],
)
def test_a_trained_agent_comes_back_from_its_run_folder(dataset, trained, of_run, seed_index, factor):
    folder, policies = trained
    player = find(folder, dataset, **of_run)
    for loaded, saved in zip(jax.tree.leaves(player.agent), jax.tree.leaves(policies), strict=True):
        np.testing.assert_array_equal(loaded, saved[seed_index] * factor)
    assert player.rules.environment.max_episode_steps == 3


def test_an_agent_that_saw_answers_plays_only_when_asked_and_makes_no_submission(dataset, trained, tmp_path):
    folder, _ = trained
    code, out, err = run(dataset, "--agent", folder, "--answers-visible", "--output", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "no score by the rules of ARC" in out
    assert "learned from 4 of the 4 test pairs" in out
    summary = read(tmp_path / "out" / "summary.json")
    assert (summary["answers_visible"], summary["test_pairs_learned"]) == (True, 4)
    assert not (tmp_path / "out" / "submission.json").exists()
    code, _, err = run(dataset, "--agent", folder)
    assert code == 2
    assert "it looks at the answer, target_grid (observation.reveal_target=True), which test mode hides" in err


def test_a_trained_agent_plays_in_the_precision_asked_for(dataset, trained, tmp_path):
    player = find(trained[0], dataset, precision="bfloat16")
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(player.agent)} == {"bfloat16"}
    given = ("--answers-visible", "--precision", "bfloat16", "--output", tmp_path / "out")
    code, _, err = run(dataset, "--agent", trained[0], *given)
    assert (code, err) == (0, "")
    assert read(tmp_path / "out" / "summary.json")["precision"] == "bfloat16"


@pytest.mark.parametrize("place", [("--processes", 1), ("--on", "local", "--shards", 3)], ids=["one", "three"])
def test_any_number_of_processes_plays_the_episodes_of_one(tmp_path, place):
    here, there = play_one_after_the_other_and(tmp_path, *place)
    assert len(here) == 3
    assert here == there


def test_processes_play_a_trained_agent_as_one_does(tmp_path, trained):
    agent = {"agent": trained[0], "more": ("--answers-visible", "--attempts", 3, "--agent-seed", 5)}
    here, there = play_one_after_the_other_and(tmp_path, "--processes", 2, **agent)
    assert len(here) == 2
    assert here == there


def test_a_run_that_takes_any_canvas_plays_each_task_on_a_small_one(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(players, "_MANY_CELLS", 4 * 9)
    for name, row in {"dot": [1], "long": [1, 2, 3], "pair": [4, 5], "other": [6]}.items():
        pair = {"input": [row], "output": [row[::-1]]}
        write_json(tmp_path / "data" / f"{name}.json", {"train": [pair], "test": [pair]})
    command = [tmp_path / "data", "--agent", trained[0], "--answers-visible", "--attempts", 1, "--batch-size", 1, "-o"]
    out = {}
    for name, more in {
        "auto": [],
        "processes": ["--processes", 2],
        "two": ["--canvas", "1,3"],
        "one": ["--canvas", 3],
    }.items():
        code, out[name], err = run(*command, tmp_path / name, *more)
        assert (code, err) == (0, "")
        assert (tmp_path / name / "tasks.jsonl").read_bytes() == (tmp_path / "auto" / "tasks.jsonl").read_bytes()
    listed = "Each task on the smallest square canvas that holds its tests, by side (tasks): "
    assert f"{listed}1 (2), 2 (1), 3 (1)." in " ".join(out["auto"].split())
    assert f"{listed}1 (2), 3 (2)." in " ".join(out["two"].split())
    assert listed not in " ".join(out["one"].split())
    played = [read(tmp_path / name / "summary.json")["evaluation"]["canvases"] for name in ("processes", "two", "one")]
    assert played == ["auto", [1, 3], []]


def test_the_same_command_plays_only_the_batches_that_are_missing(dataset, tmp_path, monkeypatch):
    played = []
    play_batch = PlannedEvaluation.play_batch

    def stopping(planned, number):
        if number == 2 and 2 not in played:
            played.append(number)
            raise JobsError("stopped")
        played.append(number)
        return play_batch(planned, number)

    monkeypatch.setattr(PlannedEvaluation, "play_batch", stopping)
    command = [dataset, "--agent", "random", *SMALL, "--batch-size", "2", "-o"]
    assert run(*command, tmp_path / "there") == (1, "", "error: stopped\n")
    code, _, err = run(*command, tmp_path / "there", "--seed", "1")
    assert (code, "seed is 0 there and 1 here" in err) == (1, True)
    assert [run(*command, tmp_path / name)[0] for name in ("there", "here")] == [0, 0]
    assert played == [0, 1, 2, 2, 3, 0, 1, 2, 3]
    for name in ("submission.json", "tasks.jsonl"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_other_tasks_elsewhere_are_named(dataset, tmp_path):
    asked = Asked("random", "", dataset, "0123", PlayRequest(), EvaluationConfig())
    with pytest.raises(AgentMismatchError, match=f"{dataset} has other tasks on .*; bring the same ones"):
        plan(asked)


def test_a_painter_needs_the_answers_and_solves_everything_with_them(dataset, tmp_path):
    assert "--answers-visible" in run(dataset, "--agent", "painter", *SMALL)[2]
    options = ["--agent", "painter", "--answers-visible", "--canvas", "3", "--max-steps", "12"]
    assert run(dataset, *options, "--output", tmp_path / "out")[0] == 0
    assert read(tmp_path / "out" / "summary.json")["score"]["output_score"] == 1.0


def test_options_of_sbatch_are_read_by_their_own_names():
    text = "partition=cpu,nodelist=n1,n2,--time=1:00:00,export=ALL,PYTHONPATH=/a=b"
    expected = {"partition": "cpu", "nodelist": "n1,n2", "time": "1:00:00", "export": "ALL,PYTHONPATH=/a=b"}
    assert sbatch_options(text) == expected
    with pytest.raises(typer.BadParameter, match="'cpu'"):
        sbatch_options("cpu")


def test_mistakes_are_one_line(dataset, actions, solver, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    cases = [
        (["--agent", "rondom"], 2, "'rondom' is none of search, random, submit, painter"),
        (["--agent", __file__], 2, "file.py:function"),
        (["--agent", bad], 1, "bad.json, line 1"),
        (["--agent", f"{solver}:number"], 2, "TypeError"),
        (["--agent", "no_such_module:solve"], 2, "ModuleNotFoundError"),
        (["--agent", f"{solver}:same", "--votes", "3"], 2, "--votes"),
        (["--agent", actions, "--votes", "4", "--canvas", "3"], 2, "--votes"),
        (["--agent", "search", "--seed", "3"], 2, "--seed"),
        (["--score", bad, "--canvas", "3"], 2, "--canvas"),
        (["--agent", "random", "--checkpoint", "last"], 2, "--checkpoint"),
        (["--agent", "random", "--precision", "bfloat16"], 2, "--precision"),
        (["--agent", "random", "--minutes", "1"], 2, "--minutes"),
        (["--agent", "random", "--seconds", "1"], 2, "for solvers"),
        (["--agent", f"{solver}:same", "--max-cost", "1"], 2, "--agent search"),
        (["--agent", "search", "--shards", "0"], 2, "'--shards'"),
        (["--agent", "search", "--shards", "2", "--processes", "2"], 2, "--processes"),
        (["--agent", "search", "--slurm", "partition=cpu"], 2, "--on slurm"),
        (["--agent", "search", "--on", "slurm"], 2, "--shards"),
        (["--agent", "random", "--on", "slurm"], 2, "--shards"),
        (["--agent", "random", *SMALL, "--shards", "2"], 2, "too few for 2 parts; add --batch-size 4"),
        (["--score", bad, "--shards", "2"], 2, "--shards"),
        (["--agent", "painter", "--answers-visible", "--format", "mask"], 2, "--format says mask"),
        (["--agent", "random", "training.seed=1"], 2, "surrogate"),
        (["--agent", tmp_path], 2, "there is no checkpoint in"),
        (["--score", bad], 1, "lacks 3 of its 3 tasks"),
        (["--score", tmp_path / "none.json"], 2, "none.json"),
        (["--agent", "submit", "--canvas", "1"], 2, "add --canvas 2"),
        (["--agent", "submit", "--canvas", "3,1"], 2, "several that rise, such as 10,20,30; got '3,1'"),
        (
            ["--agent", "submit", "--canvas", "1,3"],
            2,
            "canvases=(1, 3) would tell the agent about the size of a hidden",
        ),
        (["--agent", "submit", "--votes", "1"], 2, "attempts=2"),
    ]
    for arguments, expected, complaint in cases:
        code, out, err = run(dataset, *arguments)
        assert (code, out) == (expected, ""), arguments
        assert complaint in err
        assert err.count("\n") == 1
    for arguments in ([], ["--agent", "submit", "--score", bad]):
        code, _, err = run(dataset, *arguments)
        assert code == 2
        assert "--agent, --score" in err


def test_a_mistyped_agent_is_answered_before_jax_is_loaded():
    code = (
        "import sys\nfrom jaxarc.cli.main import main\n"
        "try:\n    main(['evaluate', 'arc-agi-1/training', '--agent', 'rndom'])\n"
        "finally:\n    print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "False\n"), done.stderr
    assert "'rndom' is none of search, random" in done.stderr
