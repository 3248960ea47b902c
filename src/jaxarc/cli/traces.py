"""``jaxarc traces``: list, verify, draw and export what experts did."""

from collections import defaultdict
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxarc import constants as c
from jaxarc.cli.console import DatasetArgument, escape, number_table
from jaxarc.cli.trace_import import import_traces
from jaxarc.cli.trace_options import (
    DEFAULT_EXPERT,
    DEFAULT_FORMAT,
    CacheOption,
    ExpertOption,
    FormatOption,
    PairsOption,
    find_expert_spec,
    find_pair,
    pair_id_of,
    pairs_of,
)
from jaxarc.cli.trace_recording import record
from jaxarc.datasets import TaskSet, UnknownDatasetError, load_tasks
from jaxarc.datasets.task_search import lasting_name
from jaxarc.errors import visible
from jaxarc.experts import Action, ActionFormat, ExpertError, Pair
from jaxarc.experts.host_canvas import HostCanvas, check_solution
from jaxarc.render.actions import describe_action
from jaxarc.render.terminal import render_grid
from jaxarc.tasks import UnknownTaskError
from jaxarc.traces import ExpertSpec, PairId, Trace, TraceCache, WorkUnit, pairs_by_id
from jaxarc.traces.files import TraceFileError, TraceLine, read_trace_lines, write_trace_file

app = typer.Typer(
    help="Record, verify, draw, export and import what experts do.", no_args_is_help=True, add_completion=False
)
app.command("record")(record)
app.command("import")(import_traces)

_SHOWN = 20  # pairs of a list


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
    table = Table("expert", "version", "settings", "format", "canvas", "traces", "mean actions", "most")
    for spec, found in sorted(lengths.items()):
        canvas = "{}x{}".format(*spec.canvas)
        mean = f"{np.mean(found):.1f}"
        row = (escape(spec.expert), str(spec.version), escape(spec.settings), spec.action_format, canvas)
        table.add_row(*row, f"{len(found):,}", mean, str(max(found)))
    console = Console()
    console.print(table)
    console.print(f"{store.num_bytes / 2**20:.1f} MiB in {escape(str(store.path))}", highlight=False, soft_wrap=True)


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
    if dataset.endswith(".jsonl"):
        if not verify_file(Path(dataset), of_file, Console()):
            raise typer.Exit(1)
        return
    from jaxarc.traces.replay import replay as replay_in_environment

    tasks = load_tasks(dataset)
    spec = find_expert_spec(expert, action_format)
    console = Console()
    wanted = pairs_by_id(tasks, pairs_of(pairs))
    traces = _traces(tasks, pairs, spec, TraceCache(cache))
    with Console(stderr=True).status("Replaying ..."):
        listed = [traces[pair_id].actions for pair_id in traces]
        solved = replay_in_environment([wanted[pair_id] for pair_id in traces], listed, spec.action_format)
    missing = [pair_id.node for pair_id in wanted if pair_id not in traces]
    unsolved = [pair_id.node for pair_id, is_solved in zip(traces, solved, strict=True) if not is_solved]
    table = number_table("expert", "pairs", "traces", "solved", "missing", "not solved")
    counts = (len(wanted), len(traces), int(solved.sum()), len(missing), len(unsolved))
    table.add_row(escape(spec.title), *(f"{count:,}" for count in counts))
    console.print(table)
    for words, nodes in (("no trace of", missing), ("not solved", unsolved)):
        if nodes:
            more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
            console.print(visible(f"{words}: {', '.join(nodes[:_SHOWN])}{more}"), highlight=False, markup=False)
    if missing or unsolved:
        raise typer.Exit(1)


@app.command()
def export(
    dataset: DatasetArgument,
    file: Annotated[Path, typer.Argument(help="File to write, one line of JSON per trace.")],
    expert: ExpertOption = DEFAULT_EXPERT,
    action_format: FormatOption = DEFAULT_FORMAT,
    pairs: PairsOption = "test",
    cache: CacheOption = None,
) -> None:
    """Write recorded traces into a file. jaxarc evaluate reads traces of test pairs as --agent or --expert.

    Examples:
        jaxarc traces export arc-agi-1/training traces.jsonl --pairs all
    """
    spec = find_expert_spec(expert, action_format)
    traces = _traces(load_tasks(dataset), pairs, spec, TraceCache(cache))
    console = Console()
    if not traces:
        console.print(
            visible(f"No trace by {spec.title}; record some with: jaxarc traces record {dataset}"), markup=False
        )
        raise typer.Exit(1)
    write_trace_file(file, traces, {"dataset": lasting_name(dataset)})
    which = "" if pairs == "all" else f" of {pairs} pairs (--pairs all writes every pair's)"
    console.print(visible(f"{len(traces):,} traces{which}: {file}"), highlight=False, markup=False, soft_wrap=True)


