"""Options that several commands share, and the look-ups of an expert, a spec and a pair."""

import sys
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from jaxarc.cli.console import split_pair
from jaxarc.datasets import TaskSet
from jaxarc.experts import ActionFormat, ExpertError, Pair
from jaxarc.experts.expert import ACTION_FORMATS, EXPERTS, AnyExpert, find_expert
from jaxarc.tasks import RawTask
from jaxarc.tasks.raw_task import require_answer
from jaxarc.traces import ExpertSpec, PairId
from jaxarc.traces.units import PAIR_CHOICES, PairChoice

DEFAULT_EXPERT: Final = "painter"
DEFAULT_FORMAT: Final = "bbox"

ExpertOption = Annotated[
    str, typer.Option(help=f"{', '.join(EXPERTS)}, or module:attribute of your own.", metavar="EXPERT")
]
FormatOption = Annotated[str, typer.Option("--format", help=f"How actions select cells: {', '.join(ACTION_FORMATS)}.")]
PairsOption = Annotated[str, typer.Option(help=f"Which pairs of each task: {', '.join(PAIR_CHOICES)}.")]
CacheOption = Annotated[
    Path | None, typer.Option(help="Folder of the recorded traces. Default: in the user's cache folder.")
]


def action_format_of(word: str) -> ActionFormat:
    """Return an action format, or refuse another word."""
    if word not in ACTION_FORMATS:
        raise typer.BadParameter(f"one of {', '.join(ACTION_FORMATS)}, got {word!r}", param_hint="--format")
    return cast(ActionFormat, word)


def pairs_of(word: str) -> PairChoice:
    """Return a choice of pairs, or refuse another word."""
    if word not in PAIR_CHOICES:
        raise typer.BadParameter(f"one of {', '.join(PAIR_CHOICES)}, got {word!r}", param_hint="--pairs")
    return cast(PairChoice, word)


def load_expert(name: str) -> AnyExpert:
    """Return an expert by name; modules are looked for in the working directory too, behind what is installed."""
    if ":" in name and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    return find_expert(name)


def find_expert_spec(expert: str, action_format: str) -> ExpertSpec:
    """Return the spec of an expert in a format; ``human`` and others that were imported have no settings."""
    if expert in EXPERTS or ":" in expert:
        return ExpertSpec.of(load_expert(expert), action_format_of(action_format))
    return ExpertSpec(expert, 1, "", action_format_of(action_format))


def pair_id_of(tasks: TaskSet, task_id: str, word: str) -> PairId:
    """Return the id of a pair of a task from a word such as ``train/0``.

    Raises:
        typer.BadParameter: the word names no pair of the task.
    """
    pair_id = PairId(task_id, *split_pair(word))
    try:
        find_pair(tasks.raw_task(task_id), pair_id)
    except ExpertError as error:
        raise typer.BadParameter(str(error), param_hint="PAIR") from error
    return pair_id


def find_pair(task: RawTask, pair_id: PairId) -> Pair:
    """Return a pair of a task.

    Raises:
        ExpertError: the task has no such pair; the message lists those it has.
        UnknownAnswerError: its answer is not known.
    """
    pairs = task.train if pair_id.split == "train" else task.test
    if not 0 <= pair_id.pair_index < len(pairs):
        known = [f"train/{index}" for index in range(len(task.train))]
        known += [f"test/{index}" for index in range(len(task.test))]
        raise ExpertError(
            f"task {pair_id.task_id!r} has the pairs {', '.join(known)}, got {pair_id.split}/{pair_id.pair_index}; "
            "correct the pair, or name the dataset that it is of with --dataset"
        )
    where = f"task {pair_id.task_id!r}, {pair_id.split} pair {pair_id.pair_index}"
    return Pair(*require_answer(pairs[pair_id.pair_index], where))
