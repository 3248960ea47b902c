"""``jaxarc profile``: a trace of a training step, and the memory of a training run."""

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from jaxarc.cli.console import JsonOption, escape, print_json

app = typer.Typer(help="Measure where time and memory go.", no_args_is_help=True, add_completion=False)


@app.callback()
def profile() -> None:
    """Measure where time and memory go."""


_Overrides = Annotated[
    list[str] | None, typer.Argument(help="As of jaxarc train: topic.field=value.", show_default=False)
]
_Config = Annotated[
    Path | None,
    typer.Option(help="Start from this file instead of configs/: a run's config.json, or what --show printed."),
]
_FOLDER: Final = Path("runs/profile")


@app.command()
def training(
    overrides: _Overrides = None,
    config: _Config = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the trace; made when missing.")] = _FOLDER,
) -> None:
    """Trace one training step, after a warm one, with the profiler of JAX; nothing is saved but the trace.

    Examples:
        jaxarc profile training experiment=small_grids
        jaxarc profile training surrogate=parent_sets --output runs/profile
    """
    from jaxarc.cli.settings import read_any_experiment
    from jaxarc.cli.training_step import trace_training

    experiment = read_any_experiment(overrides or [], config)
    seconds = trace_training(experiment, output)
    path = escape(str(output))
    Console().print(
        f"A step took {1000 * seconds:,.1f} ms without the trace, compilation not counted.\n"
        f"Trace: {path}\n"
        f"Open it: [bold]xprof --logdir {path}[/] or [bold]tensorboard --logdir {path}[/] (pip install xprof "
        "tensorboard), or drop the newest *.trace.json.gz below it onto https://ui.perfetto.dev",
        highlight=False,
        soft_wrap=True,
    )


@app.command()
def memory(overrides: _Overrides = None, config: _Config = None, as_json: JsonOption = False) -> None:
    """Print what the memory of a training run is for; its programs are compiled for one device, nothing is trained.

    Examples:
        jaxarc profile memory experiment=small_grids
        jaxarc profile memory surrogate=parent_sets
    """
    from jaxarc.cli.settings import read_any_experiment
    from jaxarc.cli.training_step import memory_of, memory_table

    reports = memory_of(read_any_experiment(overrides or [], config))
    if as_json:
        print_json({name: {**report._asdict(), "total": report.total} for name, report in reports.items()})
        return
    for name, report in reports.items():
        Console().print(memory_table(name, report))