def _traces(tasks: TaskSet, pairs: str, spec: ExpertSpec, cache: TraceCache) -> dict[PairId, Trace]:
    found = {}
    for pair_id, pair in pairs_by_id(tasks, pairs_of(pairs)).items():
        if (trace := cache.get(WorkUnit(pair, spec).content_hash)) is not None:
            found[pair_id] = trace
    return found


@app.command()
def replay(
    dataset: DatasetArgument,
    task: Annotated[str, typer.Argument(help="Id of a task.")],
    pair: Annotated[str, typer.Argument(help="train/0, test/0, ...")] = "train/0",
    expert: ExpertOption = DEFAULT_EXPERT,
    action_format: FormatOption = DEFAULT_FORMAT,
    cache: CacheOption = None,
) -> None:
    """Draw a recorded trace: the input, and the grid after each action.

    Examples:
        jaxarc traces replay arc-agi-1/training 007bbfb7 train/0
    """
    tasks = load_tasks(dataset)
    pair_id = pair_id_of(tasks, tasks.raw_task(task).task_id, pair)
    pairs = pairs_by_id(tasks)
    spec = find_expert_spec(expert, action_format)
    trace = TraceCache(cache).get(WorkUnit(pairs[pair_id], spec).content_hash)
    console = Console()
    if trace is None:
        console.print(
            escape(
                f"No trace of {pair_id.node} by {spec.title}; run: jaxarc traces record {dataset} --expert {expert} "
                f"--format {action_format}"
            ),
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(1)
    canvas = HostCanvas(pairs[pair_id].input)
    console.print(Text(visible(f"{pair_id.node} by {spec.title}: {len(trace.actions)} actions"), style="bold"))
    console.print(Text("input"), render_grid(canvas.grid), sep="\n")
    for number, action in enumerate(trace.actions, start=1):
        canvas.apply(action, spec.action_format)
        console.print(Text(f"{number}. {describe_action(action, spec.action_format)}"))
        if action[0] != c.SUBMIT:
            console.print(render_grid(canvas.grid))


class _Sound(NamedTuple):
    """A line whose actions solve the pair by the rules on the host."""

    where: str
    pair: Pair
    actions: tuple[Action, ...]


def verify_file(file: Path, dataset: str | None, console: Console) -> bool:
    """Replay a file of traces in the environment itself, print what they solve, and return whether it is all.

    Args:
        file: lines of JSON, as :mod:`jaxarc.traces.files` says.
        dataset: of the lines that name none.
        console: where to print.

    Raises:
        OSError, TraceFileError: the file cannot be read.
    """
    from jaxarc.traces.replay import replay

    sound: dict[ActionFormat, list[_Sound]] = defaultdict(list)
    wrong: list[str] = []
    for line in read_trace_lines(file):
        if isinstance(line, TraceFileError):
            wrong.append(str(line))
            continue
        try:
            pair = _pair_of(line, line.dataset or dataset)
            check_solution(pair, line.actions, line.spec.action_format)
        except (ExpertError, UnknownDatasetError, UnknownTaskError) as error:
            wrong.append(f"{line.where}: {error}")
        else:
            sound[line.spec.action_format].append(_Sound(line.where, pair, line.actions))
    num_solved = 0
    with Console(stderr=True).status("Replaying ..."):
        for form, lines in sound.items():
            solved = replay([one.pair for one in lines], [one.actions for one in lines], form)
            num_solved += int(solved.sum())
            unsolved = (one.where for one, is_solved in zip(lines, solved, strict=True) if not is_solved)
            wrong += [f"{where}: the environment says that it is not solved" for where in unsolved]
    console.print(_counts(num_solved, len(wrong)))
    for reason in wrong:
        console.print(visible(reason), highlight=False, markup=False, soft_wrap=True)
    return num_solved > 0 and not wrong


def _pair_of(line: TraceLine, dataset: str | None) -> Pair:
    if dataset is None:
        raise ExpertError("the line names no dataset; add --dataset NAME")
    return find_pair(load_tasks(dataset).raw_task(line.pair_id.task_id), line.pair_id)


def _counts(num_solved: int, num_wrong: int) -> Table:
    table = number_table("traces", "solved", "not solved", num_words=0)
    table.add_row(f"{num_solved + num_wrong:,}", f"{num_solved:,}", f"{num_wrong:,}")
    return table
