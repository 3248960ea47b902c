"""Measure a surrogate of small grids on larger ones: ``python benchmarks/larger_grids.py RUN [--side 30]``.

The run is one of ``jaxarc train surrogate=lookahead surrogate.model=transition`` or ``surrogate=edits``, whose networks
compute each cell alike and so take grids of any size. Pairs of the held-out data set with sides up to ``--side`` count,
smaller ones too.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import jax

from jaxarc.cli.settings import read_any_experiment
from jaxarc.training import open_run_folder
from jaxarc.training.surrogates import SurrogateExperiment, make_tasks
from jaxarc.training.surrogates.evaluate import load_models


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--side", type=int, default=30)
    parser.add_argument("--examples", type=int, default=256, help="of the lookahead expert")
    options = parser.parse_args()
    folder = open_run_folder(options.run)
    experiment = read_any_experiment([], folder.config)
    assert isinstance(experiment, SurrogateExperiment)
    models = load_models(folder, make_tasks(experiment))
    for name, task in make_tasks(larger(experiment, options.side, options.examples)).items():
        begun = time.process_time()
        measured = task.evaluate(models[name])
        for field, number in measured.numbers().items():
            print(f"{name} {field} {number:.6f}")
        for operation, numbers in getattr(measured, "by_operation", {}).items():
            print(f"{name} operation {operation}: {numbers[0]} steps, exact {numbers[1]:.4f}, kept {numbers[2]:.4f}")
        print(f"{time.process_time() - begun:.1f} s of CPU time")


def larger(experiment: SurrogateExperiment, side: int, num_examples: int) -> SurrogateExperiment:
    """Return the same experiment on a canvas of ``side`` rows and columns."""
    return dataclasses.replace(
        experiment,
        environment=experiment.environment.with_fields(max_grid_height=side, max_grid_width=side),
        task=experiment.task.replace(max_side=side),
        lookahead=experiment.lookahead.replace(num_eval=num_examples),
    )


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    main()
