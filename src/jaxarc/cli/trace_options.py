"""Options of several commands on traces, and how these look up an expert, a pair and a recorded trace."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console

from jaxarc.cli.console import pair_of
from jaxarc.datasets import TaskSet
from jaxarc.experts import Action, ActionFormat, ExpertError, Pair
from jaxarc.experts.expert import EXPERTS, AnyExpert, find_expert
from jaxarc.experts.host_canvas import check_solution
from jaxarc.tasks import RawTask
from jaxarc.tasks.raw_task import require_answer
from jaxarc.traces import ExpertSpec, PairId, Trace, TraceCache, WorkUnit, pairs_by_id
from jaxarc.traces.trace_files import PairFinder, TraceFileError, TraceLine
from jaxarc.traces.units import PairChoice

DEFAULT_EXPERT: Final = "painter"

ExpertOption = Annotated[
    str, typer.Option(help=f"{', '.join(EXPERTS)}, or module:attribute of your own.", metavar="EXPERT")
]
FormatOption = Annotated[ActionFormat, typer.Option("--format", help="How actions select cells.")]
PairsOption = Annotated[PairChoice, typer.Option(help="Which pairs of each task.")]
CacheOption = Annotated[
    Path | None, typer.Option(help="Folder of the recorded traces. Default: in the user's cache folder.")
]

Played: TypeAlias = tuple[Pair, Sequence[Action], ActionFormat]
"""What an expert or a person did on a pair."""


def load_expert(name: str) -> AnyExpert:
    """Return an expert by name; modules are looked for in the working directory too, behind what is installed."""
    if ":" in name and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    return find_expert(name)


def find_expert_spec(expert: str, action_format: ActionFormat) -> ExpertSpec:
    """Return the spec of an expert in a format; ``human`` and others that were imported have no settings."""
    if expert in EXPERTS or ":" in expert:
        return ExpertSpec.of(load_expert(expert), action_format)
    return ExpertSpec(expert, 1, "", action_format)


def pair_id_of(tasks: TaskSet, task_id: str, word: str) -> PairId:
    """Return the id of a pair of a task, whose answer is known, from a word such as ``train/0``."""
    task = tasks.raw_task(task_id)
    pair_id = PairId(task.task_id, *pair_of(task, word))
    find_pair(task, pair_id)
    return pair_id


def find_pair(task: RawTask, pair_id: PairId) -> Pair:
    """Return a pair of a task.

    Raises:
        ExpertError: the task has no such pair; the message says how many there are.
        UnknownAnswerError: its answer is not known.
    """
    try:
        pair = task.pair(pair_id.split, pair_id.pair_index)
    except IndexError as error:
        raise ExpertError(f"{error}, or name the dataset that it is of with --dataset") from error
    return Pair(*require_answer(pair, f"task {pair_id.task_id!r}, {pair_id.split} pair {pair_id.pair_index}"))


def solved_pair(line: TraceLine, tasks: TaskSet, finder: PairFinder) -> Pair:
    """Return the pair of a set that a line solves by the rules on the host.

    A line of another program has no hash of its pair. If it does not solve the pair that it names, the set may number
    the pairs of its task in another order, so the others are tried.

    Raises:
        ExpertError: it does not solve its pair, or the set has no such pair.
        UnknownAnswerError: the answer of its pair is not known.
        UnknownTaskError: the set has no such task.
    """
    pair_id = finder.find(line)
    task = tasks.raw_task(pair_id.task_id)
    try:
        pair = find_pair(task, pair_id)
        check_solution(pair, line.actions, line.spec.action_format)
    except ExpertError:
        for other in () if line.unit else map(Pair._make, (*task.train, *task.test)):
            with suppress(ExpertError):
                check_solution(other, line.actions, line.spec.action_format)
                return other
        raise
    return pair


def recorded_traces(
    tasks: TaskSet, spec: ExpertSpec, cache: Path | None, pairs: PairChoice = "all"
) -> dict[PairId, Trace]:
    """Return what an expert did on a task set, as far as it is recorded."""
    store = TraceCache(cache)
    units = {pair_id: WorkUnit(pair, spec) for pair_id, pair in pairs_by_id(tasks, pairs).items()}
    found = {pair_id: store.get(unit.content_hash) for pair_id, unit in units.items()}
    return {pair_id: trace for pair_id, trace in found.items() if trace is not None}


def not_recorded(spec: ExpertSpec, what: str, dataset: str, expert: str) -> TraceFileError:
    """Return the error of traces that were not recorded."""
    return TraceFileError(
        f"no trace by {spec.title} of {what} is recorded; run: jaxarc traces record {dataset} --expert {expert} "
        f"--format {spec.action_format}"
    )


def solved_in_environment(played: Sequence[Played]) -> list[bool]:
    """Play actions again in the environment itself, those of a format together, and return which solve their pair."""
    from jaxarc.traces.replay import replay  # imports JAX

    solved: dict[int, bool] = {}
    forms: list[ActionFormat] = [form for *_, form in played]
    with Console(stderr=True).status("Replaying ..."):
        for form in dict.fromkeys(forms):
            chosen = [i for i, its_form in enumerate(forms) if its_form == form]
            listed = replay([played[i][0] for i in chosen], [played[i][1] for i in chosen], form)
            solved |= zip(chosen, map(bool, listed), strict=True)
    return [solved[i] for i in range(len(played))]
