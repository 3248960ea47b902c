"""``jaxarc traces import``: lines of JSON, and what people did in the O2ARC editor."""

from collections.abc import Iterable, Set
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console
from rich.table import Table

from jaxarc.cli.console import DatasetArgument, escape, number_table, print_line
from jaxarc.cli.trace_options import CacheOption, Played, solved_in_environment, solved_pair
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.experts import ExpertError, Pair
from jaxarc.tasks import UnknownTaskError
from jaxarc.tasks.raw_task import UnknownAnswerError
from jaxarc.traces import Trace, TraceCache, WorkUnit, pairs_by_id
from jaxarc.traces.minari_sets import PREFIX, read_minari
from jaxarc.traces.sessions import HumanTraces, SessionVerdict, convert_sessions, read_human_sessions
from jaxarc.traces.trace_files import PairFinder, TraceFileError, TraceLine, read_trace_lines
from jaxarc.traces.units import checked_trace

_SHOWN: Final = 20  # rejected ones
_UNSOLVED: Final = "the environment says that it is not solved"
_ORDER: Final = ("exact", "rewritten", "rejected")


_Candidate: TypeAlias = tuple[str, Pair, Trace]  # name of a line or session, and what the environment is to check
_Rejected: TypeAlias = tuple[str, str]  # name and reason


def import_traces(
    file: Annotated[
        Path,
        typer.Argument(
            help="*.jsonl or minari:ID of traces export, *.csv of ARCTraj, *.json or a folder of Mini-ARC traces."
        ),
    ],
    dataset: DatasetArgument,
    cache: CacheOption = None,
) -> None:
    """Import traces and keep those that solve their pair when they are replayed in the environment.

    A trace in the cache stays unless the imported one of the same pair and spec is shorter.

    Sessions of people become traces by the expert "human" in the format mask; of several on one pair the shortest is
    kept. Each session has a verdict: exact, every step is the action of the same name; rewritten, some steps are
    written as fills, because no single action does the same; rejected, with the reason. The exit code is 1 if nothing
    could be imported, or a line of a *.jsonl file could not.

    Examples:
        jaxarc traces import traces.jsonl arc-agi-1/training
        jaxarc traces import ARCTraj.csv arc-agi-1/training
    """
    tasks = load_tasks(dataset)
    console = Console()
    of_minari = str(file).startswith(PREFIX)
    is_ours = file.suffix.lower() == ".jsonl" or of_minari
    people = None if is_ours else convert_sessions(read_human_sessions(file), tasks)
    lines = read_minari(str(file).removeprefix(PREFIX)) if of_minari else read_trace_lines(file)
    candidates, rejected = _read_lines(lines, tasks) if people is None else _of_people(people, tasks)
    played: list[Played] = [(pair, trace.actions, trace.spec.action_format) for _, pair, trace in candidates]
    checked = list(zip(candidates, solved_in_environment(played), strict=True))
    refused = {name for (name, *_), is_solved in checked if not is_solved}
    rejected += [(name, _UNSOLVED) for (name, *_), is_solved in checked if not is_solved]
    solved = [trace for (*_, trace), is_solved in checked if is_solved]
    kept = TraceCache(cache).put_shorter(solved)
    num_known = len({trace.unit_hash for trace in solved}) - kept
    of_sessions = "" if people is None else f" of {len(people.verdicts):,} sessions"
    print_line(console, f"{kept:,} traces imported, {len(rejected):,} rejected{of_sessions}")
    if num_known:
        print_line(console, f"{num_known:,} are no shorter than those in the cache, which stay")
    if people is not None:
        console.print(_verdict_table(people, refused))
    if rejected:
        table = number_table("rejected", "because", num_words=2)
        for name, reason in rejected[:_SHOWN]:
            table.add_row(escape(name), escape(reason))
        console.print(table)
        if len(rejected) > _SHOWN:
            print_line(console, f"and {len(rejected) - _SHOWN:,} more")
    if not (kept or num_known) or (is_ours and rejected):
        raise typer.Exit(1)


def _read_lines(
    lines: Iterable[TraceLine | TraceFileError], tasks: TaskSet
) -> tuple[list[_Candidate], list[_Rejected]]:
    candidates, rejected = [], []
    finder = PairFinder(tasks)
    for line in lines:
        if isinstance(line, TraceFileError):
            where, _, reason = str(line).partition(": ")
            rejected.append((where, reason))
            continue
        try:
            pair = solved_pair(line, tasks, finder)
            candidates.append((line.where, pair, checked_trace(WorkUnit(pair, line.spec), line.actions)))
        except (ExpertError, UnknownAnswerError, UnknownTaskError) as error:
            rejected.append((line.where, str(error)))
    return candidates, rejected


def _of_people(people: HumanTraces, tasks: TaskSet) -> tuple[list[_Candidate], list[_Rejected]]:
    pairs = pairs_by_id(tasks)
    candidates = [
        (one.name, pairs[one.pair_id], one.trace)
        for one in people.verdicts
        if one.pair_id is not None and one.trace is not None
    ]
    return candidates, [(f"{one.name} {one.task_id}".strip(), one.reason) for one in people.rejected]


def _verdict_table(people: HumanTraces, refused: Set[str]) -> Table:
    """Count the sessions of each verdict, their steps, and of rejected ones the kinds of reasons."""
    table = number_table("verdict", "because", "sessions", "steps", "rewritten", "pairs", num_words=2)
    rows: dict[tuple[str, str], list[SessionVerdict]] = {("exact", ""): [], ("rewritten", ""): []}
    for one in people.verdicts:
        row = ("rejected", _UNSOLVED) if one.name in refused else (one.verdict, one.kind)
        rows.setdefault(row, []).append(one)
    for (verdict, kind), found in sorted(rows.items(), key=lambda row: (_ORDER.index(row[0][0]), -len(row[1]))):
        pairs = {one.pair_id for one in found if one.pair_id is not None}
        counts = (len(found), sum(one.num_steps for one in found), sum(one.num_rewritten for one in found), len(pairs))
        table.add_row(verdict, kind, *(f"{count:,}" for count in counts))
    return table
