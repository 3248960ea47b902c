"""One agent whose environments are spread over devices learns what it learns on one, but for rounding."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from process_group import run_python
from small_run import LEARNABLE

from jaxarc.agents import Edit, Experiment
from jaxarc.agents.ppo import UpdateBatch, shuffle_into_minibatches
from jaxarc.config import AgentConfig, ConfigValidationError, ParallelConfig
from jaxarc.parallel.mesh import DataShard
from jaxarc.runs import IncompatibleRunError
from jaxarc.runs.run_state import require_same_choices

SCRIPT = """
import json, sys, tempfile
from pathlib import Path
import jax, numpy as np
from jaxarc.config import *
from small_run import RULES_2X2
from small_tasks import tasks_of
from jaxarc.agents import Experiment
from jaxarc.agents.train import train
from jaxarc.runs import RunFolder
from jaxarc.datasets.training_pairs import TrainingPairs

rules = RULES_2X2.with_fields(max_episode_steps=4, allowed_operations=(1, 2, 33, 34))
tasks = tasks_of(([[0, 0]], [[1, 2]]), ([[1]], [[2], [2]]), ([[1, 1]], [[1, 1]]))

def experiment(num_devices):
    return Experiment(
        environment=rules, agent=AgentConfig(num_envs=8, rollout_steps=4, num_minibatches=2),
        network=NetworkConfig(hidden_size=4), curriculum=CurriculumConfig("replay"), task=TaskConfig(max_side=2),
        training=TrainingConfig(total_steps=128, updates_per_report=1, reports_per_evaluation=2, num_seeds=2),
        parallel=ParallelConfig(num_devices, "environments"), checkpoint=CheckpointConfig(min_seconds=0))

def learn(num_devices, folder, steps=99, resume=False):
    reports = []
    stop = lambda: len(reports) >= 2 * (1 + steps)
    return train(experiment(num_devices), TrainingPairs(tasks, tasks, 2), folder, reports.append, stop, resume=resume)

folders = [RunFolder(Path(tempfile.mkdtemp())) for _ in range(2)]
on_four = learn(4, folders[0])
learn(1, folders[1], steps=2)
resumed = learn(4, folders[1], resume=True)
state = lambda outcome: outcome.state
# A bias that all logits share changes no probability: its gradient is rounding alone, of which Adam makes full steps.
shared = tuple(f"{head}_layers.last.bias" for head in ("cell", "box", "color"))
floats = lambda tree: [
    np.asarray(x, np.float64) for path, x in jax.tree_util.tree_leaves_with_path(tree)
    if x.dtype == np.float32 and not jax.tree_util.keystr(path).endswith(shared)]
others = lambda tree: [np.asarray(x).tolist() for x in jax.tree.leaves(tree) if x.dtype != np.float32]
told = lambda outcome: [
    {k: v for k, v in vars(r).items() if k not in ("seconds", "steps_per_second")} for r in outcome.reports]
grids = on_four.state.env_states.env_state.working_grid
print(json.dumps({
    "apart": max(float(np.abs(a - b).max()) for a, b in zip(floats(on_four.state), floats(resumed.state)) if a.size),
    "moved": max(float(np.abs(a).max()) for a in floats(on_four.state.learner.optimizer_state)),
    "same": others(on_four.state) == others(resumed.state),
    "played": others(on_four.played) == others(resumed.played),
    "num_reports": [len(told(on_four)), len(told(resumed))],
    "episodes": [[r["episodes"] for r in told(outcome)] for outcome in (on_four, resumed)],
    "losses": [[r["value_loss"] for r in told(outcome)] for outcome in (on_four, resumed)],
    "weights": len(jax.tree.leaves(on_four.state.learner)[0].sharding.device_set),
    "parts": [list(shard.data.shape) for shard in grids.addressable_shards],
}))
"""


@pytest.fixture(scope="module")
def found():
    return json.loads(run_python(SCRIPT, devices=4))


def test_a_run_on_four_devices_is_one_begun_on_one_device_and_resumed_on_four_but_for_rounding(found):
    assert found["same"]
    assert found["played"]
    assert found["moved"] > 1e-3
    assert found["apart"] < 1e-5
    assert found["num_reports"] == [10, 10]  # two seeds, four updates and the start
    assert found["episodes"][0] == found["episodes"][1]
    ours, theirs = (np.array(losses[2:], np.float64) for losses in found["losses"])
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_each_device_holds_its_part_of_the_environments_and_all_weights(found):
    assert found["weights"] == 4
    assert found["parts"] == [[2, 2, 2, 2]] * 4  # two seeds, of eight environments two


AGENT = AgentConfig(num_envs=12, rollout_steps=2, num_minibatches=3)


def minibatches(count, key):
    """Which environments each minibatch holds, told by numbers that they carry."""
    numbers = jnp.broadcast_to(jnp.arange(12, dtype=jnp.float32), (2, 12)).reshape(2, count, -1).swapaxes(0, 1)
    ints = jnp.zeros(numbers.shape, jnp.int32)

    def cut(numbers, ints):
        samples = UpdateBatch({}, Edit(ints, ints, ints, ints), numbers, numbers, numbers)
        return shuffle_into_minibatches(key, samples, AGENT, DataShard("data", count)).advantage

    held = jax.vmap(cut, axis_name="data")(numbers, ints)  # [device, minibatch, S, B]
    return [np.sort(held[:, place, 0].ravel()).tolist() for place in range(3)]


def test_minibatches_hold_the_same_environments_on_any_number_of_devices():
    keys = jax.random.split(jax.random.key(0), 2)
    whole = [minibatches(1, key) for key in keys]
    assert sorted(number for held in whole[0] for number in held) == list(range(12))
    assert whole[0] != whole[1]
    for count in (2, 4):
        assert [minibatches(count, key) for key in keys] == whole


def experiment(agent=None, **choices):
    small = {"num_envs": 12, "num_minibatches": 3, **(agent or {})}
    return Experiment(environment=LEARNABLE, agent=AgentConfig(**small), parallel=ParallelConfig(**choices))


def test_what_cannot_be_split_evenly_is_named():
    experiment(num_devices=2, over="environments")
    complaint = r"agent.num_envs must be a multiple of parallel.num_devices times agent.num_minibatches = 3.* 12 and 8"
    with pytest.raises(ConfigValidationError, match=complaint):
        experiment(num_devices=8, over="environments")
    with pytest.raises(ConfigValidationError, match=r"training.num_seeds.*1.*2"):
        experiment(num_devices=2)
    with pytest.raises(ConfigValidationError, match=r"over.*\('seeds', 'environments'\).*'tasks'"):
        experiment(over="tasks")


def test_a_run_goes_on_with_other_devices_but_not_split_otherwise():
    saved = experiment(num_devices=4, over="environments").as_dict()
    require_same_choices(saved, experiment(num_devices=1, over="environments").as_dict())
    with pytest.raises(IncompatibleRunError, match=r"parallel\.over.*'environments'.*'seeds'"):
        require_same_choices(saved, experiment().as_dict())
