"""What all commands share: the argument for a dataset, tables, warnings, errors."""

import errno
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer
from rich import markup
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from jaxarc.errors import visible

if TYPE_CHECKING:
    from jaxarc.tasks import RawTask


def complete_dataset(incomplete: str) -> list[str]:
    """Return the names of datasets that a shell completes a word to."""
    from jaxarc.datasets.catalogue import dataset_names  # only a shell that completes waits for it

    return [name for name in dataset_names() if name.startswith(incomplete)]


DatasetArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="Name of a dataset, or path of a file or folder of ARC JSON.",
        metavar="DATASET",
        autocompletion=complete_dataset,
    ),
]
DatasetOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Name of a dataset or path of a folder; by default every dataset is searched.",
        autocompletion=complete_dataset,
    ),
]
QuietOption: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors, no bar and no table.")
]
GameOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="For a run that learned a game of your own: file.py:NAME; the file is run.", metavar="GAME"),
]
NetworkOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="For a run with a network of your own: file.py:NAME or module:NAME; its code is run.", metavar="NETWORK"
    ),
]
RewardOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="For a run with a reward of your own: file.py:NAME or module:NAME; its code is run.", metavar="REWARD"
    ),
]
AgentSeedOption: TypeAlias = Annotated[
    int | None, typer.Option(help="For a run with several seeds: the agent of this seed. Default: the first.")
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Start from a run's config.json, or from what --show printed."),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
DEFAULT_FORMAT: Final = "bbox"  # of actions
DEFAULT_SIDE: Final = 30  # rows and columns of the canvas
_PAIR: Final = re.compile(r"(train|test)/([0-9]{1,4})")
_SHOWN: Final = 20  # names of a list
_SECONDS_BETWEEN_LINES: Final = 2.0  # of a live line, if the output is no terminal
_WIDTH_FOR_A_BAR: Final = 100  # columns of the terminal
_ADVICE: Final = {
    errno.ENOSPC: "free some space there, or name another place",
    errno.EDQUOT: "free some of the space that you may use there, or name another place",
    errno.EROFS: "it can only be read there; name another place",
    errno.EACCES: "change its permissions, or name another place",
    errno.EPERM: "change who may write there, or name another place",
    errno.ENOENT: "correct the name",
    errno.ENOTDIR: "a file is where a folder should be; name another place",
    errno.EEXIST: "remove what is there, or name another place",
    errno.EISDIR: "name a file",
    errno.EIO: "check the disk",
}


def pair_of(task: "RawTask", word: str) -> tuple[str, int]:
    """Return the split and the index that a word such as ``train/0`` names, of a pair that a task has."""
    matched = _PAIR.fullmatch(word)
    if matched is None:
        raise typer.BadParameter(f"a pair is train/0, test/0, ..., got {word!r}", param_hint="PAIR")
    split, index = matched[1], int(matched[2])
    try:
        task.pair(split, index)
    except IndexError as error:
        raise typer.BadParameter(str(error), param_hint="PAIR") from error
    return split, index


def load_own_parts(network: str | None, reward: str | None, game: str | None = None) -> None:
    """Run the code of what a run learned by, as the options name it, so that the names in its config are known."""
    from jaxarc.agents.own_parts import NETWORKS, REWARDS  # a wrong name is answered before what computes is loaded
    from jaxarc.games import load_game

    for name, load in ((network, NETWORKS.load), (reward, REWARDS.load), (game, load_game)):
        if name is not None:
            load(name)


def print_list(console: Console, words: str, names: Sequence[str]) -> None:
    """Print the first names of a list, and how many more there are; nothing where there are none."""
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        console.print(visible(f"{words}: {', '.join(names[:_SHOWN])}{more}"), highlight=False, markup=False)


def print_line(console: Console, text: str) -> None:
    """Print a text as it is, in one line however long it is."""
    console.print(visible(text), highlight=False, markup=False, soft_wrap=True)


def number_table(*headers: str, num_words: int = 1, **options: Any) -> Table:
    """Make a table whose first ``num_words`` columns hold words; the others hold numbers, aligned to the right.

    Where the terminal is too narrow a cell takes several lines, and no name and no number is cut.
    """
    table = Table(*headers, title_justify="left", **options)
    for column in table.columns:
        column.overflow = "fold"
    for column in table.columns[num_words:]:
        column.justify = "right"
    return table


def print_json(content: Any) -> None:
    """Print a result as JSON on stdout, so that a pipe can read it."""
    typer.echo(json.dumps(content, indent=2))


@contextmanager
def progress_bar(
    description: str, *columns: ProgressColumn, total: int | None = None, waiting: str = "", is_shown: bool = True
) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar on stderr if that is a terminal.

    Args:
        description: the unit that is counted.
        columns: shown behind the bar; by default the count and the time.
        total: units in all, if that is known at the start.
        waiting: shown in place of the description until the first unit is done.
        is_shown: False shows no bar, such as in all processes but one.

    Yields:
        A function that takes the number of units that are done, and of all units.
    """
    console = Console(stderr=True)
    shown = columns or (MofNCompleteColumn(), TimeElapsedColumn())
    is_disabled = not (console.is_terminal and is_shown)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), *shown, console=console, transient=True, disable=is_disabled
    ) as progress:
        task = progress.add_task(waiting or description, total=total)

        def show(done: int, of: int | None) -> None:
            progress.update(task, completed=done, total=of, description=description)

        yield show


class LiveLine:
    """One line that is renewed in a terminal; elsewhere plain lines: of the first units, and then every two seconds."""

    def __init__(self, console: Console, total: int | None = None):
        self._console = console
        self._total = total  # of units; None: given with each of them
        self._last_line = 0.0
        columns = [BarColumn(bar_width=16)] if console.width >= _WIDTH_FOR_A_BAR else []
        self._live = Progress(
            TextColumn("{task.description}"),
            *columns,
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._bar = self._live.add_task("compiling ...", total=None)
        self._live.start()
        if self._live.disable:
            console.print("compiling ...", highlight=False)

    def close(self) -> None:
        """Leave the last line as it is."""
        self._live.stop()

    def show(self, unit: str, done: int, parts: Sequence[str], total: int | None = None) -> None:
        """Show how many of all units are done, and further parts."""
        self._total = total or self._total
        line = "  ".join([f"{done}/{self._total}", *parts])
        self._live.update(self._bar, description=line, completed=done, total=self._total)
        now = time.monotonic()
        is_due = now - self._last_line >= _SECONDS_BETWEEN_LINES
        if self._live.disable and (is_due or done in (0, self._total)):
            self._console.print(f"{unit} {line}", highlight=False, soft_wrap=True)
            self._last_line = now if done else 0.0  # the first line after that of 0 does not wait


def escape(text: str) -> str:
    """Return a text that Rich prints in one line as it is: without markup, and without what a terminal obeys."""
    return markup.escape(visible(text))


def warn(message: str) -> None:
    """Print a warning on stderr, in one line."""
    Console(stderr=True, soft_wrap=True).print(f"[bold yellow]warning:[/] {escape(message)}", highlight=False)


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print Python's warnings as those of a command, without the place in the source."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(" ".join(str(message).split()))
        yield


def print_error(error: BaseException | str) -> None:
    """Print an error on stderr, in one line."""
    message = " ".join((error if isinstance(error, str) else message_of(error)).split())
    Console(stderr=True, soft_wrap=True).print(f"[bold red]error:[/] {escape(message)}", highlight=False)


def message_of(error: BaseException) -> str:
    """Return the message of an error; an error of the system names its file, the fault and what to do."""
    if not isinstance(error, OSError) or error.errno is None or error.filename is None:
        return str(error)
    advice = _ADVICE.get(error.errno)
    return f"{visible(str(error.filename))}: {error.strerror}" + (f"; {advice}" if advice else "")
