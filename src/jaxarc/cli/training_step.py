"""``jaxarc profile``: one step of a training run, traced, or compiled to say what its memory is for."""

import time
from pathlib import Path
from typing import Any, Final

import equinox as eqx
import jax
from rich.table import Table

from jaxarc.agents import Experiment
from jaxarc.agents.train import AgentTraining, update_program
from jaxarc.cli.console import number_table
from jaxarc.cli.settings import AnyExperiment
from jaxarc.cli.surrogate_run import load_surrogate_task
from jaxarc.cli.training_run import load_training_pairs
from jaxarc.nn import init_optimizer, make_surrogate_optimizer
from jaxarc.profiling import MemoryReport, memory_report, trace
from jaxarc.runs.loop import Trainable
from jaxarc.surrogate.experiment import SurrogateExperiment
from jaxarc.surrogate.train import SurrogateTraining

_ROWS: Final = {
    "parameters": "parameters",
    "optimizer": "state of the optimizer",
    "gradients": "gradients",
    "temporaries": "activations and other temporaries",
}


def trace_training(experiment: AnyExperiment, folder: Path) -> float:
    """Take a step of a training run three times: warm, timed, and recorded into a folder.

    Returns:
        Seconds of the timed one.

    Raises:
        ConfigValidationError, TaskFormatError, UnknownDatasetError: see :func:`load_training_pairs` and
            :func:`load_surrogate_task`.
        ProfilerBusyError, OSError: see :func:`jaxarc.profiling.trace`.
    """
    run = _training_of(experiment)
    state = run.place(run.init())
    run.compile(state)
    with run.running(0):
        state, _ = run.step(state, 0)
        begun = time.perf_counter()
        state, _ = jax.block_until_ready(run.step(state, 0))
        seconds = time.perf_counter() - begun
        with trace(folder):
            jax.block_until_ready(run.step(state, 0))
    return seconds


def _training_of(experiment: AnyExperiment) -> Trainable:
    if isinstance(experiment, SurrogateExperiment):
        return SurrogateTraining(experiment, load_surrogate_task(experiment))
    return AgentTraining(experiment, load_training_pairs(experiment))


def memory_of(experiment: AnyExperiment) -> dict[str, MemoryReport]:
    """Compile the programs of a training run, and report the memory of each by its name; nothing is trained.

    Raises:
        ConfigValidationError, TaskFormatError, UnknownDatasetError: see :func:`load_training_pairs` and
            :func:`load_surrogate_task`.
    """
    if isinstance(experiment, SurrogateExperiment):
        return {"train step": _memory_of_surrogate(experiment)}
    return {f"update of {experiment.training.num_seeds} agent(s)": _memory_of_agents(experiment)}


def memory_table(name: str, report: MemoryReport) -> Table:
    """Draw a report as a table; rows whose size the backend does not say are left out."""
    table = number_table(name, "bytes")
    for field, words in _ROWS.items():
        size = getattr(report, field)
        if size is not None:
            table.add_row(words, f"{size:,}")
    if report.total is not None:
        table.caption = f"{report.others:,} bytes of other arguments, {report.total:,} all together"
    return table


def _memory_of_agents(experiment: Experiment) -> MemoryReport:
    """Report an update of all seeds on one device; the other arguments are environments, tasks and the curriculum."""
    training = AgentTraining(experiment, load_training_pairs(experiment))
    state = training.like()  # shapes alone
    length = training.intervals.updates_per_step
    program = update_program().lower(state, training.train_params, experiment.train_config, length).compile()
    return memory_report(program, state.learner.policy, state.learner.optimizer_state)


def _memory_of_surrogate(experiment: SurrogateExperiment) -> MemoryReport:
    """Report the train step on one device; the other arguments are a batch."""
    task = load_surrogate_task(experiment)
    config = experiment.surrogate_training
    optimizer = make_surrogate_optimizer(config)
    model = task.make_model(jax.random.key(experiment.surrogate.seed))
    opt_state = init_optimizer(optimizer, model)
    step: Any = eqx.filter_jit(task.make_step(model, optimizer, config))
    compiled = step.lower(model, opt_state, task.batch(experiment.surrogate.seed, 0)).compile().compiled
    return memory_report(compiled, model, opt_state)
