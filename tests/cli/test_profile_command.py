import re

import pytest
from run_command import run_command
from small_run import small_run, write_small_tasks


def cells(out, heading):
    """The rows of the table under a heading, as lists of cells."""
    table = out[re.search(rf"┃ {heading} +┃", out).start() :]
    body = table[: table.index("└")].split("┩\n")[1]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in body.splitlines() if "│" in line]


TINY_SURROGATE = [
    *("surrogate=parent_sets", "structural_models.num_variables=2", "structural_models.max_parents=1"),
    *("surrogate_network.latent_size=4", "surrogate_network.num_layers=1", "surrogate_network.num_heads=1"),
    *("parent_sets.models_per_batch=4", "parent_sets.eval_models=4"),
]


@pytest.mark.usefixtures("standard_promotion")
@pytest.mark.parametrize("kind", ["agent", "surrogate"])
def test_a_training_step_is_traced_and_nothing_else_is_written(tmp_path, monkeypatch, kind):
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    choices = TINY_SURROGATE if kind == "surrogate" else small_run(write_small_tasks(tasks), 1)
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    result = run_command("profile", "training", *choices, "--output", "traced")
    assert result.exit_code == 0
    assert float(re.search(r"A step took ([\d,.]+) ms", result.stdout)[1].replace(",", "")) > 0
    assert len(list(working.glob("traced/plugins/profile/*/*.xplane.pb"))) == 1
    assert [path.name for path in working.iterdir()] == ["traced"]


@pytest.mark.usefixtures("standard_promotion")
def test_the_memory_of_a_training_run_is_reported_by_what_it_is_for(tmp_path, monkeypatch):
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    monkeypatch.chdir(tmp_path)
    result = run_command("profile", "memory", *small_run(write_small_tasks(tasks), 1))
    assert result.exit_code == 0
    out = result.stdout
    rows = dict(cells(out, r"update of 1 agent\(s\)"))
    size = {name: int(value.replace(",", "")) for name, value in rows.items()}
    assert len(size) == 4
    numbers = re.findall(r"([\d,]+) (?:bytes of|all together)", " ".join(out.split()))
    others, total = (int(number.replace(",", "")) for number in numbers)
    assert total == sum(size.values()) + others
    assert size["parameters"] == size["gradients"] > 0
    assert 2 * size["parameters"] < size["state of the optimizer"] < 3 * size["parameters"]
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("tasks", "tasks-measured")] == []
