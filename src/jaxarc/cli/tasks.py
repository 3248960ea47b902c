"""``jaxarc tasks``: list the datasets, draw a task, count, verify, download, import, remove and export."""

import contextlib
import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxarc.cli import task_files
from jaxarc.cli.console import DatasetArgument, JsonOption, complete_dataset, escape, print_json, split_pair
from jaxarc.cli.picture_files import RENDERERS, ColorsOption, bytes_of, require_kind
from jaxarc.cli.task_checks import count, counts_table, pairs_table, sides_table, verify
from jaxarc.datasets.catalogue import UnknownDatasetError, dataset_names, find_dataset, load_tasks
from jaxarc.datasets.dataset import Dataset, DatasetVersion
from jaxarc.datasets.installed import splits_json
from jaxarc.datasets.published import Erratum, is_concept, known_issues
from jaxarc.datasets.task_set import TaskSet
from jaxarc.errors import visible
from jaxarc.files import write_whole
from jaxarc.render.layout import draw_pairs, task_pairs
from jaxarc.render.palette import PALETTES
from jaxarc.render.terminal import render_task
from jaxarc.tasks.procedural import procedural_names
from jaxarc.tasks.raw_task import RawTask, TaskFormatError
from jaxarc.tasks.registry import UnknownTaskError

app = typer.Typer(
    help="List, draw, count, verify, download, import, remove and export ARC tasks.",
    no_args_is_help=True,
    add_completion=False,
)

_NOT_HERE: Final = "not here"
_WIDTH_FOR_WORDS: Final = 120  # columns of the terminal


@app.command("list")
def list_datasets(as_json: JsonOption = False) -> None:
    """List the datasets by name, and where each comes from.

    A name may be followed by a version and a choice of tasks: arc-agi-1/training@kaggle2019:first 10,max_side=8

    Examples:
        jaxarc tasks list
        jaxarc tasks list --json
    """
    if as_json:
        print_json([_facts(dataset) for dataset in map(find_dataset, dataset_names())])
        return
    console = Console()
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("dataset", no_wrap=True)
    for column in ("tasks", "train", "test", "largest"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("where", no_wrap=True)
    if console.width >= _WIDTH_FOR_WORDS:
        table.add_column("what")
    for dataset in _plain_datasets():
        for row in _rows(dataset):
            table.add_row(*map(escape, row[: len(table.columns)]))
    console.print(table)
    concepts = [name.partition("/")[2] for name in dataset_names() if is_concept(name)]
    rules = [name.partition("/")[2] for name in procedural_names()]
    console.print(f"concept-arc/CONCEPT, ten tasks each: {', '.join(concepts)}", highlight=False)
    console.print(f"procedural/RULE, unlimited tasks: {', '.join(rules)}", highlight=False)
    console.print("Download what is not here: jaxarc tasks download NAME", highlight=False)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Id or title of a task, such as 007bbfb7, or name of a dataset.")],
    dataset: Annotated[
        str | None,
        typer.Option(
            help="Name of a dataset or path of a folder; by default every dataset is searched.",
            autocompletion=complete_dataset,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=f"Draw into this file instead: {', '.join(RENDERERS)}.")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="Only this pair: train/0, test/0, ...", metavar="PAIR")] = None,
    colors: ColorsOption = "arc",
    as_json: JsonOption = False,
) -> None:
    """Draw the pairs of a task in the terminal, or into a file. For a dataset, draw its first task.

    Examples:
        jaxarc tasks show 007bbfb7
        jaxarc tasks show 007bbfb7 --pair test/0 --json
        jaxarc tasks show l6xyz --dataset my_tasks/ -o task.svg
    """
    kind = None if output is None else require_kind(output, *RENDERERS)
    tasks, task_id = find_task(name, dataset)
    raw = tasks.raw_task(task_id)
    only = None if pair is None else _pair_of(raw, pair)
    if as_json:
        pairs = splits_json(raw)
        chosen = pairs if only is None else pairs[only[0]][only[1]]
        print_json(
            {"id": task_id, "dataset": tasks.name, "title": raw.title, "concept": _concept_of(raw, tasks), **chosen}
        )
        return
    name_of_pair = f"{only[0]} {only[1]}" if only is not None else ""
    console = Console()
    title = f"{task_id} in {tasks.name}"
    if output is None or kind is None:
        console.print(render_task(raw, visible(title), name_of_pair))
    else:
        pairs = [named for named in task_pairs(raw) if name_of_pair in ("", named[0])]
        drawing = draw_pairs(RENDERERS[kind], pairs, title, palette=PALETTES[colors])
        write_whole(output, bytes_of(drawing, title))
        console.print(visible(f"{title}: {output}"), highlight=False, markup=False, soft_wrap=True)
    for label, words in (("title", raw.title), ("concept", _concept_of(raw, tasks))):
        if words:
            console.print(Text(visible(f"{label}: {words}")))
    issue = _issues_of(tasks).get(task_id)
    if issue is not None:
        console.print(Text(f"reported: {issue.report} ({issue.source})", style="yellow"))


