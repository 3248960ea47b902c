"""What the demonstrations share: time a call, count bytes, print a table."""

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

console = Console()


def seconds_of(call: Callable[[], Any]) -> float:
    """Time one call until its arrays are there: JAX returns before the work is done."""
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def warm_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Time a call after a first one, which compiles: the median of some repeats."""
    jax.block_until_ready(call())
    return statistics.median(seconds_of(call) for _ in range(repeats))


def nbytes(tree: Any) -> int:
    """Bytes of all arrays in a pytree, or of the shapes that ``jax.eval_shape`` returns."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def section(title: str) -> None:
    console.rule(f"[bold]{title}", align="left")


def say(text: str) -> None:
    console.print(text, highlight=False, markup=False)


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)
