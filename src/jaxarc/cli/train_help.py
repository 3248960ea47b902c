"""The tables of ``jaxarc train --help`` and ``--fields``: groups with their choices, fields with value and meaning.

The meaning of a field is the comment at the end of its line in ``jaxarc.config``.
"""

import inspect
import io
import itertools
import tokenize
import typing
from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from jaxarc.cli.console import escape
from jaxarc.cli.settings import Topics, read_experiment, topics_in, topics_of
from jaxarc.config import CheckedConfig
from jaxarc.config.build import check_known
from jaxarc.config.choices import EXPERIMENT, SURROGATE, choices_of, config_folder

_WIDEST: Final = 120  # columns; wider is hard to read
_ABOUT: Final = """[bold]What can be changed[/]: a field by [cyan]topic.field=value[/], a choice of a topic by \
[cyan]topic=name[/]. [cyan]jaxarc train --fields[/] lists every field, [cyan]jaxarc train --fields TOPIC[/] those of a \
topic."""
_COMMON: Final = (  # what most runs change
    "task.train_dataset",
    "task.max_side",
    "agent.algorithm",
    "agent.num_envs",
    "schedule.learning_rate",
    "training.seed",
    "training.num_seeds",
    "training.total_steps",
    "training.max_seconds",
    "environment.max_episode_steps",
    "action.selection_format",
    "network.hidden_size",
    "logging.run_root",
)


def print_overview() -> None:
    """Print the presets, the topics with their files, and the fields that are changed most."""
    table = _table()
    for group, about in (
        (EXPERIMENT, "a preset that chooses in all topics"),
        (SURROGATE, "a surrogate that is trained in place of an agent"),
    ):
        _add_group(table, group, about)
        for name in choices_of(group):
            table.add_row(f"  {name}", "", escape(_purpose(group, name)))
    _add_group(table, "topics", "and their choices")
    topics = _topics()
    for topic in topics:
        table.add_row(f"  {topic}", "", escape(" | ".join(choices_of(topic))))
    _add_group(table, "common fields", "with the values of a run without overrides")
    values = topics_of(read_experiment([]))
    for name in _COMMON:
        topic, _, field = name.partition(".")
        _add_field(table, topics[topic], name, field, values[topic][field])
    _print(table)


def print_fields(topics: Sequence[str]) -> None:
    """Print all fields of some topics, or of all of them, with value, choices and meaning."""
    known = _topics()
    for topic in topics:
        check_known("jaxarc train --fields", topic, list(known))
    values = {**topics_of(read_experiment([f"{SURROGATE}=lookahead"])), **topics_of(read_experiment([]))}
    table = _table()
    for topic, kind in known.items():
        if topics and topic not in topics:
            continue
        _add_group(table, topic, escape(" | ".join(choices_of(topic))))
        for field, value in values[topic].items():
            _add_field(table, kind, field, field, value)
    _print(table)


def comments_of(kind: type[CheckedConfig]) -> dict[str, str]:
    """Return the comment beside each field of a config that has one."""
    comments = {}
    for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(kind)).readline):
        field = token.line.strip().partition(":")[0]
        if token.type == tokenize.COMMENT and field in kind.__dataclass_fields__:
            comments[field] = token.string.removeprefix("#").strip()
    return comments


def _topics() -> Topics:
    return {**topics_in(EXPERIMENT), **topics_in(SURROGATE)}


def _table() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(max_width=24)
    table.add_column(style="dim")
    return table


def _print(table: Table) -> None:
    console = Console(highlight=False)
    console.width = min(console.width, _WIDEST)
    console.print(_ABOUT)
    console.print(table)


def _add_field(table: Table, kind: type[CheckedConfig], label: str, field: str, value: Any) -> None:
    """Add a field with its value, and with its choices in front of its meaning."""
    hint = typing.get_type_hints(kind)[field]
    choices = " | ".join(map(str, typing.get_args(hint))) if typing.get_origin(hint) is typing.Literal else ""
    parts = [part for part in (choices, comments_of(kind).get(field, "")) if part]
    table.add_row(f"  {label}", escape(_spell(value)), escape(". ".join(parts)))


def _add_group(table: Table, group: str, about: str) -> None:
    table.add_row("")
    table.add_row(f"[bold]{group}[/]", "", f"[cyan not dim]{about}[/]")


def _purpose(group: str, preset: str) -> str:
    """Return the comment at the head of a preset, below the line for programs that compose the presets by Hydra."""
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
