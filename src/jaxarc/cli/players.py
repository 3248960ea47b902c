"""``jaxarc evaluate`` of an agent that plays: find it with its rules, and let it play, here or elsewhere."""

import contextlib
import dataclasses
import functools
import hashlib
import math
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import typer

from jaxarc.agents import EditAgent
from jaxarc.agents.saved_agent import policy_of
from jaxarc.cli.console import DEFAULT_FORMAT, DEFAULT_SIDE, load_own_parts, progress_bar
from jaxarc.cli.place_options import about_place
from jaxarc.cli.signals import signals_interrupt
from jaxarc.config import ConfigValidationError, EvaluationConfig, JaxArcConfig
from jaxarc.config.agent_training import Precision, WhichCheckpoint
from jaxarc.datasets import NotInstalledError, TaskSet, UnknownDatasetError, load_tasks
from jaxarc.datasets.task_set import digest_of
from jaxarc.datasets.training_pairs import pairs_seen_by
from jaxarc.envs.action_space import action_space
from jaxarc.evaluation import (
    Agent,
    AgentMismatchError,
    Evaluation,
    RecordedAgent,
    SubmitPolicy,
    read_recordings,
)
from jaxarc.evaluation.episodes import Episodes
from jaxarc.evaluation.evaluate import PlannedEvaluation, plan_evaluation
from jaxarc.experts import GreedyPainter
from jaxarc.files import locate_run
from jaxarc.jobs import HERE, Job, JobsError, Place, run
from jaxarc.nn import products_in
from jaxarc.parallel import Policy, RandomPolicy
from jaxarc.runs import RunFolder
from jaxarc.runs.kind import SavedRun

_EPISODE_DTYPES: Final = (np.int8, np.bool_, np.int32, np.float32)  # of the fields of Episodes
_MANY_CELLS: Final = 500_000  # of all episodes: from there on, less padding saves more than three programs cost


@dataclass(frozen=True)
class PlayRequest:
    """The rules that an agent plays by, as far as they are not its own, and which agent of a run folder it is."""

    selection_format: str | None = None
    side: int | None = None  # rows and columns of the canvas, or of the largest
    max_steps: int | None = None
    answers_visible: bool = False
    checkpoint: WhichCheckpoint = "best"
    seed: int | None = None  # of the agent; None: the run's first
    precision: Precision = "float32"  # of its network
    network: str | None = None  # file.py:NAME or module:NAME of its own parts, where its run has some
    reward: str | None = None


@dataclass(frozen=True)
class Player:
    """An agent with the rules that it plays by."""

    agent: Agent | Policy
    rules: JaxArcConfig
    num_learned: int | None = 0  # test pairs that the agent learned from; None: its training data are not here
    canvases: tuple[()] | Literal["auto"] = ()  # of a long evaluation, unless it is asked for others


def load_player(name: str, tasks: TaskSet, request: PlayRequest) -> Player:
    """Return the agent that a name means: a plain one, a run folder, or a file of recorded actions.

    Raises:
        AgentMismatchError: it cannot play by the requested rules.
        CheckpointError, TraceFileError, RecordingError, InvalidActionError: its file cannot be used.
    """
    if name == "random":
        rules = _plain_rules(request)
        return Player(RandomPolicy(action_space(rules)), rules)
    if name == "submit":
        rules = _plain_rules(request)
        return Player(SubmitPolicy.for_config(rules), rules)
    if name == "painter":
        return _painting_player(request)
    path = locate_run(Path(name))
    if path.is_dir():
        return _trained_player(RunFolder(path), tasks, request)
    recordings = read_recordings(path, tasks)
    longest = max((len(actions) for actions in recordings.values()), default=0)
    rules = _plain_rules(request, max_episode_steps=longest + 1)
    return Player(RecordedAgent.create(recordings, tasks, rules), rules)


def _painting_player(request: PlayRequest) -> Player:
    if request.selection_format not in (None, DEFAULT_FORMAT):
        raise AgentMismatchError(
            f"the painter fills boxes, but --format says {request.selection_format}: leave --format out"
        )
    if not request.answers_visible:
        raise AgentMismatchError(
            "the painter looks at the answers, which test mode hides: add --answers-visible to measure how few actions "
            "they take, which is no score by the rules of ARC"
        )
    rules = _plain_rules(request, reveal_target=True, grid_format="planes", include_step_count=True)
    return Player(GreedyPainter(), rules)


def _plain_rules(request: PlayRequest, **fields: Any) -> JaxArcConfig:
    side = request.side or DEFAULT_SIDE
    if request.max_steps is not None:
        fields["max_episode_steps"] = request.max_steps
    return JaxArcConfig().with_fields(
        selection_format=request.selection_format or DEFAULT_FORMAT,
        max_grid_height=side,
        max_grid_width=side,
        invalid_action_policy="noop",
        **fields,
    )


