"""The tables of ``jaxarc train --help``: every group with its choices, every field with its value and meaning.

The meaning of a field is the comment at the end of its line in ``jaxarc.config``.
"""

import inspect
import io
import itertools
import tokenize
from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jaxarc.cli.settings import (
    AGENT_RUN,
    SURROGATE_RUN,
    RunKind,
    choices_of,
    config_folder,
    read_any_experiment,
    topics_of,
)
from jaxarc.config import CheckedConfig

_WIDEST: Final = 120  # columns; wider is hard to read
_ABOUT: Final = """[bold]What can be changed[/], with the values of a run without overrides. A field is set by \
[cyan]topic.field=value[/], a file of configs/ chosen by [cyan]topic=file[/]."""


def print_fields() -> None:
    """Print a table of all groups with their choices, and of all fields with value and meaning."""
    console = Console(highlight=False)
    console.width = min(console.width, _WIDEST)
    console.print(_ABOUT)
    console.print(_tables())


def comments_of(kind: type[CheckedConfig]) -> dict[str, str]:
    """Return the comment beside each field of a config that has one."""
    comments = {}
    for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(kind)).readline):
        field = token.line.strip().partition(":")[0]
        if token.type == tokenize.COMMENT and field in kind.__dataclass_fields__:
            comments[field] = token.string.removeprefix("#").strip()
    return comments


def _tables() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(max_width=24)
    table.add_column(style="dim")
    _add_presets(table, AGENT_RUN, "a preset that chooses in all groups below")
    _add_topics(table, AGENT_RUN.topics, topics_of(read_any_experiment([])))
    _add_presets(
        table, SURROGATE_RUN, "a surrogate in place of an agent: of the groups above those it shares, and these"
    )
    values = topics_of(read_any_experiment([f"{SURROGATE_RUN.presets}={choices_of(SURROGATE_RUN.presets)[0]}"]))
    own = {topic: kind for topic, kind in SURROGATE_RUN.topics.items() if topic not in AGENT_RUN.topics}
    _add_topics(table, own, values)
    return table


def _add_presets(table: Table, run_kind: RunKind, about: str) -> None:
    _add_group(table, run_kind.presets, about)
    for name in choices_of(run_kind.presets):
        table.add_row(f"  {name}", "", escape(_purpose(run_kind.presets, name)))


def _add_topics(
    table: Table, topics: Mapping[str, type[CheckedConfig]], values: Mapping[str, Mapping[str, Any]]
) -> None:
    for topic, kind in topics.items():
        _add_group(table, topic, escape(" | ".join(choices_of(topic))))
        comments = comments_of(kind)
        for field, value in values[topic].items():
            table.add_row(f"  {field}", escape(_spell(value)), escape(comments.get(field, "")))


def _add_group(table: Table, group: str, about: str) -> None:
    table.add_row("")
    table.add_row(f"[bold]{group}[/]", "", f"[cyan not dim]{about}[/]")


def _purpose(group: str, preset: str) -> str:
    """Return the comment at the head of a preset, below the line that Hydra reads."""
    lines = (config_folder() / group / f"{preset}.yaml").read_text(encoding="utf-8").splitlines()
    comments = itertools.takewhile(lambda line: line.startswith("#"), lines)
    return " ".join(line.lstrip("# ") for line in comments if "@package" not in line)


def _spell(value: Any) -> str:
    """Write a value as the command line takes it."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_spell, value))}]"
    return str(value)
