import re

import pytest
from small_run import small_run, write_small_tasks

from jaxarc.cli.main import main
from jaxarc.profiling import costliest_operations


def cells(out, heading):
    """The rows of the table under a heading, as lists of cells."""
    table = out[re.search(rf"┃ {heading} +┃", out).start() :]
    body = table[: table.index("└")].split("┩\n")[1]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in body.splitlines() if "│" in line]


@pytest.mark.usefixtures("standard_promotion", "source_lines")
def test_a_rollout_is_traced_and_its_costliest_operations_are_listed(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    command = ["profile", "rollout", "--num-envs", "8", "--steps", "6", "--format", "point", "--top", "4"]
    with pytest.raises(SystemExit) as exit_info:
        main([*command, "--output", str(tmp_path / "trace")])
    out = capsys.readouterr().out
    assert exit_info.value.code == 0

    costs = costliest_operations(tmp_path / "trace", (tmp_path / "trace" / "rollout.hlo.txt").read_text(), top=4)
    kernels, containers = cells(out, "kernel"), cells(out, "container")
    assert [row[0] for row in kernels] == [cost.name for cost in costs.kernels]
    assert [row[0] for row in containers] == [cost.name for cost in costs.containers]
    assert [float(row[1]) for row in kernels] == [round(cost.seconds * 1e9 / 48, 1) for cost in costs.kernels]
    assert [row[2] for row in kernels] == [f"{cost.seconds / costs.kernel_seconds:.1%}" for cost in costs.kernels]
    assert [float(row[3]) for row in kernels] == [round(cost.calls / 6, 1) for cost in costs.kernels]
    assert any(".py:" in row[-1] for row in kernels + containers)

    assert re.search(r"Without the trace the call took [\d,]+ ns per environment and step", out)
    assert "Tracing inflates tiny kernels" in out
    assert f"tensorboard --logdir {tmp_path / 'trace'}" in out
    assert "https://ui.perfetto.dev" in out


def test_a_rollout_without_environments_is_refused(capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["profile", "rollout", "--num-envs", "0"])
    assert exit_info.value.code == 2
    assert "--num-envs" in capsys.readouterr().err


def test_an_unknown_dataset_is_one_line(capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["profile", "rollout", "arc-agi-1/trainin"])
    assert exit_info.value.code == 2
    assert "arc-agi-1/training" in capsys.readouterr().err


@pytest.mark.usefixtures("standard_promotion")
def test_the_memory_of_a_training_run_is_reported_by_what_it_is_for(capsys, tmp_path, monkeypatch):
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_info:
        main(["profile", "memory", *small_run(write_small_tasks(tasks), 1)])
    assert exit_info.value.code == 0
    rows = dict(cells(capsys.readouterr().out, r"update of 1 agent\(s\)"))
    size = {name: int(value.replace(",", "")) for name, value in rows.items()}
    parts = [value for name, value in size.items() if name != "all together"]
    assert len(parts) == 5
    assert size["all together"] == sum(parts)
    assert size["parameters"] == size["gradients"] > 0
    assert 2 * size["parameters"] < size["state of the optimizer"] < 3 * size["parameters"]
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("tasks", "tasks-measured")] == []
