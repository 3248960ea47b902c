"""``jaxarc profile``: a trace of a training step, and the memory of a training run."""

import time
from pathlib import Path
from typing import Annotated, Any, Final

import equinox as eqx
import jax
import typer
from rich.console import Console

from jaxarc.agents.train import AgentTraining, update_program
from jaxarc.cli.console import ConfigOption, JsonOption, escape, number_table, print_json
from jaxarc.cli.settings import AnyExperiment, read_experiment, with_own_parts
from jaxarc.cli.training_runs import load_surrogate_task, load_training_pairs
from jaxarc.nn import init_optimizer, make_surrogate_optimizer
from jaxarc.profiling import MemoryReport, memory_report, trace
from jaxarc.runs.loop import Trainable
from jaxarc.surrogate.surrogate_experiment import SurrogateExperiment
from jaxarc.surrogate.surrogate_training import SurrogateTraining

app = typer.Typer(help="Measure where time and memory go.", no_args_is_help=True, add_completion=False)

_ROWS: Final = {
    "parameters": "parameters",
    "optimizer": "state of the optimizer",
    "gradients": "gradients",
    "temporaries": "activations and other temporaries",
}
_Overrides = Annotated[
    list[str] | None, typer.Argument(help="As of jaxarc train: topic.field=value.", show_default=False)
]


@app.command("training")
def profile_training(
    overrides: _Overrides = None,
    config: ConfigOption = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the trace; made when missing.")] = Path(
        "runs/profile"
    ),
) -> None:
    """Trace one training step, after a warm one, with the profiler of JAX; nothing is saved but the trace.

    Examples:
        jaxarc profile training experiment=small_grids
        jaxarc profile training surrogate=parent_sets --output runs/profile
    """
    run = _training_of(read_experiment(list(map(with_own_parts, overrides or [])), config))
    state = run.place(run.init())
    run.compile(state)
    with run.running(0):
        state, _ = run.step(state, 0)
        begun = time.perf_counter()
        state, _ = jax.block_until_ready(run.step(state, 0))
        seconds = time.perf_counter() - begun
        with trace(output):
            jax.block_until_ready(run.step(state, 0))
    path = escape(str(output))
    Console().print(
        f"A step took {1000 * seconds:,.1f} ms without the trace, compilation not counted.\n"
        f"Trace: {path}\n"
        f"Open it: [bold]xprof --logdir {path}[/] or [bold]tensorboard --logdir {path}[/] (pip install xprof "
        "tensorboard), or drop the newest *.trace.json.gz below it onto https://ui.perfetto.dev",
        highlight=False,
        soft_wrap=True,
    )


@app.command("memory")
def profile_memory(overrides: _Overrides = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Print what the memory of a training run is for; its programs are compiled for one device, nothing is trained.

    Examples:
        jaxarc profile memory experiment=small_grids
        jaxarc profile memory surrogate=parent_sets
    """
    experiment = read_experiment(list(map(with_own_parts, overrides or [])), config)
    if isinstance(experiment, SurrogateExperiment):
        name, report = "train step", _memory_of_surrogate(experiment)
    else:
        name, report = f"update of {experiment.training.num_seeds} agent(s)", _memory_of_agents(experiment)
    if as_json:
        print_json({name: {**report._asdict(), "total": report.total}})
        return
    table = number_table(name, "bytes")
    for field, words in _ROWS.items():
        size = getattr(report, field)
        if size is not None:  # which the backend does not say
            table.add_row(words, f"{size:,}")
    if report.total is not None:
        table.caption = f"{report.others:,} bytes of other arguments, {report.total:,} all together"
    Console().print(table)


def _training_of(experiment: AnyExperiment) -> Trainable:
    if isinstance(experiment, SurrogateExperiment):
        return SurrogateTraining(experiment, load_surrogate_task(experiment))
    return AgentTraining(experiment, load_training_pairs(experiment))


def _memory_of_agents(experiment: Any) -> MemoryReport:
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
