"""What ``jaxarc tasks stats`` counts in a task set."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np
from rich.markup import escape
from rich.table import Table

from jaxarc.constants import MAX_GRID_SIZE, NUM_COLORS
from jaxarc.datasets.selectors import keeps_shape
from jaxarc.datasets.task_set import TaskSet

_BUCKET: Final = 5  # sides 1..5, 6..10, ..., 26..30
_BAR_WIDTH: Final = 30


def counts_table(tasks: TaskSet, num_issues: int) -> Table:
    """Count tasks and pairs, and what a buffer of them takes."""
    train, test = [len(task.train) for task in tasks], [len(task.test) for task in tasks]
    colors = [np.unique(np.concatenate([grid.ravel() for pair in task.pairs for grid in pair])) for task in tasks]
    used = np.unique(np.concatenate(colors))
    same_shape = sum(keeps_shape(task) for task in tasks)
    height, width = tasks.max_grid_shape
    table = Table("", "count", title=escape(tasks.name))
    table.add_row("tasks", str(len(tasks)))
    table.add_row("train pairs", f"{sum(train)} ({_spread(train)} a task)")
    table.add_row("test pairs", f"{sum(test)} ({_spread(test)} a task)")
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
        table.add_row(name, str(count), "█" * round(_BAR_WIDTH * count / most))
    return table


def _buffer(tasks: TaskSet, height: int, width: int) -> str:
    pairs = [pair for task in tasks for pair in task.pairs]
    padded = 2 * len(pairs) * height * width
    cells = sum(grid.size for pair in pairs for grid in pair)
    return f"{padded / 1e6:.2f} MB, {100 * (1 - cells / padded):.0f} % of it padding"


def _spread(counts: list[int]) -> str:
    return f"{min(counts)}..{max(counts)}"
