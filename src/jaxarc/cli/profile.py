"""``jaxarc profile``: a trace of a training step, and the memory of a training run."""

import time
from pathlib import Path
from typing import Annotated, Final

import jax
import typer
from rich.console import Console

from jaxarc.cli.console import ConfigOption, JsonOption, escape, number_table, print_json
from jaxarc.cli.settings import read_experiment, with_own_parts
from jaxarc.profiling import memory_report, trace
from jaxarc.runs.kind import kind_of
from jaxarc.runs.loop import Trainable

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
    run = _training_of(overrides, config)
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
    name, *compiled = _training_of(overrides, config).compiled_step()
    report = memory_report(*compiled)
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


def _training_of(overrides: list[str] | None, config: Path | None) -> Trainable:
    experiment = read_experiment(list(map(with_own_parts, overrides or [])), config)
    return kind_of(experiment).load(experiment)
