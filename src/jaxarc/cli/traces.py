"""``jaxarc traces``: list, verify, export and share what experts did."""

import functools
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from jaxarc.cli.console import DEFAULT_FORMAT, DatasetArgument, escape, number_table, print_line, print_list
from jaxarc.cli.trace_import import import_traces
from jaxarc.cli.trace_options import (
    DEFAULT_EXPERT,
    CacheOption,
    ExpertOption,
    FormatOption,
    PairsOption,
    find_expert_spec,
    find_pair,
    not_recorded,
    recorded_traces,
    solved_in_environment,
)
from jaxarc.cli.trace_recording import record
from jaxarc.datasets import UnknownDatasetError, load_tasks
from jaxarc.datasets.catalogue import lasting_name
from jaxarc.experts import ExpertError, Pair
from jaxarc.experts.host_canvas import check_solution
from jaxarc.tasks import UnknownTaskError
from jaxarc.tasks.raw_task import UnknownAnswerError
from jaxarc.traces import ExpertSpec, TraceCache, pairs_by_id
from jaxarc.traces.minari_sets import PREFIX, write_minari
from jaxarc.traces.sharing import pull_traces, push_traces
from jaxarc.traces.trace_files import PairFinder, TraceFileError, TraceLine, read_trace_lines, write_trace_file

app = typer.Typer(
    help="Record, verify, export, import and share what experts do.", no_args_is_help=True, add_completion=False
)
app.command("record")(record)
app.command("import")(import_traces)


