"""``jaxarc traces``: record, list, verify, replay, export, import, clean up."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jaxarc.cli.trace_file_verification import verify_file
from jaxarc.cli.trace_import import import_traces
from jaxarc.cli.trace_options import (
    DEFAULT_EXPERT,
    DEFAULT_FORMAT,
    CacheOption,
    DatasetArgument,
    ExpertOption,
    FormatOption,
    PairsOption,
    find_expert_spec,
    lasting_name,
    pairs_of,
)
from jaxarc.cli.trace_recording import record
from jaxarc.cli.trace_replay import replay
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.experts.traces import ExpertSpec, PairId, Trace, TraceCache, WorkUnit, pairs_by_id
from jaxarc.experts.traces.trace import hash_of
from jaxarc.experts.traces.trace_file import write_trace_file

app = typer.Typer(help="Record what experts do, check it, look at it, pass it on.", no_args_is_help=True)
app.command("record")(record)
app.command("replay")(replay)
app.command("import")(import_traces)

_SHOWN = 20  # pairs of a list


@app.command("list")
def list_traces(cache: CacheOption = None) -> None:
    """List what is recorded: by expert and action format."""
    store = TraceCache(cache)
    lengths: dict[ExpertSpec, list[int]] = {}
    for trace in store.traces():
        lengths.setdefault(trace.spec, []).append(len(trace.actions))
    table = Table("expert", "version", "settings", "format", "canvas", "traces", "mean actions", "most")
    for spec, found in sorted(lengths.items()):
        canvas, mean = "{}x{}".format(*spec.canvas), f"{np.mean(found):.1f}"
        row = (escape(spec.expert), str(spec.version), escape(spec.settings), spec.action_format, canvas)
        table.add_row(*row, f"{len(found):,}", mean, str(max(found)))
    console = Console()
    console.print(table)
    size = sum(entry.num_bytes for entry in store.entries())
    console.print(f"{size / 2**20:.1f} MiB in {escape(str(store.folder))}", highlight=False, soft_wrap=True)


@app.command()
def verify(
    dataset: Annotated[
        str, typer.Argument(help="A dataset, whose recorded traces are replayed; or a *.jsonl of traces.")
    ],
    expert: ExpertOption = DEFAULT_EXPERT,
    action_format: FormatOption = DEFAULT_FORMAT,
    pairs: PairsOption = "all",
    cache: CacheOption = None,
    of_file: Annotated[
        str | None, typer.Option("--dataset", help="The dataset of a file's lines that name none.", metavar="NAME")
    ] = None,
) -> None:
    """Replay traces in the environment itself and count what they solve: the recorded ones, or those of a file.

    The exit code is 1 if a pair has no trace, or one that does not solve it.
    """
    if dataset.endswith(".jsonl"):
        if not verify_file(Path(dataset), of_file, Console()):
            raise typer.Exit(1)
        return
    from jaxarc.experts.traces.replay import replay as replay_in_environment

    tasks, spec, console = load_tasks(dataset), find_expert_spec(expert, action_format), Console()
    wanted = pairs_by_id(tasks, pairs_of(pairs))
    traces = _traces(tasks, pairs, spec, TraceCache(cache))
    with Console(stderr=True).status("Replaying ..."):
        listed = [traces[place].actions for place in traces]
        solved = replay_in_environment([wanted[place] for place in traces], listed, spec.action_format)
    missing = [place.node for place in wanted if place not in traces]
    unsolved = [place.node for place, is_solved in zip(traces, solved, strict=True) if not is_solved]
    table = Table("expert", "pairs", "traces", "solved", "missing", "not solved")
    for column in table.columns[1:]:
        column.justify = "right"
    counts = (len(wanted), len(traces), int(solved.sum()), len(missing), len(unsolved))
    table.add_row(escape(spec.title), *(f"{count:,}" for count in counts))
    console.print(table)
    for words, nodes in (("no trace of", missing), ("not solved", unsolved)):
        if nodes:
            more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
            console.print(f"{words}: {', '.join(nodes[:_SHOWN])}{more}", highlight=False, markup=False)
    if missing or unsolved:
        raise typer.Exit(1)


@app.command()
def export(
    dataset: DatasetArgument,
    file: Annotated[Path, typer.Argument(help="File to write, a line of JSON for each trace.")],
    expert: ExpertOption = DEFAULT_EXPERT,
    action_format: FormatOption = DEFAULT_FORMAT,
    pairs: PairsOption = "test",
    cache: CacheOption = None,
) -> None:
    """Write recorded traces into a file; those of test pairs can be given to jaxarc evaluate as --agent or --expert."""
    spec = find_expert_spec(expert, action_format)
    traces = _traces(load_tasks(dataset), pairs, spec, TraceCache(cache))
    console = Console()
    if not traces:
        console.print(f"No trace by {spec.title}; record some with: jaxarc traces record {dataset}", markup=False)
        raise typer.Exit(1)
    write_trace_file(file, traces, {"dataset": lasting_name(dataset)})
    console.print(f"{len(traces):,} traces: {file}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def gc(
    cache: CacheOption = None,
    max_mib: Annotated[float | None, typer.Option(min=0, help="Keep at most so many MiB, the newest in use.")] = None,
) -> None:
    """Remove damaged traces and what killed processes left, and keep within the size limit."""
    store, console = TraceCache(cache), Console()
    removed = store.collect_garbage()
    if max_mib is not None:
        trimmed = store.trim(int(max_mib * 2**20))
        removed = removed._replace(
            num_files=removed.num_files + trimmed.num_files, num_bytes=removed.num_bytes + trimmed.num_bytes
        )
    left = sum(entry.num_bytes for entry in store.entries()) / 2**20
    console.print(
        f"{removed.num_files:,} files removed ({removed.num_bytes / 2**20:.1f} MiB), {left:.1f} MiB left",
        highlight=False,
    )


def _traces(tasks: TaskSet, pairs: str, spec: ExpertSpec, cache: TraceCache) -> dict[PairId, Trace]:
    found = {}
    for place, pair in pairs_by_id(tasks, pairs_of(pairs)).items():
        if (trace := cache.get(hash_of(WorkUnit(pair, spec).to_json()))) is not None:
            found[place] = trace
    return found
