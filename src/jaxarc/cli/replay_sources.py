"""The sources of ``jaxarc replay``, traces and runs: each gives an agent and the pairs that it plays."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import typer

from jaxarc.agents.saved_agent import saved_experiment
from jaxarc.cli.players import AgentRequest, load_trained_agent
from jaxarc.cli.trace_options import find_pair
from jaxarc.config import ConfigValidationError, JaxArcConfig, TaskConfig
from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.envs import EnvParams
from jaxarc.evaluation import Agent, EpisodeSpec, RecordedAgent
from jaxarc.evaluation.episodes import EpisodeTrajectory
from jaxarc.evaluation.solve_rate import without_augmentation
from jaxarc.experts import Action, ActionFormat
from jaxarc.render.replay_page import ReplayEpisode, ReplayTask
from jaxarc.runs import RunFolder
from jaxarc.runs.state import WhichCheckpoint
from jaxarc.tasks import RawTask, uniform_weights
from jaxarc.tasks.procedural.names import PREFIX
from jaxarc.traces import ExpertSpec, PairId, TraceCache, WorkUnit, pairs_by_id
from jaxarc.traces.files import TraceFileError, read_trace_file

DEFAULT_DATASET: Final = "arc-agi-1/training"
_SIDE: Final = MAX_GRID_SIZE  # of the canvas that traces are recorded on


class EpisodeInfo(NamedTuple):
    """The pair that an episode plays, and its player, in words for people."""

    task_id: str
    pair: str  # such as "test 0"
    player: str
    demonstrations: tuple[tuple[np.ndarray, np.ndarray], ...]
    title: str = ""


@dataclass(frozen=True)
class EpisodeBatch:
    """Episodes that one agent plays, all by the same rules."""

    agent: Agent
    params: EnvParams
    specs: EpisodeSpec  # arrays [E]
    infos: Sequence[EpisodeInfo]  # E of them
    lengths: Sequence[int] | None = None  # actions of each, where an episode is not played to its end


class Recorded(NamedTuple):
    """The actions of an expert or a person on a pair."""

    task: RawTask
    pair_id: PairId
    spec: ExpertSpec
    actions: tuple[Action, ...]


def traces_of_file(path: Path, dataset: str | None) -> list[Recorded]:
    """Read the traces of a file, or recorded actions.

    Args:
        path: of the file.
        dataset: what they are of; by default what a line says, or else :data:`DEFAULT_DATASET`.

    Raises:
        TraceFileError: a line is wrong, or there is none.
        UnknownTaskError, UnknownDatasetError: a trace is of a task or a data set that is not there.
    """
    lines = read_trace_file(path)
    if not lines:
        raise TraceFileError(f"{path} holds no trace; write some with jaxarc traces export")
    name_of = lambda line: dataset or line.dataset or DEFAULT_DATASET
    task_sets = {name: load_tasks(name) for name in dict.fromkeys(map(name_of, lines))}
    return [
        Recorded(task_sets[name_of(line)].raw_task(line.pair_id.task_id), line.pair_id, line.spec, line.actions)
        for line in lines
    ]


def traces_of_cache(spec: ExpertSpec, tasks: TaskSet, folder: Path | None) -> list[Recorded]:
    """Take what an expert did on a task set from the cache of traces."""
    cache = TraceCache(folder)
    found = []
    for pair_id, pair in pairs_by_id(tasks).items():
        if (trace := cache.get(WorkUnit(pair, spec).content_hash)) is not None:
            found.append(Recorded(tasks.raw_task(pair_id.task_id), pair_id, spec, trace.actions))
    return found


def show_traces(traces: Sequence[Recorded]) -> Iterator[EpisodeBatch]:
    """Play actions again, those of each action format together.

    Raises:
        ExpertError: a trace is of a pair that its task does not have.
        InvalidActionError: an action is not one of its format, or of the canvas.
    """
    for action_format in dict.fromkeys(trace.spec.action_format for trace in traces):
        yield _show_format([trace for trace in traces if trace.spec.action_format == action_format])


def _show_format(traces: Sequence[Recorded]) -> EpisodeBatch:
    """Make each trace a task of its own, whose only demonstration is its pair: there rewards are known."""
    pairs = [find_pair(trace.task, trace.pair_id) for trace in traces]
    played = [RawTask.of_checked_pairs(str(i), (pair,), (pair,)) for i, pair in enumerate(pairs)]
    task_set = TaskSet("traces", tuple(played), (_SIDE, _SIDE))
    rules = _rules_of(traces[0].spec.action_format, max(len(trace.actions) for trace in traces))
    recordings = {(str(i), 0): trace.actions for i, trace in enumerate(traces)}
    infos = [
        EpisodeInfo(
            trace.pair_id.task_id,
            f"{trace.pair_id.split} {trace.pair_id.pair_index}",
            trace.spec.title,
            trace.task.train,
            trace.task.title,
        )
        for trace in traces
    ]
    agent = RecordedAgent.create(recordings, task_set, rules)
    lengths = [len(trace.actions) for trace in traces]
    return EpisodeBatch(agent, _params(task_set, rules), _first_pairs(range(len(traces))), infos, lengths)


def show_run(
    folder: RunFolder,
    which: WhichCheckpoint,
    seed: int | None,
    *,
    with_learned: bool,
    task_ids: Sequence[str],
    most: int,
) -> tuple[EpisodeBatch, int]:
    """Let the agent of a run play the pairs that it was measured on, as it was measured.

    Args:
        folder: of the run.
        which: checkpoint, see :func:`saved_experiment`.
        seed: of the agent; None for the run's first.
        with_learned: play also the pairs that it learned from.
        task_ids: only pairs of these tasks; all if empty.
        most: not more pairs than so many.

    Returns:
        The episodes, and how many there are without ``most``.

    Raises:
        CheckpointError: there is no agent to take from the folder.
        typer.BadParameter: the run is not one of an agent, or no pair is left.
    """
    try:
        experiment = saved_experiment(folder, which)
    except ConfigValidationError as error:  # of a surrogate, or of another version
        raise typer.BadParameter(f"{folder.path} holds no agent that plays: {error}", param_hint="SOURCE") from error
    agent = load_trained_agent(folder, AgentRequest(which, seed))
    hides = experiment.answer.is_hidden
    rules = experiment.environment
    pairs = load_pairs(experiment.task, rules.grid_shape, hides_answers=hides, augmentation=rules.augmentation)
    player = f"{experiment.logging.run_name}, seed {experiment.training.seed if seed is None else seed}"
    infos = list(_infos_of(pairs.eval, experiment.task, hides, player))
    first = 0 if with_learned else pairs.num_train
    chosen = [i for i in range(first, len(infos)) if not task_ids or infos[i].task_id in task_ids]
    if not chosen:
        known = ", ".join(list(dict.fromkeys(info.task_id for info in infos[first:]))[:3])
        raise typer.BadParameter(
            f"no measured pair is of {', '.join(task_ids)}; the run was measured on {known}, ...", param_hint="--task"
        )
    played = chosen[:most]
    params = without_augmentation(_params(pairs.eval, experiment.environment))
    return EpisodeBatch(agent, params, _first_pairs(played), [infos[i] for i in played]), len(chosen)


def to_episode(
    info: EpisodeInfo, trajectory: EpisodeTrajectory, selection_format: str
) -> tuple[ReplayTask, ReplayEpisode]:
    """Return a trajectory as what is replayed and drawn."""
    task = ReplayTask(info.task_id, info.demonstrations, info.title)
    episode = ReplayEpisode(
        pair=info.pair,
        player=info.player,
        selection_format=selection_format,
        actions=trajectory.actions,
        grids=trajectory.grids,
        clipboards=trajectory.clipboards,
        target=trajectory.target,
        rewards=trajectory.rewards,
        similarities=trajectory.similarities,
        invalid=trajectory.invalid,
        is_solved=trajectory.is_solved,
    )
    return task, episode


def _infos_of(measured: TaskSet, config: TaskConfig, hides: bool, player: str) -> Iterator[EpisodeInfo]:
    """Name played pairs by the tasks that they come from, with the demonstrations of these."""
    sources = {"train": config.train_dataset, "evaluation": config.evaluation_dataset}
    origins = {stage: load_tasks(name) for stage, name in sources.items() if not name.startswith(PREFIX)}
    for task in measured:
        stage, _, rest = task.task_id.partition("/")
        name, _, number = rest.rpartition("/")
        if stage not in origins:
            yield EpisodeInfo(rest, "learned" if stage == "train" else "unseen", player, task.train[1:])
            continue
        origin = origins[stage].raw_task(name)
        index = int(number)
        is_test = hides or index >= len(origin.train)
        label = f"test {index if hides else index - len(origin.train)}" if is_test else f"train {index}"
        learned = ", learned" if stage == "train" else ""
        yield EpisodeInfo(name, label + learned, player, origin.train, origin.title)


def _rules_of(action_format: ActionFormat, num_actions: int) -> JaxArcConfig:
    return JaxArcConfig().with_fields(
        selection_format=action_format,
        max_grid_height=_SIDE,
        max_grid_width=_SIDE,
        max_episode_steps=num_actions + 1,
        invalid_action_policy="noop",
        history_enabled=False,
    )


def _params(tasks: TaskSet, rules: JaxArcConfig) -> EnvParams:
    buffer = tasks.buffer(rules.grid_shape).with_symmetries(rules.augmentation.num_symmetries)
    return EnvParams(buffer, uniform_weights(len(tasks)), rules)


def _first_pairs(task_indices: Iterable[int]) -> EpisodeSpec:
    """The first attempt at the first pair of each task."""
    indices = np.array(list(task_indices), np.int32)
    return EpisodeSpec(*np.stack([indices, np.zeros_like(indices), np.zeros_like(indices)]))
