"""Measure a model of transitions that learned on small grids on pairs with sides up to 30, and time its predictions.

Run ``python docs/measure_large_grids.py RUN...`` with runs of ``jaxarc train surrogate=lookahead
surrogate.model=transition``. The network looks at each cell in the same way, so its weights fit any canvas.
"""

import sys
import time
from pathlib import Path
from typing import Final

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from jaxarc.cli.settings import read_any_experiment
from jaxarc.config import TaskConfig
from jaxarc.envs.structured_actions import get_operation_name
from jaxarc.runs import open_run_folder
from jaxarc.surrogate.transition_model import predict_steps
from jaxarc.training.surrogates import SurrogateExperiment, make_tasks
from jaxarc.training.surrogates.dynamics import TransitionDataset, evaluate_steps
from jaxarc.training.surrogates.evaluate import load_models

SIDE: Final = 30
NUM_STEPS: Final = 2048  # held-out steps on each canvas
NUM_TIMED: Final = 512  # predictions in one call


def main(runs: list[str]) -> None:
    console = Console()
    table = Table("run", "canvas", "steps", "exact next grids", "exact clipboards", "lowest operation", "predictions/s")
    for run in runs:
        folder = open_run_folder(Path(run))
        experiment = read_any_experiment([], folder.config)
        assert isinstance(experiment, SurrogateExperiment)
        tasks = make_tasks(experiment)
        model = load_models(folder, tasks, "last")["transition"]
        learned_on = tasks["transition"]
        assert isinstance(learned_on, TransitionDataset)
        rules = experiment.environment.with_fields(max_grid_height=SIDE, max_grid_width=SIDE)
        held_out = experiment.edit_steps.replace(num_eval=NUM_STEPS)
        large = TransitionDataset.load(TaskConfig(max_side=SIDE), rules, held_out, experiment.surrogate_network)
        learned_on.config = held_out
        for data in (learned_on, large):
            steps = data.held_out()
            accuracy = evaluate_steps(model, steps)
            operation, (_, lowest, _) = min(accuracy.by_operation.items(), key=lambda item: item[1][1])
            timed = jax.tree.map(lambda leaf: leaf[:NUM_TIMED], (steps.data, steps.action))
            predict = jax.jit(lambda model, timed: predict_steps(model, *timed))
            jax.block_until_ready(predict(model, timed))
            seconds = []
            for _ in range(3):
                begin = time.perf_counter()
                jax.block_until_ready(predict(model, timed))
                seconds.append(time.perf_counter() - begin)
            table.add_row(
                folder.path.name,
                "{}x{}".format(*data.eval_params.config.grid_shape),
                f"{len(steps.operation):,}",
                f"{accuracy.exact_grid_accuracy:.2%}",
                f"{accuracy.exact_clipboard_accuracy:.2%}",
                f"{get_operation_name(operation)} {lowest:.1%}",
                f"{NUM_TIMED / float(np.median(seconds)):,.0f}",
            )
    console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
