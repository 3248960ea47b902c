"""What ``jaxarc tasks`` prints when something goes wrong that the user can mend."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from jaxarc.datasets.catalogue import UnknownDatasetError
from jaxarc.datasets.selectors import SubsetError
from jaxarc.tasks.raw_task import TaskFormatError
from jaxarc.tasks.registry import UnknownTaskError


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn an error that the user can mend into one line and exit code 1."""
    try:
        yield
    except (TaskFormatError, UnknownDatasetError, UnknownTaskError, SubsetError, OSError) as error:
        message = " ".join(str(error).split())
        Console(stderr=True, soft_wrap=True).print(f"[bold red]error:[/] {escape(message)}", highlight=False)
        raise typer.Exit(1) from error
