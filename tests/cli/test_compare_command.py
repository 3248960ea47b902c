import json

import pytest
from run_command import run_command

from jaxarc.cli.settings import read_experiment
from jaxarc.runs import create_run_folder

RATE = "evaluation_solve_rate"


@pytest.fixture
def runs(tmp_path):
    """Two seeds of one experiment that comes to 99 %, and one of another that comes to 50 %."""

    def make(seed, rate, last):
        overrides = [f"training.seed={seed}", f"schedule.learning_rate={rate}", f"logging.run_root={tmp_path}/runs"]
        folder = create_run_folder(read_experiment(overrides))
        rows = [
            {"update": i, "environment_steps": 1000 * i, "seconds": i / 4, "seed": seed, RATE: last * i / 8}
            for i in range(9)
        ]
        folder.metrics.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return str(folder.path)

    return [make(0, 4e-3, 1.0), make(1, 4e-3, 0.98), make(0, 1e-3, 0.5)]


def test_groups_are_reported_by_their_choices_and_their_end(tmp_path, runs):
    output = run_command("compare", *runs, "-o", tmp_path / "new" / "curves.png", columns=80)
    assert output.exit_code == 0
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.stdout.splitlines() if "│" in line]
    assert ["schedule.learning_rate=0.004", "2", "99.0 ± 1.4 %", "8,000", "2.0"] in cells
    assert ["schedule.learning_rate=0.001", "1", "50.0 %", "8,000", "2.0"] in cells
    assert (tmp_path / "new" / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_lands_in_the_folder_that_holds_the_runs(monkeypatch, tmp_path, runs):
    monkeypatch.chdir(tmp_path)
    output = run_command("compare", "runs")
    assert f"Picture: {tmp_path / 'runs' / 'comparison.png'}" in output.stdout
    run_command("compare", runs[0])
    assert len(list(tmp_path.rglob("comparison.png"))) == 2
