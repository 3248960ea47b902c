"""``jaxarc tasks``: list the datasets, draw a task, count, verify, download, import, generate, remove and export."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.text import Text

from jaxarc.cli import rule_sets, task_files
from jaxarc.cli.console import (
    DatasetArgument,
    DatasetOption,
    JsonOption,
    escape,
    number_table,
    pair_of,
    print_json,
    print_line,
)
from jaxarc.cli.picture_files import RENDERERS, ColorsOption, bytes_of, require_kind
from jaxarc.constants import MAX_GRID_SIZE, NUM_COLORS
from jaxarc.datasets.catalogue import dataset_names, find_dataset, find_task, load_tasks
from jaxarc.datasets.installed import splits_json
from jaxarc.datasets.json_files import find_problems
from jaxarc.datasets.published import Dataset, find_mismatches
from jaxarc.datasets.selectors import keeps_shape
from jaxarc.datasets.task_set import TaskSet
from jaxarc.errors import visible
from jaxarc.files import write_whole
from jaxarc.render.layout import draw_pairs, task_pairs
from jaxarc.render.palette import PALETTES
from jaxarc.render.terminal import render_task
from jaxarc.tasks.procedural import procedural_names
from jaxarc.tasks.raw_task import RawTask, TaskFormatError

app = typer.Typer(
    help="List, draw, count, verify, download, import, remove and export ARC tasks.",
    no_args_is_help=True,
    add_completion=False,
)

_COUNTS: Final = ("num_tasks", "num_train", "num_test", "max_grid_shape")
_WIDTH_FOR_WORDS: Final = 120  # columns of the terminal
_SHOWN_PROBLEMS: Final = 100


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
    words = ("where", "what") if console.width >= _WIDTH_FOR_WORDS else ("where",)
    table = number_table(
        *("dataset", "tasks", "train", "test", "largest", *words), box=SIMPLE_HEAD, padding=(0, 1), show_edge=False
    )
    for column in table.columns[-len(words) :]:
        column.justify = "left"
    for dataset in _stored_datasets():
        for row in _rows(dataset):
            table.add_row(*map(escape, row[: len(table.columns)]))
    console.print(table)
    rules = [name.partition("/")[2] for name in procedural_names()]
    console.print(f"procedural/RULE, unlimited tasks: {', '.join(rules)}", highlight=False)
    console.print("Download what is not here: jaxarc tasks download NAME", highlight=False)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Id or title of a task, such as 007bbfb7, or name of a dataset.")],
    dataset: DatasetOption = None,
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
    tasks, _, task_id = find_task(name, dataset)
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


@app.command()
def stats(name: DatasetArgument, as_json: JsonOption = False) -> None:
    """Count tasks, pairs and colors, and show how large the grids are and how much padding costs.

    Examples:
        jaxarc tasks stats arc-agi-1/training
        jaxarc tasks stats my_tasks/ --json
    """
    tasks = load_tasks(name)
    train, test, drawn = ([len(getattr(task, pairs)) for task in tasks] for pairs in ("train", "test", "all_pairs"))
    colors = [np.unique(np.concatenate([grid.ravel() for _, grid in task.named_grids()])) for task in tasks]
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
        "max_grid_shape": tasks.max_grid_shape,
        "largest_sides": {task.task_id: max(task.grid_shape) for task in tasks},
    }
    if as_json:
        print_json(counts)
        return
    height, width = tasks.max_grid_shape
    spread = lambda counts: f"{min(counts)}..{max(counts)} a task"
    same_shape = counts["num_same_shape"]
    table = number_table("", "count", num_words=2, title=escape(tasks.name))
    table.add_row("tasks", str(len(tasks)))
    table.add_row("train pairs", f"{sum(train)} ({spread(train)})")
    table.add_row("test pairs", f"{sum(test)} ({spread(test)})")
    if tasks.has_pools:
        table.add_row("pairs to draw from", f"{sum(drawn)} ({spread(drawn)})")
    table.add_row("answers", "known" if tasks.has_answers else "unknown")
    table.add_row("output as large as input", f"{same_shape} tasks ({100 * same_shape / len(tasks):.0f} %)")
    table.add_row("colors", f"{len(counts['colors'])} of {NUM_COLORS} ({spread(list(map(len, colors)))})")
    table.add_row("concepts", str(len(counts["concepts"])))
    table.add_row("largest grids", f"{height}x{width}")
    for side in dict.fromkeys([(height, width), (MAX_GRID_SIZE, MAX_GRID_SIZE)]):
        table.add_row("buffer at {}x{}".format(*side), _buffer(tasks, *side))
    Console().print(table)


@app.command()
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
    chosen = [name] if name is not None else [one for dataset in _stored_datasets() for one in _versions_here(dataset)]
    table = number_table("verified", "tasks", "compared with pinned", "problems", num_words=4)
    problems: list[tuple[str, str]] = []
    with Console(stderr=True).status("Verifying ..."):
        for one in chosen:
            tasks, checked, found = _verify(one)
            count = "-" if tasks is None else str(len(tasks)) + ("" if tasks.has_answers else ", answers unknown")
            table.add_row(escape(one), count, checked, f"[red]{len(found)}[/]" if found else "[green]none[/]")
            problems += found
    console = Console()
    console.print(table)
    if problems:
        table = number_table("task", "problem", num_words=2, title=f"{len(problems)} problems", show_lines=True)
        for task_id, message in problems[:_SHOWN_PROBLEMS]:
            table.add_row(escape(task_id or "-"), escape(message))
        console.print(table)
        raise typer.Exit(1)


app.command("download")(task_files.download)
app.command("import")(task_files.import_tasks)
app.command("remove")(task_files.remove)
app.command("export")(task_files.export)
app.add_typer(rule_sets.app, name="generate")


def _buffer(tasks: TaskSet, height: int, width: int) -> str:
    pairs = [pair for task in tasks for pair in task.all_pairs]
    padded = 2 * len(pairs) * height * width
    cells = sum(grid.size for pair in pairs for grid in pair)
    return f"{padded / 1e6:.2f} MB, {100 * (1 - cells / padded):.0f} % of it padding"


def _stored_datasets() -> Iterator[Dataset]:
    """Yield every dataset but those that rules make."""
    return (find_dataset(name) for name in dataset_names() if name not in procedural_names())


def _versions_here(dataset: Dataset) -> list[str]:
    if not dataset.where():
        return []
    return [f"{dataset.name}@{version}" for version in dataset.version_names] or [dataset.name]


def _verify(name: str) -> tuple[TaskSet | None, str, list[tuple[str, str]]]:
    """Return the tasks of a dataset or path, what of them is pinned, and each problem with the id of its task."""
    base, _, version = name.partition("@")
    if name not in dataset_names() and Path(name).exists():
        problems = [(problem.task_id, problem.message) for problem in find_problems(name)]
        return None if problems else load_tasks(name), "nothing", problems
    try:
        tasks = load_tasks(name, cache=False)
    except TaskFormatError as error:
        return None, "nothing", [("", str(error))]
    pinned = find_dataset(base).version(version or None)
    pins = {"counts": pinned.num_tasks is not None, "digest": bool(pinned.digest)}
    checked = " and ".join(what for what, is_pinned in pins.items() if is_pinned) or "nothing"
    return tasks, checked, [("", message) for message in find_mismatches(pinned, tasks)]


def _concept_of(task: RawTask, tasks: TaskSet) -> str:
    """Return the concept of a task, unless it is a part of the dataset's name, such as ``training``."""
    return "" if task.concept in tasks.name.partition(" (")[0].split("/") else task.concept


def _rows(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    """Yield a row for a dataset, and one for each further version of it."""
    where = dataset.where() or "not here"
    for number, version in enumerate(dataset.versions):
        note = version.note or dataset.description
        counts = [getattr(version, field) for field in _COUNTS]
        if version.num_tasks is None and where == "installed":
            try:
                tasks = load_tasks(dataset.name)
            except TaskFormatError:
                note = where = "damaged"
            else:
                counts = [len(tasks), *tasks.num_pairs, tasks.max_grid_shape]
        spelled = ["" if count is None else str(count) for count in counts[:-1]]
        spelled.append("" if counts[-1] is None else "{}x{}".format(*counts[-1]))
        label = f"@{version.name}" if version.name else ""
        yield (f"  {label}", *spelled, "", note) if number else (dataset.name, *spelled, f"{where} {label}", note)


def _facts(dataset: Dataset) -> dict[str, Any]:
    """Return what the list says of a dataset: counts are None where they are not pinned."""
    versions = [{"name": one.name, **{field: getattr(one, field) for field in _COUNTS}} for one in dataset.versions]
    return {"name": dataset.name, "where": dataset.where() or None, "versions": versions}