def _trained_player(folder: RunFolder, tasks: TaskSet, request: PlayRequest) -> Player:
    """The agent plays by the rules that it learned by, on another canvas or with more time if that is requested."""
    saved = SavedRun.open(folder, request.checkpoint).require("edit")
    experiment = saved.experiment
    rules = experiment.environment
    differs = []
    if request.selection_format not in (None, rules.action.selection_format):
        differs.append(
            f"it was trained with {rules.action.selection_format}, but --format says {request.selection_format}: "
            "leave --format out"
        )
    if rules.observation.reveal_target and not request.answers_visible:
        differs.append(
            "it looks at the answer, target_grid (observation.reveal_target=True), which test mode hides: train one "
            "without, or add --answers-visible to measure how well it edits, which is no score by the rules of ARC"
        )
    if differs:
        raise AgentMismatchError(f"the agent of {folder.path} does not fit this evaluation: {'; '.join(differs)}")
    if request.side is not None:
        rules = rules.with_fields(max_grid_height=request.side, max_grid_width=request.side)
    if request.max_steps is not None:
        rules = rules.with_fields(max_episode_steps=request.max_steps)
    agent = EditAgent(*policy_of(saved, request.seed, rules, request.precision))
    # Canvases by size are squares, and hold the answers, too.
    takes_any = experiment.network.kind == "relational" or experiment.task.canvases
    is_free = request.answers_visible and request.side is None and rules.grid_shape[0] == rules.grid_shape[1]
    canvases = "auto" if takes_any and is_free else ()
    try:
        seen = pairs_seen_by(experiment.task, experiment.environment.augmentation)
    except (UnknownDatasetError, NotInstalledError):
        return Player(agent, rules, None, canvases)
    return Player(agent, rules, sum(pair in seen for task in tasks for pair in task.test), canvases)


def records_of(name: str) -> list[Path]:
    """Return the records of a run's checkpoints; none where the name is of no run."""
    return sorted(locate_run(Path(name)).glob("checkpoints/*/*.json"))