@app.command("list")
def list_traces(cache: CacheOption = None) -> None:
    """List what is recorded: by expert and action format.

    Examples:
        jaxarc traces list
    """
    store = TraceCache(cache)
    lengths: dict[ExpertSpec, list[int]] = {}
    for trace in store.traces():
        lengths.setdefault(trace.spec, []).append(len(trace.actions))
    table = number_table(
        "expert", "version", "settings", "format", "canvas", "traces", "mean actions", "most", num_words=8
    )
    for spec, found in sorted(lengths.items()):
        row = (escape(spec.expert), str(spec.version), escape(spec.settings), spec.action_format)
        canvas = "{}x{}".format(*spec.canvas)
        table.add_row(*row, canvas, f"{len(found):,}", f"{np.mean(found):.1f}", str(max(found)))
    console = Console()
    console.print(table)
    print_line(console, f"{store.num_bytes / 2**20:.1f} MiB in {store.path}")


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

    Examples:
        jaxarc traces verify arc-agi-1/training
        jaxarc traces verify plays/NAME.jsonl
    """
    console = Console()
    if dataset.lower().endswith(".jsonl"):
        if not _verify_file(Path(dataset), of_file, console):
            raise typer.Exit(1)
        return
    tasks = load_tasks(dataset)
    spec = find_expert_spec(expert, action_format)
    wanted = pairs_by_id(tasks, pairs)
    traces = recorded_traces(tasks, spec, cache, pairs)
    solved = solved_in_environment([(wanted[one], trace.actions, action_format) for one, trace in traces.items()])
    missing = [pair_id.node for pair_id in wanted if pair_id not in traces]
    unsolved = [pair_id.node for pair_id, is_solved in zip(traces, solved, strict=True) if not is_solved]
    table = number_table("expert", "pairs", "traces", "solved", "missing", "not solved")
    counts = (len(wanted), len(traces), sum(solved), len(missing), len(unsolved))
    table.add_row(escape(spec.title), *(f"{count:,}" for count in counts))
    console.print(table)
    print_list(console, "no trace of", missing)
    print_list(console, "not solved", unsolved)
    if missing or unsolved:
        raise typer.Exit(1)


def _verify_file(file: Path, dataset: str | None, console: Console) -> bool:
    """Replay the lines of a file, print what they solve, and return whether it is all."""
    sound: dict[str, tuple[Pair, TraceLine]] = {}  # where -> what solves its pair by the rules on the host
    wrong: list[str] = []
    finder_of = functools.cache(lambda name: PairFinder(load_tasks(name)))
    for line in read_trace_lines(file):
        if isinstance(line, TraceFileError):
            wrong.append(str(line))
            continue
        try:
            name = line.dataset or dataset
            if name is None:
                raise ExpertError("the line names no dataset; add --dataset NAME")
            pair_id = finder_of(name).find(line)
            pair = find_pair(load_tasks(name).raw_task(pair_id.task_id), pair_id)
            check_solution(pair, line.actions, line.spec.action_format)
        except (ExpertError, UnknownAnswerError, UnknownDatasetError, UnknownTaskError) as error:
            wrong.append(f"{line.where}: {error}")
        else:
            sound[line.where] = pair, line
    solved = solved_in_environment([(pair, line.actions, line.spec.action_format) for pair, line in sound.values()])
    for where, is_solved in zip(sound, solved, strict=True):
        if not is_solved:
            wrong.append(f"{where}: the environment says that it is not solved")
    table = number_table("traces", "solved", "not solved", num_words=0)
    table.add_row(*(f"{count:,}" for count in (sum(solved) + len(wrong), sum(solved), len(wrong))))
    console.print(table)
    for reason in wrong:
        print_line(console, reason)
    return any(solved) and not wrong


@app.command()
def export(
    dataset: DatasetArgument,
    file: Annotated[
        Path,
        typer.Argument(
            help="File to write, one line of JSON per trace; or minari:ID, a data set of Minari.", metavar="FILE"
        ),
    ],
    expert: ExpertOption = DEFAULT_EXPERT,
    action_format: FormatOption = DEFAULT_FORMAT,
    pairs: PairsOption = "test",
    cache: CacheOption = None,
) -> None:
    """Write recorded traces into a file. jaxarc evaluate reads traces of test pairs as --agent.

    Examples:
        jaxarc traces export arc-agi-1/training traces.jsonl --pairs all
        jaxarc traces export arc-agi-1/training minari:jaxarc/painter-v0
    """
    spec = find_expert_spec(expert, action_format)
    tasks = load_tasks(dataset)
    traces = recorded_traces(tasks, spec, cache, pairs)
    if not traces:
        raise not_recorded(spec, dataset, dataset, expert)
    if str(file).startswith(PREFIX):
        write_minari(str(file).removeprefix(PREFIX), traces, pairs_by_id(tasks, pairs), lasting_name(dataset))
    else:
        write_trace_file(file, traces, {"dataset": lasting_name(dataset)})
    which = "" if pairs == "all" else f" of {pairs} pairs (--pairs all writes every pair's)"
    print_line(Console(), f"{len(traces):,} traces{which}: {file}")


PlaceArgument = Annotated[
    str,
    typer.Argument(help="A folder, or an address such as s3://bucket/traces or https://host/traces.", metavar="PLACE"),
]


@app.command()
def push(place: PlaceArgument, cache: CacheOption = None) -> None:
    """Store the recorded traces in a place that others read, as far as it does not have them.

    Examples:
        jaxarc traces push /shared/traces
        jaxarc traces push s3://bucket/traces
    """
    num_new, num_known = push_traces(place, TraceCache(cache))
    print_line(Console(), f"{num_new:,} traces pushed to {place}, which had {num_known:,} already")


@app.command()
def pull(place: PlaceArgument, cache: CacheOption = None) -> None:
    """Get the traces of a place, as if they were recorded here. A trace in the cache stays unless the other is shorter.

    The exit code is 1 if a file of the place is damaged; the others are read.

    Examples:
        jaxarc traces pull /shared/traces
        jaxarc traces pull https://host/traces
    """
    num_new, num_damaged = pull_traces(place, TraceCache(cache))
    print_line(Console(), f"{num_new:,} traces pulled from {place}")
    if num_damaged:
        raise typer.Exit(1)
