"""The folder of a run whose agents have learned nothing, on 3x3 canvases with the answer shown."""

import equinox as eqx
import jax
import numpy as np

from jaxarc.agents import Report
from jaxarc.agents.updates import make_params, start_training
from jaxarc.cli.settings import experiment_of
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.runs import RunFolder
from jaxarc.runs.run_state import RunState, save_run_state


def write_untrained_run(path, tasks, measured, num_seeds=1):
    """Save two checkpoints, the better one first, the other with weights twice as large; return the first weights."""
    experiment = experiment_of(
        {
            "dataset": {"max_grid_height": 3, "max_grid_width": 3},
            "observation": {"reveal_target": True, "include_step_count": True},
            "action": {"selection_format": "bbox", "invalid_action_policy": "noop"},
            "environment": {"max_episode_steps": 3},
            "task": {"train_dataset": str(tasks), "evaluation_dataset": str(measured), "max_side": 3},
            "training": {"seed": 4, "num_seeds": num_seeds},
            "agent": {"num_envs": 2, "rollout_steps": 2, "num_minibatches": 1},
        }
    )
    pairs = load_pairs(experiment.task, experiment.environment.grid_shape)
    keys = jax.vmap(jax.random.key)(np.array(experiment.training.seeds))
    params = make_params(pairs.train, experiment.environment)
    state = start_training(keys, params, experiment.train_config, experiment.curriculum)
    doubled = eqx.tree_at(lambda x: x.learner.policy, state, jax.tree.map(lambda x: x * 2, state.learner.policy))
    folder = RunFolder(path)
    folder.metrics.touch()
    for update, rate, saved in ((1, 0.5, state), (2, 0.25, doubled)):
        reports = [Report(update, 0, 0.0, seed, evaluation_solve_rate=rate) for seed in experiment.training.seeds]
        save_run_state(folder, experiment, RunState(saved, update, reports), Report)
    return state.learner.policy
