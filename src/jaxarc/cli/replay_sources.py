"""The sources of ``jaxarc replay`` that are traces: a file of them, or what is recorded of an expert."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import typer

from jaxarc.agents.updates import make_params
from jaxarc.cli.trace_options import find_expert_spec, find_pair, not_recorded, recorded_traces
from jaxarc.config import JaxArcConfig
from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.evaluation import RecordedAgent
from jaxarc.evaluation.episodes import EpisodeBatch, EpisodeInfo
from jaxarc.experts import Action, ActionFormat
from jaxarc.experts.expert import EXPERTS
from jaxarc.tasks import RawTask
from jaxarc.traces import ExpertSpec, PairId
from jaxarc.traces.trace_files import PairFinder, TraceFileError, read_trace_file

DEFAULT_DATASET: Final = "arc-agi-1/training"
_SIDE: Final = MAX_GRID_SIZE  # of the canvas that traces are recorded on


class Recorded(NamedTuple):
    """The actions of an expert or a person on a pair."""

    task: RawTask
    pair_id: PairId
    spec: ExpertSpec
    actions: tuple[Action, ...]


def recorded_in_file(path: Path, dataset: str | None) -> list[Recorded]:
    """Read traces or recorded actions; they are of ``dataset``, or of what a line says, or of the default one."""
    lines = read_trace_file(path)
    if not lines:
        raise TraceFileError(f"{path} holds no trace; write some with jaxarc traces export")
    names = [dataset or line.dataset or DEFAULT_DATASET for line in lines]
    task_sets = {name: load_tasks(name) for name in dict.fromkeys(names)}
    finders = {name: PairFinder(tasks) for name, tasks in task_sets.items()}
    pair_ids = [finders[name].find(line) for name, line in zip(names, lines, strict=True)]
    return [
        Recorded(task_sets[name].raw_task(pair_id.task_id), pair_id, line.spec, line.actions)
        for name, pair_id, line in zip(names, pair_ids, lines, strict=True)
    ]


def recorded_by_expert(expert: str, dataset: str, action_format: ActionFormat, cache: Path | None) -> list[Recorded]:
    """Take what an expert did on a dataset from the cache of traces."""
    spec = find_expert_spec(expert, action_format)
    tasks = load_tasks(dataset)
    traces = recorded_traces(tasks, spec, cache)
    if not traces and (expert in EXPERTS or ":" in expert):
        raise not_recorded(spec, dataset, dataset, expert)
    if not traces:
        raise typer.BadParameter(
            f"no file or folder {expert!r}, and no expert of this name has a recorded trace of {dataset}; name a "
            f"run folder, a file of traces, or one of {', '.join(EXPERTS)}, human",
            param_hint="SOURCE",
        )
    return [Recorded(tasks.raw_task(one.task_id), one, spec, trace.actions) for one, trace in traces.items()]


def episodes_of(traces: Sequence[Recorded]) -> list[EpisodeBatch]:
    """Play the actions of traces again, those of each action format together."""
    formats = dict.fromkeys(trace.spec.action_format for trace in traces)
    return [_of_format([one for one in traces if one.spec.action_format == form]) for form in formats]


def _of_format(traces: Sequence[Recorded]) -> EpisodeBatch:
    """Make each trace a task of its own, whose only demonstration is its pair: there rewards are known."""
    pairs = [find_pair(trace.task, trace.pair_id) for trace in traces]
    played = [RawTask.of_checked_pairs(str(i), (pair,), (pair,)) for i, pair in enumerate(pairs)]
    tasks = TaskSet("traces", tuple(played), (_SIDE, _SIDE))
    lengths = [len(trace.actions) for trace in traces]
    rules = JaxArcConfig().with_fields(
        selection_format=traces[0].spec.action_format,
        max_grid_height=_SIDE,
        max_grid_width=_SIDE,
        max_episode_steps=max(lengths) + 1,
        invalid_action_policy="noop",
        history_enabled=False,
    )
    infos = [
        EpisodeInfo(
            trace.pair_id.task_id,
            trace.task.train,
            trace.task.title,
            f"{trace.pair_id.split} {trace.pair_id.pair_index}",
            trace.spec.title,
        )
        for trace in traces
    ]
    agent = RecordedAgent.create({(str(i), 0): trace.actions for i, trace in enumerate(traces)}, tasks, rules)
    return EpisodeBatch(agent, make_params(tasks, rules), infos, range(len(traces)), lengths)
