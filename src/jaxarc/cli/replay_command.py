"""``jaxarc replay``: episodes in one HTML file, to look at step by step, or as a picture.

Traces and runs are its sources: each gives an agent and the pairs that it plays.
"""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import jax
import numpy as np
import typer
from rich.console import Console

import jaxarc.games
from jaxarc.agents import EditAgent, GameAgent
from jaxarc.agents.game_agent import saved_game_agent
from jaxarc.agents.own_parts import rewarded
from jaxarc.agents.saved_agent import SavedRun
from jaxarc.cli.console import (
    DEFAULT_FORMAT,
    AgentSeedOption,
    GameOption,
    NetworkOption,
    RewardOption,
    load_own_parts,
    print_line,
    progress_bar,
)
from jaxarc.cli.picture_files import RENDERERS, ColorsOption, require_kind
from jaxarc.cli.trace_options import (
    CacheOption,
    FormatOption,
    find_expert_spec,
    find_pair,
    not_recorded,
    recorded_traces,
)
from jaxarc.cli.training_runs import load_training_pairs
from jaxarc.config import JaxArcConfig
from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.envs import EnvParams
from jaxarc.evaluation import Agent, EpisodeSpec, RecordedAgent
from jaxarc.evaluation.episodes import EpisodeTrajectory, record_episodes
from jaxarc.evaluation.solve_rate import without_augmentation
from jaxarc.experts import Action, ActionFormat
from jaxarc.experts.expert import EXPERTS
from jaxarc.files import write_whole
from jaxarc.games.frames import OwnFrames
from jaxarc.games.game import HEX_COLORS
from jaxarc.games.recordings import is_recording, read_recording
from jaxarc.render.drawings import episodes_file
from jaxarc.render.game_page import recording_page, to_digits
from jaxarc.render.palette import PALETTES
from jaxarc.render.replay_page import ReplayEpisode, ReplayTask
from jaxarc.runs import RunFolder, locate_run
from jaxarc.runs.run_state import WhichCheckpoint
from jaxarc.tasks import RawTask, uniform_weights
from jaxarc.tasks.procedural.names import PREFIX
from jaxarc.traces import ExpertSpec, PairId
from jaxarc.traces.trace_files import PairFinder, TraceFileError, read_trace_file

_DEFAULT_DATASET: Final = "arc-agi-1/training"
_SIDE: Final = MAX_GRID_SIZE  # of the canvas that traces are recorded on
Item = TypeVar("Item")


class EpisodeInfo(NamedTuple):
    """The pair that an episode plays, and its player, in words for people."""

    task: ReplayTask
    pair: str  # such as "test 0"
    player: str


@dataclass(frozen=True)
class EpisodeBatch:
    """Episodes that one agent plays, all by the same rules."""

    agent: Agent
    params: EnvParams
    specs: EpisodeSpec  # arrays [E]
    infos: Sequence[EpisodeInfo]  # E of them
    lengths: Sequence[int] | None = None  # actions of each, where an episode is not played to its end
    reward: str = ""  # of one's own, by which the agent learned


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
    names = [dataset or line.dataset or _DEFAULT_DATASET for line in lines]
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


def show_traces(traces: Sequence[Recorded], task_ids: Sequence[str], most: int) -> tuple[list[EpisodeBatch], int]:
    """Play the actions of some traces again, those of each action format together.

    Returns:
        The episodes, and how many there are without ``most``.
    """
    chosen = _of_tasks(traces, lambda trace: trace.pair_id.task_id, task_ids, "trace")
    shown = chosen[:most]
    formats = dict.fromkeys(trace.spec.action_format for trace in shown)
    return [_show_format([one for one in shown if one.spec.action_format == form]) for form in formats], len(chosen)


def _show_format(traces: Sequence[Recorded]) -> EpisodeBatch:
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
            ReplayTask(trace.pair_id.task_id, trace.task.train, trace.task.title),
            f"{trace.pair_id.split} {trace.pair_id.pair_index}",
            trace.spec.title,
        )
        for trace in traces
    ]
    agent = RecordedAgent.create({(str(i), 0): trace.actions for i, trace in enumerate(traces)}, tasks, rules)
    return EpisodeBatch(agent, _params(tasks, rules), _first_pairs(range(len(traces))), infos, lengths)


