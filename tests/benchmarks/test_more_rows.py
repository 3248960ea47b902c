"""The benchmarks of resets and of adapters measure what they say."""

import jax
import pytest
from adapter_rows import VectorLoop, adapter_rows
from task_rows import task_rows

from jaxarc.benchmarks import core_rows, operation_rows
from jaxarc.benchmarks.fresh_start import TASKS
from jaxarc.benchmarks.speed import play_params
from jaxarc.datasets import load_tasks
from jaxarc.tasks.procedural import procedural_names


def test_no_two_rows_have_one_name():
    ids = [row.row_id for rows in (core_rows(), operation_rows(), task_rows(), adapter_rows()) for row in rows]
    assert len(ids) == len(set(ids))


def test_every_procedural_task_has_a_row():
    ids = {row.row_id for row in task_rows()}
    assert {f"reset-{name.replace('/', '-')}" for name in procedural_names()} <= ids


def test_loaded_sets_have_the_size_that_their_rows_say():
    assert {count: sum(len(load_tasks(name)) for name in names) for count, names in TASKS.items()} == {
        400: 400,
        1120: 1120,
    }


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_vector_loop_steps_all_environments(mode, monkeypatch):
    params = play_params("point", side=3, dataset="procedural/transpose", operations=(1, 34))
    loop = VectorLoop(params, 4, mode)
    calls, step = [], loop._env.step
    monkeypatch.setattr(loop._env, "step", lambda actions: calls.append(jax.tree.map(len, actions)) or step(actions))
    assert loop.sample(0.05) > 0
    assert all(set(jax.tree.leaves(call)) == {4} for call in calls)
    assert calls
