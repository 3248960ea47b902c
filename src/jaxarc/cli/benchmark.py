"""``jaxarc benchmark``: how fast the environment is on this machine, and how fast agents learn in it."""

import json
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import jax
import typer
from rich.console import Console
from rich.table import Table

from jaxarc.benchmarks.core import DEFAULT_SIZES, core_rows
from jaxarc.benchmarks.measure import (
    Row,
    RowResult,
    UnknownRowError,
    choose_rows,
    describe_machine,
    measure_rows,
    pinned_to_cores,
    versions,
)
from jaxarc.benchmarks.suite import QUICK, THOROUGH
from jaxarc.benchmarks.training import DEFAULT_TRAINING_SIZES, training_rows
from jaxarc.cli.console import LiveLine
from jaxarc.cli.settings import read_experiment
from jaxarc.files import write_whole

app = typer.Typer(help="Measure how fast the environment is, and how fast agents learn in it.", no_args_is_help=True)

_LADDER: Final = ("ladder_l1", "ladder_l2")
_LARGEST_SIZE: Final = 2**20
_WIDTH_FOR_WORDS: Final = 120  # columns of the terminal
_VERDICTS: Final = {None: "", True: "[green]yes[/]", False: "[red]no[/]"}


_Rows = Annotated[str, typer.Option(help="Ids of the rows to measure, with commas; all by default.")]
_Quick = Annotated[bool, typer.Option("--quick", help="Take few steps: shows that it works, not how fast.")]
_Cores = Annotated[int, typer.Option(min=1, help="Processor cores to use, where the system lets us choose.")]
_OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="File to write the results to, as JSON.", dir_okay=False)
]


@app.command()
def core(
    rows: _Rows = "",
    sizes: Annotated[
        str, typer.Option(help=f"Batch sizes of the rows steps-bbox-SIZE, with commas, up to {_LARGEST_SIZE:,}.")
    ] = ",".join(map(str, DEFAULT_SIZES)),
    quick: _Quick = False,
    cores: _Cores = 1,
    output: _OutputOption = None,
) -> None:
    """Measure steps per second, each family of operations, resets, memory and start-up time with a random policy.

    The targets are for one processor core; elsewhere the table has none.

    Examples:
        jaxarc benchmark core --quick
        jaxarc benchmark core --rows operations-fill,operations-flood
        jaxarc benchmark core --output core.json
    """
    run_benchmark("core", _choose(rows, core_rows(_parse_sizes(sizes))), quick, cores, output)


@app.command()
def training(
    experiments: Annotated[
        str, typer.Option(help="Names of experiments, with commas; 'jaxarc train --help' lists them.")
    ] = ",".join(_LADDER),
    rows: _Rows = "",
    sizes: Annotated[
        str, typer.Option(help=f"Numbers of environments, with commas, up to {_LARGEST_SIZE:,}.")
    ] = ",".join(map(str, DEFAULT_TRAINING_SIZES)),
    quick: _Quick = False,
    cores: _Cores = 1,
    output: _OutputOption = None,
) -> None:
    """Measure steps per second with learning and without, and where the time goes.

    An experiment on canvases of several sizes is measured on one canvas, too.

    Examples:
        jaxarc benchmark training --experiments ladder_l1 --sizes 256
    """
    names = [name.strip() for name in experiments.split(",")]
    chosen = {}
    for name in names:
        chosen[name] = experiment = read_experiment([f"experiment={name}"])
        if experiment.task.canvases:
            chosen[f"{name}-one-canvas"] = experiment.replace(task=experiment.task.replace(canvases=()))
    run_benchmark("training", _choose(rows, training_rows(chosen, _parse_sizes(sizes))), quick, cores, output)


def run_benchmark(
    name: str, chosen: Sequence[Row], quick: bool, cores: int, json_file: Path | None, target_cores: int = 1
) -> None:
    """Measure rows, print them as a table and write them to a file."""
    budget = QUICK if quick else THOROUGH
    console = Console()
    with ExitStack() as stack:
        try:
            used = stack.enter_context(pinned_to_cores(cores))
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--cores") from error
        has_targets = used == target_cores and jax.default_backend() == "cpu"
        live = stack.enter_context(closing(LiveLine(Console(stderr=True))))
        show = lambda done, total, what: live.show("sample", done, [what], total)
        results = measure_rows(chosen, budget, show, has_targets)
        machine = describe_machine(used)
    console.print(_table(name, results, machine, console.width))
    if json_file is not None:
        report = {
            "benchmark": name,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "hardware": machine,
            "versions": versions(),
            "quick": quick,
            "rows": [result.as_json() for result in results],
        }
        write_whole(json_file, (json.dumps(report, indent=1) + "\n").encode())


def _parse_sizes(text: str) -> list[int]:
    sizes = [part.strip() for part in text.split(",")]
    for size in sizes:
        if not size.isdecimal() or not 1 <= int(size) <= _LARGEST_SIZE:
            raise typer.BadParameter(
                f"{size!r} is no batch size; write numbers in 1..{_LARGEST_SIZE} with commas, such as 1024,65536",
                param_hint="--sizes",
            )
    return list(dict.fromkeys(map(int, sizes)))


def _choose(text: str, rows: Sequence[Row]) -> tuple[Row, ...]:
    try:
        return choose_rows(rows, [part.strip() for part in text.split(",") if part.strip()])
    except UnknownRowError as error:
        raise typer.BadParameter(str(error), param_hint="--rows") from error


def _table(name: str, results: Sequence[RowResult], machine: str, width: int) -> Table:
    table = Table(title=f"jaxarc benchmark {name}", caption=machine)
    table.add_column("row", overflow="fold")
    if width >= _WIDTH_FOR_WORDS:
        table.add_column("what")
    for name in ("median", "min – max", "target"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("met")
    for result in results:
        row = result.row
        target = result.row.target if result.has_target else None
        what = [row.what] if width >= _WIDTH_FOR_WORDS else []
        spread = "" if row.is_exact else f"{_number(min(result.samples))} – {_number(max(result.samples))}"
        bound = "" if target is None else f"{'<=' if row.less_is_better else '>='} {_number(target)}"
        table.add_row(row.row_id, *what, f"{_number(result.value)} {row.unit}", spread, bound, _VERDICTS[result.is_met])
    return table


def _number(value: float) -> str:
    """Show three digits or so: 2.13 M, 2,744, 38.1, 0.004."""
    if value >= 1e6:
        return f"{value / 1e6:,.2f} M"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