def show_run(
    saved: SavedRun,
    seed: int | None,
    *,
    with_learned: bool,
    task_ids: Sequence[str],
    most: int,
) -> tuple[EpisodeBatch, int]:
    """Let the agent of a run play the pairs that it was measured on, as it was measured.

    Args:
        saved: the run.
        seed: of the agent; None for the run's first.
        with_learned: play also the pairs that it learned from.
        task_ids: only pairs of these tasks; all if empty.
        most: not more pairs than so many.

    Returns:
        The episodes, and how many there are without ``most``.
    """
    experiment = saved.experiment
    agent = EditAgent(*saved.policy(seed))
    pairs = load_training_pairs(experiment)
    player = f"{experiment.logging.run_name}, seed {experiment.training.seed if seed is None else seed}"
    infos = list(enumerate(_infos_of(pairs.eval, experiment, player)))
    measured = infos if with_learned else infos[pairs.num_train :]
    chosen = _of_tasks(measured, lambda one: one[1].task.task_id, task_ids, "measured pair")
    params = without_augmentation(_params(pairs.eval, experiment.environment))
    shown = chosen[:most]
    infos = [info for _, info in shown]
    specs = _first_pairs(i for i, _ in shown)
    return EpisodeBatch(agent, params, specs, infos, reward=experiment.agent.reward), len(chosen)


def to_episode(
    info: EpisodeInfo, trajectory: EpisodeTrajectory, selection_format: str
) -> tuple[ReplayTask, ReplayEpisode]:
    """Return a trajectory as what is replayed and drawn."""
    steps = {name: value for name, value in trajectory._asdict().items() if name in ReplayEpisode._fields}
    return info.task, ReplayEpisode(info.pair, info.player, selection_format, **steps)


def _of_tasks(items: Sequence[Item], id_of: Callable[[Item], str], task_ids: Sequence[str], what: str) -> list[Item]:
    """Choose what is of some tasks, or all if none is named."""
    chosen = [item for item in items if not task_ids or id_of(item) in task_ids]
    if not chosen:
        known = ", ".join(list(dict.fromkeys(map(id_of, items)))[:3])
        raise typer.BadParameter(
            f"no {what} is of {', '.join(task_ids)}; there are some of {known}, ...", param_hint="--task"
        )
    return chosen


def _infos_of(measured: TaskSet, experiment: Any, player: str) -> Iterator[EpisodeInfo]:
    """Name played pairs by the tasks that they come from, with the demonstrations of these."""
    hides = experiment.answer.is_hidden
    sources = {"train": experiment.task.train_dataset, "evaluation": experiment.task.evaluation_dataset}
    origins = {stage: load_tasks(name) for stage, name in sources.items() if not name.startswith(PREFIX)}
    for task in measured:
        stage, _, rest = task.task_id.partition("/")
        name, _, number = rest.rpartition("/")
        if stage not in origins:
            yield EpisodeInfo(ReplayTask(rest, task.train[1:]), "learned" if stage == "train" else "unseen", player)
            continue
        origin = origins[stage].raw_task(name)
        index = int(number)
        is_test = hides or index >= len(origin.train)
        label = f"test {index if hides else index - len(origin.train)}" if is_test else f"train {index}"
        learned = ", learned" if stage == "train" else ""
        yield EpisodeInfo(ReplayTask(name, origin.train, origin.title), label + learned, player)


def _params(tasks: TaskSet, rules: JaxArcConfig) -> EnvParams:
    buffer = tasks.buffer(rules.grid_shape).with_symmetries(rules.augmentation.num_symmetries)
    return EnvParams(buffer, uniform_weights(len(tasks)), rules)


def _first_pairs(task_indices: Iterable[int]) -> EpisodeSpec:
    """The first attempt at the first pair of each task."""
    indices = np.array(list(task_indices), np.int32)
    return EpisodeSpec(*np.stack([indices, np.zeros_like(indices), np.zeros_like(indices)]))


_MOST: Final = 1000
_TIME_OF_RUN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}_[0-9]{2}-[0-9]{2}-[0-9]{2}-"  # as jaxarc train names folders
_KINDS: Final = (".html", ".gif", *RENDERERS)


