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
from jaxarc.cli.console import JsonOption, complete_dataset, escape, pair_of, print_json, print_line
from jaxarc.cli.picture_files import RENDERERS, ColorsOption, bytes_of, require_kind
from jaxarc.cli.task_checks import issues_of, plain_datasets, stats, verify
from jaxarc.datasets.catalogue import UnknownDatasetError, dataset_names, find_dataset, load_tasks
from jaxarc.datasets.dataset import Dataset
from jaxarc.datasets.installed import splits_json
from jaxarc.datasets.published import is_concept
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
_COUNTS: Final = ("num_tasks", "num_train", "num_test", "max_grid_shape")
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
    for dataset in plain_datasets():
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
    only = None if pair is None else pair_of(raw, pair)
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
        print_line(console, f"{title}: {output}")
    for label, words in (("title", raw.title), ("concept", _concept_of(raw, tasks))):
        if words:
            console.print(Text(visible(f"{label}: {words}")))
    issue = issues_of(tasks).get(task_id)
    if issue is not None:
        console.print(Text(f"reported: {issue.report} ({issue.source})", style="yellow"))


app.command("stats")(stats)
app.command("verify")(verify)
app.command("download")(task_files.download)
app.command("import")(task_files.import_tasks)
app.command("remove")(task_files.remove)
app.command("export")(task_files.export)


def _concept_of(task: RawTask, tasks: TaskSet) -> str:
    """Return the concept of a task, unless it is a part of the dataset's name, such as ``training``."""
    return "" if task.concept in tasks.name.partition(" (")[0].split("/") else task.concept


def _rows(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    """Yield a row for a dataset, and one for each further version of it."""
    where = dataset.where() or _NOT_HERE
    for number, version in enumerate(dataset.versions):
        note = version.note or dataset.description
        counts = [getattr(version, field) for field in _COUNTS]
        if version.num_tasks is None and where == "installed":
            try:
                tasks = load_tasks(dataset.name)
            except TaskFormatError:
                note = where = "damaged"
            else:
                pairs = [
                    sum(len(split) for split in splits)
                    for splits in zip(*((task.train, task.test) for task in tasks), strict=True)
                ]
                counts = [len(tasks), *pairs, tasks.max_grid_shape]
        spelled = ["" if count is None else str(count) for count in counts[:-1]]
        spelled.append("" if counts[-1] is None else "{}x{}".format(*counts[-1]))
        label = f"@{version.name}" if version.name else ""
        yield (f"  {label}", *spelled, "", note) if number else (dataset.name, *spelled, f"{where} {label}", note)


def _facts(dataset: Dataset) -> dict[str, Any]:
    """Return what the list says of a dataset: counts are None where they are not pinned."""
    versions = [{"name": one.name, **{field: getattr(one, field) for field in _COUNTS}} for one in dataset.versions]
    return {"name": dataset.name, "where": dataset.where() or None, "versions": versions}


def find_task(name: str, dataset: str | None) -> tuple[TaskSet, str]:
    """Return a task, by id or title, and the set it was found in; or the first task of a dataset."""
    if dataset is not None:
        tasks = load_tasks(dataset)
        return tasks, _by_title([tasks], name) or tasks.raw_task(name).task_id
    with contextlib.suppress(UnknownDatasetError):
        tasks = load_tasks(name)
        return tasks, tasks.task_ids[0]
    sets = []
    for known in plain_datasets():
        if known.where():
            sets.append(load_tasks(known.name))
            if name in sets[-1]:
                return sets[-1], name
    for tasks in sets:
        if found := _by_title([tasks], name):
            return tasks, found
    raise UnknownTaskError(_unknown(name, sets))


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
