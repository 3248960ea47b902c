"""``jaxarc tasks``: list the datasets, draw a task, count what a dataset holds."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jaxarc.render.terminal import render_task
from jaxarc.tasks.catalogue import UnknownDatasetError, dataset_names, load_tasks
from jaxarc.tasks.raw_task import RawTask
from jaxarc.tasks.registry import UnknownTaskError
from jaxarc.tasks.task_set import TaskSet
from jaxarc.tasks.validation import TaskFormatError

app = typer.Typer(help="Look at ARC tasks.", no_args_is_help=True)

_BUCKET = 5  # sides 1..5, 6..10, ..., 26..30
_BAR_WIDTH = 40


@app.command("list")
def list_datasets() -> None:
    """List the datasets that are there without a download."""
    table = Table("dataset", "tasks", "train pairs", "test pairs", "largest grids")
    with _one_line_errors():
        for name in dataset_names():
            tasks = load_tasks(name)
            height, width = tasks.max_grid_shape
            train, test = _pair_counts(tasks)
            table.add_row(name, str(len(tasks)), str(train), str(test), f"{height}x{width}")
    Console().print(table)


@app.command()
def show(
    task_id: Annotated[str, typer.Argument(help="Id of a task, such as 007bbfb7.")],
    dataset: Annotated[
        str | None, typer.Option(help="Name of a dataset or path of a folder; by default every dataset is searched.")
    ] = None,
) -> None:
    """Draw the pairs of a task in the terminal."""
    with _one_line_errors():
        tasks = _find(task_id) if dataset is None else load_tasks(dataset)
        task = tasks.get_task_by_id(task_id)
    Console().print(render_task(task, title=f"{task_id} in {tasks.name}"))


@app.command()
def stats(name: Annotated[str, typer.Argument(help="Name of a dataset or path of a folder.")]) -> None:
    """Count tasks and pairs, and show how large the grids are."""
    with _one_line_errors():
        tasks = load_tasks(name)
    console = Console()
    console.print(_counts_table(tasks))
    console.print(_histogram_table(tasks))


def _counts_table(tasks: TaskSet) -> Table:
    train, test = _pair_counts(tasks)
    height, width = tasks.max_grid_shape
    pairs = [pair for task in tasks for pair in task.pairs]
    cells = sum(grid.size for pair in pairs for grid in pair)
    padded = 2 * len(pairs) * height * width
    table = Table("", "count", title=escape(tasks.name))
    table.add_row("tasks", str(len(tasks)))
    table.add_row("train pairs", f"{train} ({_spread([len(task.train) for task in tasks])} a task)")
    table.add_row("test pairs", f"{test} ({_spread([len(task.test) for task in tasks])} a task)")
    table.add_row("output as large as input", f"{sum(_keeps_shape(task) for task in tasks)} tasks")
    table.add_row("largest grids", f"{height}x{width}")
    table.add_row("buffer", f"{padded / 1e6:.2f} MB, {100 * (1 - cells / padded):.0f} % of it padding")
    return table


def _histogram_table(tasks: TaskSet) -> Table:
    buckets = Counter((max(task.grid_shape) - 1) // _BUCKET for task in tasks)
    table = Table("largest side", "tasks", "", title="Tasks by their largest grid side")
    for bucket in range(max(buckets) + 1):
        count = buckets[bucket]
        bar = "█" * round(_BAR_WIDTH * count / max(buckets.values()))
        table.add_row(f"{bucket * _BUCKET + 1}..{(bucket + 1) * _BUCKET}", str(count), bar)
    return table


def _find(task_id: str) -> TaskSet:
    """Return the first dataset that has the task."""
    loaded = [load_tasks(name) for name in dataset_names()]
    by_id = {task.task_id: task for tasks in loaded for task in tasks}
    TaskSet("every dataset", tuple(by_id.values())).index_of(task_id)  # raises when none has it, naming the nearest ids
    return next(tasks for tasks in loaded if task_id in tasks)


def _pair_counts(tasks: TaskSet) -> tuple[int, int]:
    return sum(len(task.train) for task in tasks), sum(len(task.test) for task in tasks)


def _keeps_shape(task: RawTask) -> bool:
    return all(source.shape == target.shape for source, target in task.pairs)


def _spread(counts: list[int]) -> str:
    return f"{min(counts)}..{max(counts)}"


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn an error that the user can mend into one line and exit code 1."""
    try:
        yield
    except (TaskFormatError, UnknownDatasetError, UnknownTaskError, OSError) as error:
        Console(stderr=True, soft_wrap=True).print(f"[bold red]error:[/] {escape(str(error))}", highlight=False)
        raise typer.Exit(1) from error