def replay(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder of jaxarc train, the agent ladder_l2_small of this package, a file of traces or recorded "
            f"actions, a recording of a game, or an expert whose traces are recorded: {', '.join(EXPERTS)}, human, ..."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help=f"The file to write: {', '.join(_KINDS)}.")] = Path(
        "replay.html"
    ),
    dataset: Annotated[
        str | None, typer.Option(help=f"What the traces are of; by default what they say, or else {_DEFAULT_DATASET}.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    most: Annotated[
        int | None,
        typer.Option(min=1, help=f"Show this many episodes at most; by default {_MOST:,} in a page, 1 in a picture."),
    ] = None,
    colors: ColorsOption = "arc",
    learned: Annotated[
        bool, typer.Option("--learned", help="For a run: also its training pairs, before the others.")
    ] = False,
    checkpoint: Annotated[
        WhichCheckpoint, typer.Option(help="For a run: the checkpoint with most unseen pairs solved, or the newest.")
    ] = "best",
    agent_seed: AgentSeedOption = None,
    game: GameOption = None,
    network: NetworkOption = None,
    reward: RewardOption = None,
    action_format: FormatOption = DEFAULT_FORMAT,
    cache: CacheOption = None,
) -> None:
    """Write episodes into one self-contained HTML file, or into a picture.

    All episodes are replayed in the environment, so grids, rewards and similarities are exact. A GIF animates
    the episodes; SVG and PNG show every step, one below the other.

    Examples:
        jaxarc replay ladder_l2_small
        jaxarc replay runs/NAME
        jaxarc replay plays/ice-TIME.jsonl -o game.html
        jaxarc replay traces.jsonl -o traces.html --most 2000
        jaxarc replay painter --dataset arc-agi-1/training --task 007bbfb7 -o one.gif
    """
    path = locate_run(Path(source))
    kind = require_kind(output, *_KINDS)
    load_own_parts(network, reward, game)
    if path.is_file() and is_recording(path):
        _replay_game(path, output)
        return
    saved = SavedRun.open(RunFolder(path), checkpoint) if path.is_dir() else None
    if saved is not None and (name := saved.experiment.game.name):
        _replay_agent(saved_game_agent(saved, agent_seed), name, output)
        return
    most = most or (_MOST if kind == ".html" else 1)
    if saved is not None:
        if dataset is not None:
            raise typer.BadParameter(
                "the agent of a run plays the pairs that it was measured on; leave it out", param_hint="--dataset"
            )
        batch, total = show_run(saved, agent_seed, with_learned=learned, task_ids=task or [], most=most)
        batches = [batch]
        title = f"Agent {re.sub(_TIME_OF_RUN, '', path.resolve().name)}"
    elif path.is_file():
        batches, total = show_traces(recorded_in_file(path, dataset), task or [], most)
        title = path.resolve().name
    else:
        dataset = dataset or _DEFAULT_DATASET
        traces = recorded_by_expert(source, dataset, action_format, cache)
        batches, total = show_traces(traces, task or [], most)
        title = f"{source}, {dataset}"
    solved: list[bool] = []
    content = episodes_file(kind, _play(batches, solved), title, _about(batches), PALETTES[colors])
    write_whole(output, content)
    size = len(content) / 2**20
    shown = f"{len(solved):,}" if len(solved) == total else f"{len(solved):,} of {total:,}"
    more = "" if len(solved) == total else f"; add --most {total} to see all"
    print_line(Console(), f"{shown} episodes, {sum(solved):,} solved: {output} ({size:.1f} MiB){more}")


def _replay_game(path: Path, output: Path) -> None:
    """Write the frames of a recorded game, as they are, into a page."""
    require_kind(output, ".html")
    recording = read_recording(path)
    steps = [
        {
            "action": action,
            "x": x,
            "y": y,
            "frames": [to_digits(frame) for frame in seen.frames],
            "state": seen.state,
            "completed": seen.levels_completed,
            "levels": seen.win_levels,
        }
        for action, x, y, seen in recording.steps
    ]
    content = recording_page(recording.game, steps, HEX_COLORS)
    write_whole(output, content)
    last = recording.steps[-1].seen
    words = f"{len(steps):,} actions, {last.levels_completed} of {last.win_levels} levels"
    print_line(Console(), f"{recording.game}, {words}: {output} ({len(content) / 2**20:.1f} MiB)")


def _replay_agent(agent: GameAgent, name: str, output: Path) -> None:
    """Let an agent play the game that it learned, and write it into a page."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "played.jsonl"
        played = agent.play(OwnFrames(*jaxarc.games.make(name)), recording=recording)
        _replay_game(recording, output)
    print_line(Console(), f"official score {played.score:.1f}, actions {' '.join(map(str, played.actions))}")


def _about(batches: Sequence[EpisodeBatch]) -> dict[str, str]:
    configs = [batch.params.config for batch in batches]
    canvases = dict.fromkeys("{}x{}".format(*config.grid_shape) for config in configs)
    formats = dict.fromkeys(config.action.selection_format for config in configs)
    return {"canvas": ", ".join(canvases), "actions": ", ".join(formats)}


def _play(batches: Sequence[EpisodeBatch], solved: list[bool]) -> Iterator[tuple[ReplayTask, ReplayEpisode]]:
    """Play every episode and note whether it is solved, with a bar on stderr where that is a terminal."""
    total = sum(len(batch.infos) for batch in batches)
    done = 0
    with progress_bar("episodes", waiting="compiling") as show:
        for batch in batches:
            form = batch.params.config.action.selection_format
            key = jax.random.key(0)
            env = rewarded(batch.reward, batch.params)
            trajectories = record_episodes(batch.agent, batch.params, batch.specs, key, lengths=batch.lengths, env=env)
            for info, trajectory in zip(batch.infos, trajectories, strict=True):
                solved.append(trajectory.is_solved)
                yield to_episode(info, trajectory, form)
                done += 1
                show(done, total)
