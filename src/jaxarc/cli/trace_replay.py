"""``jaxarc traces replay``: a trace step by step in the terminal."""

import re
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from jaxarc import constants as c
from jaxarc.cli.trace_options import (
    DEFAULT_EXPERT,
    DEFAULT_FORMAT,
    CacheOption,
    DatasetArgument,
    ExpertOption,
    FormatOption,
    find_expert_spec,
)
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.envs.operations import get_operation_name
from jaxarc.experts import Action
from jaxarc.experts.host_canvas import HostCanvas
from jaxarc.experts.traces import PairId, TraceCache, WorkUnit, pairs_by_id
from jaxarc.experts.traces.trace import hash_of
from jaxarc.render.terminal import render_grid

_PLACE = re.compile(r"(train|test)/([0-9]+)")


def replay(
    dataset: DatasetArgument,
    task: Annotated[str, typer.Argument(help="Id of a task.")],
    pair: Annotated[str, typer.Argument(help="train/0, test/0, ...")] = "train/0",
    expert: ExpertOption = DEFAULT_EXPERT,
    action_format: FormatOption = DEFAULT_FORMAT,
    cache: CacheOption = None,
) -> None:
    """Draw a recorded trace: the input, and the grid after each action."""
    tasks = load_tasks(dataset)
    place = place_of_pair(tasks, tasks.raw_task(task).task_id, pair)
    pairs = pairs_by_id(tasks)
    spec = find_expert_spec(expert, action_format)
    trace = TraceCache(cache).get(hash_of(WorkUnit(pairs[place], spec).to_json()))
    console = Console()
    if trace is None:
        console.print(
            f"No trace of {place.node} by {spec.title}; run: jaxarc traces record {dataset} --expert {expert} "
            f"--action-format {action_format}",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(1)
    canvas = HostCanvas(pairs[place].input)
    console.print(Text(f"{place.node} by {spec.title}: {len(trace.actions)} actions", style="bold"))
    console.print(Text("input"), render_grid(canvas.grid), sep="\n")
    for number, action in enumerate(trace.actions, start=1):
        canvas.apply(action, spec.action_format)
        console.print(Text(f"{number}. {_words(action, spec.action_format)}"))
        if action[0] != c.SUBMIT:
            console.print(render_grid(canvas.grid))


def place_of_pair(tasks: TaskSet, task_id: str, pair: str) -> PairId:
    """Find a pair of a task that is there, or refuse a word that names none."""
    matched = _PLACE.fullmatch(pair)
    if matched is None:
        raise typer.BadParameter(f"a pair is train/0, test/0, ..., got {pair!r}", param_hint="PAIR")
    place, pairs = PairId(task_id, matched[1], int(matched[2])), pairs_by_id(tasks)
    if place not in pairs:
        known = ", ".join(f"{one.split}/{one.pair_index}" for one in pairs if one.task_id == task_id)
        raise typer.BadParameter(f"task {task_id!r} has the pairs {known}, got {pair!r}", param_hint="PAIR")
    return place


def _words(action: Action, action_format: str) -> str:
    name, numbers = get_operation_name(action[0]), action[1:]
    if action[0] == c.SUBMIT or not numbers:
        return name
    if action_format == "bbox":
        return "{} rows {}..{}, columns {}..{}".format(name, *(numbers[i] for i in (0, 2, 1, 3)))
    cells = list(zip(numbers[::2], numbers[1::2], strict=True))
    return f"{name} {', '.join(f'({row}, {column})' for row, column in cells)}"