@app.command()
def stats(name: DatasetArgument, as_json: JsonOption = False) -> None:
    """Count tasks, pairs and colors, and show how large the grids are and how much padding costs.

    Examples:
        jaxarc tasks stats arc-agi-1/training
        jaxarc tasks stats my_tasks/ --json
    """
    tasks = load_tasks(name)
    issues = _issues_of(tasks)
    num_issues = sum(task_id in issues for task_id in tasks.task_ids)
    if as_json:
        print_json(count(tasks, num_issues))
        return
    console = Console()
    console.print(counts_table(tasks, num_issues))
    console.print(sides_table(tasks))
    console.print(pairs_table(tasks))


app.command("verify")(verify)
task_files.register(app)


def _concept_of(task: RawTask, tasks: TaskSet) -> str:
    """Return the concept of a task, unless it is a part of the dataset's name, such as ``training``."""
    return "" if task.concept in tasks.name.partition(" (")[0].split("/") else task.concept


def _plain_datasets() -> Iterator[Dataset]:
    for name in dataset_names():
        if not is_concept(name) and name not in procedural_names():
            yield find_dataset(name)


def _rows(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    """Yield a row for a dataset, and one for each further version of it."""
    where = dataset.where() or _NOT_HERE
    for version in dataset.versions:
        counted = version
        note = version.note or dataset.description
        if version.num_tasks is None and where == "installed":
            try:
                counted = _count(load_tasks(dataset.name))
            except TaskFormatError:
                note = where = "damaged"
        label = f"@{version.name}" if version.name else ""
        if version is dataset.versions[0]:
            yield dataset.name, *_counts(counted), f"{where} {label}", note
        else:
            yield f"  {label}", *_counts(counted), "", note


def _facts(dataset: Dataset) -> dict[str, Any]:
    """Return what the list says of a dataset: counts are None where they are not pinned."""
    counts = ("num_tasks", "num_train", "num_test", "max_grid_shape")
    versions = [{"name": one.name, **{field: getattr(one, field) for field in counts}} for one in dataset.versions]
    return {"name": dataset.name, "where": dataset.where() or None, "versions": versions}


def _count(tasks: TaskSet) -> DatasetVersion:
    train = sum(len(task.train) for task in tasks)
    test = sum(len(task.test) for task in tasks)
    return DatasetVersion("", "", len(tasks), train, test, tasks.max_grid_shape)


def _counts(version: DatasetVersion) -> tuple[str, ...]:
    shape = "" if version.max_grid_shape is None else "{}x{}".format(*version.max_grid_shape)
    counts = (version.num_tasks, version.num_train, version.num_test)
    return (*("" if count is None else str(count) for count in counts), shape)


def find_task(name: str, dataset: str | None) -> tuple[TaskSet, str]:
    """Return a task, by id or title, and the set it was found in; or the first task of a dataset."""
    if dataset is not None:
        tasks = load_tasks(dataset)
        return tasks, _by_title([tasks], name) or tasks.raw_task(name).task_id
    with contextlib.suppress(UnknownDatasetError):
        tasks = load_tasks(name)
        return tasks, tasks.task_ids[0]
    sets = []
    for known in _plain_datasets():
        if known.where():
            sets.append(load_tasks(known.name))
            if name in sets[-1]:
                return sets[-1], name
    for tasks in sets:
        if found := _by_title([tasks], name):
            return tasks, found
    raise UnknownTaskError(_unknown(name, sets))


def _pair_of(task: RawTask, word: str) -> tuple[str, int]:
    """Return the split and the index of a pair that the task has."""
    split, index = split_pair(word)
    count = len(task.train if split == "train" else task.test)
    if index >= count:
        raise typer.BadParameter(
            f"task {task.task_id!r} has {len(task.train)} train and {len(task.test)} test pairs, counted from 0, got "
            f"{word}; correct it",
            param_hint="--pair",
        )
    return split, index


def _by_title(sets: list[TaskSet], title: str) -> str | None:
    wanted = title.casefold()
    return next((task.task_id for tasks in sets for task in tasks if task.title.casefold() == wanted), None)


def _unknown(name: str, sets: list[TaskSet]) -> str:
    spellings = {task.task_id.casefold(): task.task_id for tasks in sets for task in tasks}
    spellings |= {task.title.casefold(): task.title for tasks in sets for task in tasks if task.title}
    spellings |= {known.casefold(): known for known in dataset_names()}
    near = difflib.get_close_matches(name.casefold(), spellings, n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(repr(spellings[one]) for one in near)}?" if near else ""
    return f"no task {name!r} in the {len(sets)} datasets that are here, and no dataset of this name{hint}"


def _issues_of(tasks: TaskSet) -> dict[str, Erratum]:
    """Return what was reported about the version of a dataset that a set of some of its tasks came from."""
    name = tasks.name.partition(" (")[0]
    if name in dataset_names() and (versions := find_dataset(name).version_names):
        name = f"{name}@{versions[0]}"
    return known_issues(name)
