"""``jaxarc traces record``."""

import os
import time
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from jaxarc.cli.console import (
    DEFAULT_FORMAT,
    DatasetArgument,
    QuietOption,
    escape,
    number_table,
    print_line,
    progress_bar,
)
from jaxarc.cli.place_options import OnOption, ShardsOption, SlurmOption, place_of
from jaxarc.cli.signals import GracefulStop
from jaxarc.cli.trace_options import (
    DEFAULT_EXPERT,
    CacheOption,
    ExpertOption,
    FormatOption,
    PairsOption,
    load_expert,
)
from jaxarc.datasets import load_tasks
from jaxarc.experts.expert import AnyExpert, releases_gil
from jaxarc.jobs import HERE
from jaxarc.parallel import host_cores, use_host_cores
from jaxarc.traces import Recording, TraceCache, record_traces
from jaxarc.traces.recording import CHUNK_SIZE, Strategy, choose_strategy


def record(
    dataset: DatasetArgument,
    expert: ExpertOption = DEFAULT_EXPERT,
    action_format: FormatOption = DEFAULT_FORMAT,
    strategy: Annotated[
        Strategy | None,
        typer.Option(
            help="How pairs are handed to the expert. Default: pmap, one device per core, for an expert that releases "
            "the GIL; else workers, one process per core.",
        ),
    ] = None,
    pairs: PairsOption = "all",
    time_limit: Annotated[float | None, typer.Option(min=0.01, help="Seconds for one pair, of workers.")] = None,
    processes: Annotated[
        int | None, typer.Option(min=0, help="Number of workers. 0: none, the strategy is sequential.")
    ] = None,
    on: OnOption = "local",
    shards: ShardsOption = None,
    slurm: SlurmOption = None,
    chunk_size: Annotated[int, typer.Option(min=1, help="Pairs processed between interrupt checks.")] = CHUNK_SIZE,
    cache: CacheOption = None,
    quiet: QuietOption = False,
) -> None:
    """Let an expert solve every pair, check each trace by replay, and keep it.

    Recorded pairs are skipped, so after Ctrl-C or a kill the same command continues. All strategies give the same
    traces.

    The exit code is 1 if a pair could not be solved; each such pair is listed with the reason.

    Examples:
        jaxarc traces record arc-agi-1/training
        jaxarc traces record my_tasks/ --expert my_expert:Solver --processes 2
    """
    console = Console(quiet=quiet)
    found = load_expert(expert)
    place = place_of(on, shards, slurm, processes or None)
    chosen = _strategy(found, strategy, time_limit, processes, shards)
    tasks = load_tasks(dataset)
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
            action_format,
            pairs=pairs,
            chunk_size=chunk_size,
            cache=store,
            strategy=chosen,
            time_limit_s=time_limit,
            place=place if place != HERE else None,
            progress=show_and_ask,
        )
    console.print(_summary(recording, time.perf_counter() - start))
    memory, size = (f"{-(-size // 1024):,} KiB" for size in (recording.store_bytes, store.num_bytes))
    print_line(console, f"Strategy {chosen}; store {memory} at most; cache {size}: {store.path}")
    if recording.failures:
        console.print(_failures(recording))
    if not recording.is_complete:
        console.print("Stopped before the end; the same command goes on from here.", highlight=False)
        raise typer.Exit(130)
    if recording.failures:
        raise typer.Exit(1)


def _strategy(
    expert: AnyExpert, wanted: Strategy | None, time_limit: float | None, processes: int | None, shards: int | None
) -> Strategy:
    """Return the strategy that is wanted, or the default one, and make the devices that it needs."""
    if wanted not in (None, "workers"):
        for option, value in (("--time-limit", time_limit), ("--processes", processes), ("--shards", shards)):
            if value:
                raise typer.BadParameter(
                    f"is of the strategy workers, not of {wanted}; leave it out", param_hint=option
                )
    if wanted is not None:
        strategy = wanted
    elif time_limit is not None or processes or shards:
        strategy = "workers"
    elif processes == 0:
        strategy = "sequential"
    else:
        strategy = "pmap" if releases_gil(expert) and host_cores() > 1 else "workers"
    if strategy == "pmap":
        if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
            with suppress(RuntimeError):  # JAX runs already, with the devices that it has
                use_host_cores()
        try:
            choose_strategy(strategy)
        except RuntimeError as error:
            if wanted is None:
                return "workers"
            raise typer.BadParameter(" ".join(str(error).split()), param_hint="--strategy") from error
    return strategy


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
    table = number_table(
        *("pair", "unit", "error"),
        num_words=3,
        title=f"{len(recording.failures)} units without a trace",
        show_lines=True,
    )
    for unit_hash, failure in recording.failures.items():
        nodes = "\n".join(recording.nodes_of(unit_hash))
        table.add_row(escape(nodes), unit_hash[:16], escape(f"{failure.kind}: {failure.message}"))
    return table
