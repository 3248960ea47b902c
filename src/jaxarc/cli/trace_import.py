"""``jaxarc traces import``: lines of JSON, and what people did in the O2ARC editor."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jaxarc.cli.console import DatasetArgument
from jaxarc.cli.trace_options import CacheOption, find_pair
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.experts import Action, ExpertError, Pair
from jaxarc.experts.traces import ExpertSpec, PairId, Trace, TraceCache, WorkUnit, pairs_by_id
from jaxarc.experts.traces.human_traces import convert_sessions, read_human_sessions
from jaxarc.experts.traces.trace import checked_trace, hash_of
from jaxarc.experts.traces.trace_file import TraceFileError, read_trace_lines
from jaxarc.tasks import UnknownTaskError


class _Imported(NamedTuple):
    traces: dict[tuple[PairId, str], Trace]  # by place and action format
    rejected: list[tuple[str, str]]  # what, and why
    note: str = ""


def import_traces(
    file: Annotated[
        Path,
        typer.Argument(
            help="*.jsonl of jaxarc traces export, *.csv of ARCTraj, *.json or a folder of Mini-ARC traces."
        ),
    ],
    dataset: DatasetArgument,
    cache: CacheOption = None,
) -> None:
    """Import traces and keep those that solve their pair when they are replayed in the environment.

    A trace in the cache stays unless the imported one of the same pair and spec is shorter.

    Sessions of people become traces by the expert "human" in the format mask. What cannot be imported is listed with
    the reason. The exit code is 1 if nothing could be imported, or a line of a *.jsonl file could not.

    Examples:
        jaxarc traces import traces.jsonl arc-agi-1/training
    """
    from jaxarc.experts.traces.replay import replay

    tasks = load_tasks(dataset)
    console = Console()
    store = TraceCache(cache)
    is_ours = file.suffix == ".jsonl"
    imported = _read_lines(file, tasks) if is_ours else _read_people(file, tasks)
    pairs = pairs_by_id(tasks)
    kept = num_known = 0
    with Console(stderr=True).status("Replaying ..."):
        for form in sorted({form for _, form in imported.traces}):
            chosen = {place: trace for (place, its_form), trace in imported.traces.items() if its_form == form}
            trace_format = next(iter(chosen.values())).spec.action_format
            solved = replay([pairs[place] for place in chosen], [one.actions for one in chosen.values()], trace_format)
            for (place, trace), is_solved in zip(chosen.items(), solved, strict=True):
                if is_solved:
                    known = store.get(trace.unit_hash)
                    if known is None or len(trace.actions) < len(known.actions):
                        store.put(trace)
                        kept += 1
                    else:
                        num_known += 1
                else:
                    imported.rejected.append((place.node, "the environment says that it is not solved"))
    console.print(f"{kept:,} traces imported, {len(imported.rejected):,} rejected{imported.note}", highlight=False)
    if num_known:
        console.print(f"{num_known:,} are no shorter than those in the cache, which stay", highlight=False)
    if imported.rejected:
        table = Table("rejected", "because")
        for what, reason in imported.rejected:
            table.add_row(escape(what), escape(reason))
        console.print(table)
    if not (kept or num_known) or (is_ours and imported.rejected):
        raise typer.Exit(1)


def _read_lines(file: Path, tasks: TaskSet) -> _Imported:
    imported = _Imported({}, [])
    for line in read_trace_lines(file):
        if isinstance(line, TraceFileError):
            where, _, reason = str(line).partition(": ")
            imported.rejected.append((where, reason))
            continue
        try:
            trace = _trace(find_pair(tasks.raw_task(line.pair_id.task_id), line.pair_id), line.spec, line.actions)
        except (ExpertError, UnknownTaskError) as error:
            imported.rejected.append((line.where, str(error)))
        else:
            imported.traces[line.pair_id, f"{line.spec}"] = trace
    return imported


def _trace(pair: Pair, spec: ExpertSpec, actions: Sequence[Action]) -> Trace:
    unit = WorkUnit(pair, spec)
    return checked_trace(hash_of(unit.to_json()), unit, actions)


def _read_people(file: Path, tasks: TaskSet) -> _Imported:
    found = convert_sessions(read_human_sessions(file), tasks)
    traces = {(place, "mask"): trace for place, trace in found.traces.items()}
    rejected = [(f"{one.name} {one.task_id}".strip(), one.reason) for one in found.rejected]
    note = (
        f" of {found.num_sessions:,} sessions; {found.num_rewritten:,} of {found.num_steps:,} steps were written as "
        "fills, because no single action does the same"
    )
    return _Imported(traces, rejected, note)
