import dataclasses
import json

import numpy as np
import pytest
from rich.console import Console
from run_command import run_command
from small_run import LEARNABLE

from jaxarc.agents import Experiment, Report
from jaxarc.cli.compare import ComparisonError, band_of, print_difference, read_groups, read_shares
from jaxarc.config import LoggingConfig, ScheduleConfig, TrainingConfig
from jaxarc.runs import RunFolder

RATE = "evaluation_solve_rate"


def make_run(path, rates, seed=0, learning_rate=4e-3, num_seeds=1):
    """A run folder as training leaves it: a report every 100 steps and half a second."""
    path.mkdir(parents=True)
    experiment = Experiment(
        LEARNABLE,
        schedule=ScheduleConfig(learning_rate=learning_rate),
        training=TrainingConfig(seed=seed, num_seeds=num_seeds),
        logging=LoggingConfig(run_root=str(path.parent), run_name=path.name),
    )
    folder = RunFolder(path)
    folder.config.write_text(json.dumps({**experiment.as_dict(), "versions": {"jax": path.name}, "git_revision": None}))
    lines = [
        json.dumps(dataclasses.asdict(Report(step, 100 * step, 0.5 * step, seed=each, evaluation_solve_rate=rate)))
        for step, rate in enumerate(rates)
        for each in range(seed, seed + num_seeds)
    ]
    folder.metrics.write_text("".join(f"{line}\n" for line in lines))
    return path


def curve(values, steps=None):
    steps = np.arange(len(values), dtype=float) * 100 if steps is None else np.asarray(steps, float)
    return np.stack([steps, steps / 200, np.asarray(values, float)])


def test_runs_that_differ_only_in_seed_and_name_are_one_experiment(tmp_path):
    runs = [make_run(tmp_path / f"run{seed}", [0.0, 0.5], seed) for seed in range(3)]
    (group,), metric = read_groups(runs)
    assert (group.runs, metric) == (runs, RATE)
    assert len(group.curves) == 3


def test_copies_of_one_seed_count_once(tmp_path, capsys):
    rates = ([0.0, 0.5], [0.0, 0.5, 0.75], [0.0, 0.5])
    runs = [make_run(tmp_path / f"copy{index}", of_run, seed=3) for index, of_run in enumerate(rates)]
    (group,), _ = read_groups([*runs, make_run(tmp_path / "other", [1.0], seed=4)])
    assert [of_seed[2].tolist() for of_seed in group.curves] == [[0.0, 0.5, 0.75], [1.0]]
    assert capsys.readouterr().err.count("seed 3 of another run") == 2


def write_evaluation(folder, shares):
    """A folder of ``jaxarc evaluate``, as far as a comparison reads it."""
    folder.mkdir()
    (folder / "summary.json").write_text("{}")
    rows = [{"task_id": name, "num_outputs": 2, "solved_outputs": solved} for name, solved in shares.items()]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_of_two_evaluations_the_tasks_are_named_that_the_second_one_won_and_lost(tmp_path):
    first = write_evaluation(tmp_path / "first", {"a": 2, "b": 1, "c": 0, "d": 0, "gone": 2})
    second = write_evaluation(tmp_path / "second", {"d": 1, "c": 2, "b": 0, "a": 2, "new": 0})
    shown = run_command("compare", first, second)
    assert f"{second} won 2 tasks: c d\n" in shown.stdout
    assert f"{second} lost 1 tasks: b\n" in shown.stdout
    assert "2 tasks are in one of them only" in shown.stdout


@pytest.mark.parametrize(
    ("second", "message"),
    [({"a": None}, "no score"), ({"z": 1}, "no task in common"), ({"a": "x"}, r"tasks\.jsonl"), ({}, "evaluate again")],
)
def test_an_evaluation_that_cannot_be_compared_is_refused_by_name(tmp_path, second, message):
    folders = write_evaluation(tmp_path / "first", {"a": 2}), write_evaluation(tmp_path / "second", second)
    with pytest.raises(ComparisonError, match=message):
        print_difference(*map(read_shares, folders), Console())


def test_the_seeds_within_a_run_are_curves_of_their_own(tmp_path):
    (group,), _ = read_groups([make_run(tmp_path / "run", [0.0, None, 1.0], seed=5, num_seeds=3)], RATE)
    assert len(group.curves) == 3
    for of_seed in group.curves:
        np.testing.assert_array_equal(of_seed, [[0, 200], [0, 1], [0, 1]])


def test_the_folder_of_a_sweep_stands_for_its_runs_and_a_run_named_twice_counts_once(tmp_path):
    make_run(tmp_path / "sweep" / "run1", [0.0], 1)
    second = make_run(tmp_path / "sweep" / "run2", [0.0], 2)
    (group,), _ = read_groups([tmp_path / "sweep", second], RATE)
    assert [path.name for path in group.runs] == ["run1", "run2"]


def test_a_band_goes_through_the_mean_of_curves_measured_elsewhere_as_far_as_the_shortest():
    x, mean, *_ = band_of([curve([0.0, 1.0], [0, 100]), curve([0.0, 1.0], [0, 200])], "steps")
    np.testing.assert_array_equal(x, [0, 100])
    np.testing.assert_allclose(mean, [0.0, 0.75])
    np.testing.assert_array_equal(band_of([curve([0.0, 1.0]), curve([1.0])], "seconds")[0], [0])


def test_the_interval_holds_the_mean_of_the_population_about_95_times_in_100():
    generator = np.random.default_rng(7)
    hits = 0
    for _ in range(200):
        *_, low, high = band_of([curve([value]) for value in generator.normal(size=20)], "steps")
        hits += low[0] <= 0.0 <= high[0]
    assert 0.87 <= hits / 200 <= 0.99  # the percentile bootstrap is a little narrow at 20 seeds


def test_a_damaged_file_is_refused_by_name(tmp_path):
    run = RunFolder(make_run(tmp_path / "run", [0.0]))
    text = run.metrics.read_text()
    for wrong in ('{"upd', '{"evaluation_solve_rate": "x", "seed": 0, "seconds": 1, "environment_steps": 1}'):
        run.metrics.write_text(text + wrong)
        with pytest.raises(ComparisonError, match=r"metrics\.jsonl"):
            read_groups([run.path], RATE)
    run.metrics.write_text(text)
    with pytest.raises(ComparisonError, match=r"'solved'.*evaluation_solve_rate"):
        read_groups([run.path], "solved")
    run.config.write_text("[]")
    with pytest.raises(ComparisonError, match=r"config\.json"):
        read_groups([run.path], RATE)


def test_groups_are_printed_with_their_choices_and_ends_and_drawn(tmp_path, monkeypatch):
    runs = [
        make_run(tmp_path / "runs" / f"run{number}", [last * step / 8 for step in range(9)], seed, rate)
        for number, (seed, rate, last) in enumerate([(0, 4e-3, 1.0), (1, 4e-3, 0.98), (0, 1e-3, 0.5)])
    ]
    output = run_command("compare", *runs, "-o", tmp_path / "new" / "curves.png", columns=80)
    assert output.exit_code == 0
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.stdout.splitlines() if "│" in line]
    assert ["schedule.learning_rate=0.004", "2", "99.0 ± 1.4 %", "800", "4.0"] in cells
    assert ["schedule.learning_rate=0.001", "1", "50.0 %", "800", "4.0"] in cells
    assert (tmp_path / "new" / "curves.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.chdir(tmp_path)
    assert f"Picture: {tmp_path / 'runs' / 'comparison.png'}" in run_command("compare", "runs").stdout