def digest_of_files(files: Sequence[Path]) -> str:
    """Return a short hash of what is in files."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


class Asked(NamedTuple):
    """An evaluation of an agent that plays, in words from which each process makes it."""

    agent: str
    agent_digest: str  # of its file or checkpoints
    dataset: str
    tasks_digest: str
    request: PlayRequest
    config: EvaluationConfig


def plan(asked: Asked) -> tuple[Player, PlannedEvaluation]:
    """Load tasks and agent.

    Raises:
        AgentMismatchError: this machine has other tasks by this name, or as :func:`load_player`.
    """
    tasks = load_tasks(asked.dataset)
    if _digest_of_tasks(tasks) != asked.tasks_digest:
        raise AgentMismatchError(f"{asked.dataset} has other tasks on {platform.node()}; bring the same ones to all")
    return _plan(asked, tasks)


def _plan(asked: Asked, tasks: TaskSet) -> tuple[Player, PlannedEvaluation]:
    load_own_parts(asked.request.network, asked.request.reward)
    player = load_player(asked.agent, tasks, asked.request)
    if asked.config.votes and isinstance(player.agent, RecordedAgent):
        raise typer.BadParameter(
            "recorded actions fit tasks as they are, not augmented; leave it out", param_hint="--votes"
        )
    fitting = _on_canvas(tasks, player.rules.grid_shape)
    config = asked.config
    num_episodes = sum(len(task.test) for task in fitting) * (config.votes or config.attempts)
    if num_episodes * math.prod(player.rules.grid_shape) >= _MANY_CELLS:
        config = config.replace(canvases=config.canvases or player.canvases)
    return player, plan_evaluation(player.agent, fitting, player.rules, config, asked.request.answers_visible)


def play_batch(loaded: tuple[Player, PlannedEvaluation], number: int, precision: Precision) -> list[Any]:
    """Play a batch, and return the fields of its :class:`Episodes` as lists."""
    _, planned = loaded
    with products_in(precision):
        return [part.tolist() for part in planned.play_batch(number)]


def play(
    name: str,
    dataset: str,
    tasks: TaskSet,
    config: EvaluationConfig,
    request: PlayRequest,
    place: Place,
    folder: Path,
    quiet: bool,
) -> tuple[Evaluation, dict[str, Any], tuple[str, ...]]:
    """Let an agent play every test input, a batch of episodes at a time, each of which is a job.

    Args:
        name: of the agent, see :func:`load_player`.
        dataset: by which other processes load the tasks.
        tasks: its tasks.
        config: attempts, votes, seed, batch size.
        request: the rules that are asked for.
        place: where; a shard plays one batch after the other, unless it says how many processes.
        folder: keeps the batches that are played, so that the same call goes on after a kill.
        quiet: show no bar.

    Returns:
        The evaluation, what the summary says of it besides the score, and notes for the terminal.

    Raises:
        JobsError: a batch could not be played, or as :func:`jaxarc.jobs.run`.
    """
    digest = digest_of_files(records_of(name) or list(filter(Path.is_file, [Path(name)])))
    asked = Asked(name, digest, dataset, _digest_of_tasks(tasks), request, config)
    player, planned = _plan(asked, tasks)
    asked = asked._replace(config=planned.config)
    _require_batches(planned, place)

    @functools.wraps(plan)  # so that it is the same job, which may go on elsewhere
    def plan_here(_: Asked) -> tuple[Player, PlannedEvaluation]:
        return player, planned

    jobs = [Job(play_batch, (number, request.precision)) for number in range(planned.num_batches)]
    begin = Job(plan_here if place == HERE else plan, (asked,))
    about = {"the tasks": tasks.name, "the agent": f"{name} {digest}", "agent_seed": request.seed}
    about = {**vars(request), **about, **dataclasses.asdict(config)}
    played: dict[int, Episodes] = {}
    fault = None
    with (
        progress_bar("batches", waiting="compiling", is_shown=not quiet) as show,
        contextlib.nullcontext() if place == HERE else signals_interrupt(),
    ):
        for done in run(jobs, place._replace(processes=place.processes or 1), begin, folder, about):
            fault = fault or done.fault
            if done.fault is None:
                played[done.job] = Episodes(*map(np.array, done.value, _EPISODE_DTYPES))
                show(len(played), len(jobs))
    if fault is not None:
        raise JobsError(f"{len(played)} of {len(jobs)} batches are played, but {fault}; the same command goes on")
    result = planned.score([played[number] for number in range(len(jobs))])
    return result, _about(player, planned.config, request, place), tuple(_notes(player, planned, request))


def _require_batches(planned: PlannedEvaluation, place: Place) -> None:
    """Refuse parts that would have nothing to do; smaller batches could round differently from those of one process."""
    episodes, count = planned.num_episodes, planned.num_batches
    if place.shards > count:
        raise typer.BadParameter(
            f"{episodes:,} episodes are {count} batch{'es' if count > 1 else ''} of --batch-size "
            f"{planned.config.batch_size}, too few for {place.shards} parts; add --batch-size "
            f"{max(episodes // place.shards, 1)}",
            param_hint="--shards" if place.engine != "local" else "--processes, --shards",
        )


def _about(player: Player, config: EvaluationConfig, request: PlayRequest, place: Place) -> dict[str, Any]:
    return {
        **({} if place == HERE else about_place(place)),
        "answers_visible": request.answers_visible,
        "precision": request.precision,
        "test_pairs_learned": player.num_learned,
        "evaluation": dataclasses.asdict(config),
        "rules": dataclasses.asdict(player.rules),
    }


def _notes(player: Player, planned: PlannedEvaluation, request: PlayRequest) -> Iterator[str]:
    if planned.config.canvases:
        sides = ((canvas.params.config.grid_shape[0], len(canvas.places)) for canvas in planned.canvases)
        listed = ", ".join(f"{side} ({count:,})" for side, count in sides)
        yield f"Each task on the smallest square canvas that holds its tests, by side (tasks): {listed}."
    if request.answers_visible:
        yield "[bold]The answers were visible to the agent:[/] this is no score by the rules of ARC."
    if player.num_learned is None:
        yield "The training tasks of the agent are not here, so it may have learned from these test pairs."
    elif player.num_learned:
        num_tests = sum(len(task.test) for task in planned.tasks)
        yield f"[bold]The agent learned from {player.num_learned:,} of the {num_tests:,} test pairs.[/]"


def _digest_of_tasks(tasks: TaskSet) -> str:
    return hashlib.sha256(" ".join((digest_of(tasks), *tasks.task_ids)).encode()).hexdigest()[:16]


def _on_canvas(tasks: TaskSet, grid_shape: tuple[int, int]) -> TaskSet:
    if any(largest > side for largest, side in zip(tasks.max_grid_shape, grid_shape, strict=True)):
        largest_height, largest_width = tasks.max_grid_shape
        height, width = grid_shape
        raise ConfigValidationError(
            f"jaxarc evaluate: {tasks.name} has grids of up to {largest_height}x{largest_width}, which does not fit "
            f"the canvas {height}x{width}; add --canvas {max(tasks.max_grid_shape)}, or keep what fits: "
            f":max_side={min(grid_shape)} behind the name of the dataset"
        )
    return tasks.fit(grid_shape)
