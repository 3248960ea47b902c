"""``jaxarc traces record``."""

import time
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from jaxarc.cli.console import DatasetArgument, QuietOption, escape, number_table, progress_bar
from jaxarc.cli.processes import GracefulStop
from jaxarc.cli.trace_options import (
    DEFAULT_EXPERT,
    DEFAULT_FORMAT,
    CacheOption,
    ExpertOption,
    FormatOption,
    PairsOption,
    action_format_of,
    load_expert,
    pairs_of,
)
from jaxarc.datasets import load_tasks
from jaxarc.experts.traces import BatchExpert, Recording, TraceCache, record_traces
from jaxarc.experts.traces.recording import CHUNK_SIZE
from jaxarc.parallel import host_cores


def record(
    dataset: DatasetArgument,
    expert: ExpertOption = DEFAULT_EXPERT,
    action_format: FormatOption = DEFAULT_FORMAT,
    strategy: Annotated[
        str | None, typer.Option(hidden=True, help="Without effect: worker processes record all pairs.")
    ] = None,
    pairs: PairsOption = "all",
    time_limit: Annotated[float | None, typer.Option(min=0.01, help="Seconds for one pair.")] = None,
    processes: Annotated[
        int | None,
        typer.Option(min=0, help="Worker processes for the expert; 0: none. Default: one per core."),
    ] = None,
    chunk_size: Annotated[int, typer.Option(min=1, help="Pairs processed between interrupt checks.")] = CHUNK_SIZE,
    cache: CacheOption = None,
    quiet: QuietOption = False,
) -> None:
    """Let an expert solve every pair, check each trace by replay, and keep it.

    Recorded pairs are skipped, so after Ctrl-C or a kill the same command continues.

    The exit code is 1 if a pair could not be solved; each such pair is listed with the reason.

    Examples:
        jaxarc traces record arc-agi-1/training
        jaxarc traces record my_tasks/ --expert my_expert:Solver --processes 2
    """
    console = Console(quiet=quiet)
    found = load_expert(expert)
    form = action_format_of(action_format)
    if strategy is not None:
        Console(stderr=True).print("--strategy has no effect any more: worker processes record all pairs; leave it out")
    tasks = load_tasks(dataset)
    choice = pairs_of(pairs)
    if isinstance(found, BatchExpert):
        _require_defaults(expert, time_limit, processes)
    count = 0 if isinstance(found, BatchExpert) else host_cores() if processes is None else processes
    store = TraceCache(cache)
    start = time.perf_counter()
    columns = (MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with (
        GracefulStop("what was recorded is kept") as stop,
        progress_bar("recording", *columns, is_shown=not quiet) as show,
    ):

        def show_and_ask(done: int, total: int) -> bool:
            show(done, total)
            return stop.is_set

        recording = record_traces(
            tasks,
            found,
            form,
            pairs=choice,
            chunk_size=chunk_size,
            cache=store,
            time_limit_s=time_limit,
            processes=count,
            progress=show_and_ask,
        )
    console.print(_summary(recording, time.perf_counter() - start))
    console.print(f"Traces: {escape(str(store.folder))}", highlight=False, soft_wrap=True)
    if recording.failures:
        console.print(_failures(recording))
    if not recording.is_complete:
        console.print("Stopped before the end; the same command goes on from here.", highlight=False)
        raise typer.Exit(130)
    if recording.failures:
        raise typer.Exit(1)


def _require_defaults(expert: str, time_limit: float | None, processes: int | None) -> None:
    for option, is_given in {"--time-limit": time_limit is not None, "--processes": bool(processes)}.items():
        if is_given:
            raise typer.BadParameter(f"{expert} solves whole batches on the device; leave it out", param_hint=option)


def _summary(recording: Recording, seconds: float) -> Table:
    lengths = [len(trace.actions) for trace in recording.traces.values()]
    headers = ("pairs", "equal to others", "from the cache", "recorded", "failed", "mean actions", "most", "seconds")
    table = number_table(*headers, num_words=0)
    counts = (
        len(recording.hash_of_node),
        recording.num_duplicates,
        recording.num_cached,
        recording.num_recorded,
        len(recording.failures),
    )
    mean = f"{sum(lengths) / len(lengths):.1f}" if lengths else "-"
    most = str(max(lengths)) if lengths else "-"
    table.add_row(*(f"{count:,}" for count in counts), mean, most, f"{seconds:.1f}")
    return table


def _failures(recording: Recording) -> Table:
    table = Table("pair", "unit", "error", title=f"{len(recording.failures)} units without a trace", show_lines=True)
    for unit_hash, failure in recording.failures.items():
        nodes = "\n".join(recording.nodes_of(unit_hash))
        table.add_row(escape(nodes), unit_hash[:16], escape(f"{failure.kind}: {failure.message}"))
    return table
