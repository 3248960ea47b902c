"""``jaxarc traces verify FILE``: are the traces of a file solutions?"""

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from jaxarc.datasets import UnknownDatasetError, load_tasks
from jaxarc.experts import Action, ActionFormat, ExpertError, Pair
from jaxarc.experts.host_canvas import check_solution
from jaxarc.experts.traces import pairs_by_id
from jaxarc.experts.traces.trace_file import TraceFileError, TraceLine, read_trace_lines
from jaxarc.tasks import UnknownTaskError


class _Sound(NamedTuple):
    """A line whose actions solve the pair by the rules on the host."""

    where: str
    pair: Pair
    actions: tuple[Action, ...]


def verify_file(file: Path, dataset: str | None, console: Console) -> bool:
    """Replay a file of traces in the environment itself, print what they solve, and return whether it is all.

    Args:
        file: lines of JSON, as :mod:`jaxarc.experts.traces.trace_file` says.
        dataset: of the lines that name none.
        console: where to print.

    Raises:
        OSError, TraceFileError: the file cannot be read.
    """
    from jaxarc.experts.traces.replay import replay

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
        console.print(reason, highlight=False, markup=False, soft_wrap=True)
    return num_solved > 0 and not wrong


def _pair_of(line: TraceLine, dataset: str | None) -> Pair:
    if dataset is None:
        raise ExpertError("the line names no dataset; add --dataset NAME")
    tasks, place = load_tasks(dataset), line.pair_id
    pairs = pairs_by_id(tasks.select(ids=[place.task_id]))
    if place not in pairs:
        raise ExpertError(f"{dataset!r} has no pair {place.node}; correct the line")
    return pairs[place]


def _counts(num_solved: int, num_wrong: int) -> Table:
    table = Table("traces", "solved", "not solved")
    for column in table.columns:
        column.justify = "right"
    table.add_row(f"{num_solved + num_wrong:,}", f"{num_solved:,}", f"{num_wrong:,}")
    return table
