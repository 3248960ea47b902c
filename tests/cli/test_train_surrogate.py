"""`jaxarc train surrogate=...` and `jaxarc evaluate` as a user runs them."""

import json
import os
import subprocess
import sys

import pytest
from run_command import run_command
from small_run import only_folder

from jaxarc.cli.settings import read_experiment
from jaxarc.config.choices import choices_of, config_folder
from jaxarc.runs.folder import read_reports
from jaxarc.surrogate.surrogate_experiment import SurrogateExperiment, SurrogateReport

STEPS = 120
TINY = [
    "surrogate=parent_sets",
    "structural_models.num_variables=2",
    "structural_models.max_parents=1",
    "structural_models.num_samples=5",
    "surrogate_network.latent_size=4",
    "surrogate_network.num_layers=1",
    "surrogate_network.num_heads=1",
    "surrogate_training.warmup_steps=2",
    f"surrogate_training.num_steps={STEPS}",
    "surrogate.steps_per_report=8",
    "parent_sets.models_per_batch=4",
    "parent_sets.eval_models=16",
]
TINY_GRAPHS = [
    "surrogate=graphs",
    *("structural_models.num_variables=3", "structural_models.max_parents=2", "structural_models.num_samples=20"),
    *("surrogate_network.latent_size=4", "surrogate_network.num_layers=1", "surrogate_network.num_heads=1"),
    *("surrogate_training.warmup_steps=2", "surrogate_training.num_steps=8", "surrogate.steps_per_report=4"),
    *("graphs.models_per_batch=4", "graphs.eval_models=16", "surrogate.compilation_cache=false"),
]
WAITS = 240.0  # seconds, before a process that does nothing fails the test


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run in a process of its own, and what it printed."""
    root = tmp_path_factory.mktemp("alone")
    command = [sys.executable, "-m", "jaxarc.cli.main", "train", *TINY, f"logging.run_root={root}"]
    cache = {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("compiled")), "JAXARC_NO_CACHE": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **cache}, timeout=WAITS)
    assert done.returncode == 0, done.stderr
    return only_folder(root), done.stdout


def succeed(*arguments):
    result = run_command(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_a_run_leaves_its_files_and_prints_how_well_it_agrees(finished):
    folder, out = finished
    files = {path.name for path in folder.path.iterdir() if not path.name.startswith(".")}
    assert files == {
        "config.json",
        "metrics.jsonl",
        "learning_curve.png",
        "calibration.png",
        "evaluation.json",
        "checkpoints",
    }
    reports = read_reports(folder.metrics, SurrogateReport)
    assert [report.update for report in reports] == list(range(0, STEPS + 1, 8))
    agreement = json.loads(folder.evaluation.read_text())["agreement"]
    assert agreement["kl"] == reports[-1].kl < reports[0].kl
    assert agreement["calibration"]
    for words in (
        "Learning from the exact posterior",
        f"step {STEPS}/{STEPS}",
        "KL(expert || surrogate)",
        str(folder.path),
    ):
        assert words in out
    assert folder.learning_curve.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("standard_promotion")
def test_a_run_folder_is_evaluated_again_and_in_the_precision_and_on_the_data_asked_for(finished):
    folder, _ = finished
    before = folder.evaluation.read_bytes()
    exact = json.loads(before)
    folder.evaluation.unlink()
    assert "KL(expert || surrogate)" in succeed("evaluate", folder.path)
    assert folder.evaluation.read_bytes() == before
    succeed("evaluate", folder.path, "--precision", "bfloat16", "parent_sets.eval_models=2")
    other = json.loads(folder.evaluation.read_text())
    folder.evaluation.write_bytes(before)
    assert (exact["precision"], exact["overrides"]) == ("float32", [])
    assert (other["precision"], other["overrides"]) == ("bfloat16", ["parent_sets.eval_models=2"])
    assert 0 < other["agreement"]["num_examples"] < exact["agreement"]["num_examples"]


@pytest.mark.usefixtures("standard_promotion")
def test_the_memory_of_the_step_of_a_surrogate_is_reported():
    (report,) = json.loads(succeed("profile", "memory", *TINY, "--json")).values()
    assert report["optimizer"] == 2 * report["parameters"] + 8  # the two means of AdamW, and two counts
    assert report["others"] > 20 * 5 * 2 * 3 * 4 // 5  # the samples of four models, and more
    assert report["total"] == sum(
        report[name] for name in ("parameters", "optimizer", "gradients", "temporaries", "others")
    )


@pytest.mark.usefixtures("standard_promotion")
def test_graphs_are_learned_and_evaluated_again(tmp_path):
    out = succeed("train", *TINY_GRAPHS, f"logging.run_root={tmp_path}")
    folder = only_folder(tmp_path)
    for words in ("the graphs of drawn structural models", "AUROC", "expected SHD", "interventional", "share of edges"):
        assert words in out
    before = folder.evaluation.read_bytes()
    graphs = json.loads(before)["graphs"]
    last = read_reports(folder.metrics, SurrogateReport)[-1]
    assert graphs["overall"]["expected_shd"] == last.expected_shd
    assert last.score == last.auroc
    assert {name: each["num_models"] for name, each in graphs["by_samples"].items()} == {
        "observational": 8,
        "interventional": 8,
    }
    folder.evaluation.unlink()
    assert "AUROC" in succeed("evaluate", folder.path)
    assert folder.evaluation.read_bytes() == before


@pytest.mark.usefixtures("standard_promotion")
def test_a_sweep_runs_every_combination_and_tells_how_each_agrees(tmp_path):
    quick = [*TINY, "surrogate_training.num_steps=8", "surrogate.compilation_cache=false"]
    out = succeed("train", "--multirun", *quick, "surrogate.seed=0,1", f"logging.run_root={tmp_path}")
    (sweep,) = tmp_path.iterdir()
    assert len(list(sweep.iterdir())) == 2
    assert out.count("KL ") >= 2
    assert "surrogate.seed=1" in out
    assert "kl" in succeed("compare", sweep, "--metric", "kl", "-o", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").exists()


@pytest.mark.parametrize("name", choices_of("surrogate"))
def test_every_surrogate_is_a_valid_experiment_and_says_what_it_is(name):
    assert isinstance(read_experiment([f"surrogate={name}"]), SurrogateExperiment)
    text = (config_folder() / "surrogate" / f"{name}.yaml").read_text()
    assert text.splitlines()[1].startswith("# ")


def test_an_agents_run_is_not_evaluated_as_a_surrogate(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(read_experiment([]).as_dict()))
    result = run_command("evaluate", tmp_path)
    assert (result.exit_code, "--agent" in result.stderr) == (2, True)
    for option in (["--votes", 1], ["--output", tmp_path], ["--minutes", 1]):
        result = run_command("evaluate", tmp_path, *option)
        assert (result.exit_code, f"{option[0]}: does not go" in result.stderr) == (2, True)
