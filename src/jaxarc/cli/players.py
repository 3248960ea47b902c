"""From the name of an agent to the agent and the rules that it plays by, or to the solver."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxarc.agents import EditAgent
from jaxarc.agents.saved_agent import load_policy, saved_editing_experiment
from jaxarc.cli.console import DEFAULT_FORMAT, DEFAULT_SIDE
from jaxarc.config import JaxArcConfig
from jaxarc.config.agent_training import Precision, WhichCheckpoint
from jaxarc.datasets import NotInstalledError, TaskSet, UnknownDatasetError
from jaxarc.datasets.training_pairs import pairs_seen_by
from jaxarc.envs.spaces import action_space
from jaxarc.evaluation import (
    Agent,
    AgentMismatchError,
    RecordedAgent,
    Solver,
    SubmitPolicy,
    read_recordings,
)
from jaxarc.experts import GreedyPainter
from jaxarc.experts.expert import Caught
from jaxarc.files import user_path
from jaxarc.parallel import Policy, RandomPolicy
from jaxarc.runs import RunFolder, locate_run


@dataclass(frozen=True)
class PlayRequest:
    """The rules that an agent plays by, as far as they are not its own, and which agent of a run folder it is."""

    selection_format: str | None = None
    side: int | None = None  # rows and columns of the canvas
    max_steps: int | None = None
    answers_visible: bool = False
    checkpoint: WhichCheckpoint = "best"
    seed: int | None = None  # of the agent; None: the run's first
    precision: Precision = "float32"  # of its network


@dataclass(frozen=True)
class Player:
    """An agent with the rules that it plays by."""

    agent: Agent | Policy
    rules: JaxArcConfig
    num_learned: int | None = 0  # test pairs that the agent learned from; None: its training data are not here


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
    recordings = read_recordings(path)
    longest = max((len(actions) for actions in recordings.values()), default=0)
    rules = _plain_rules(request, max_episode_steps=longest + 1)
    return Player(RecordedAgent.create(recordings, tasks, rules), rules)


def load_solver(name: str) -> Solver:
    """Return a function by ``module:function`` or ``file.py:function``.

    Modules are looked for in the working directory too, and those that a file imports in its own folder.

    Raises:
        AgentMismatchError: it cannot be loaded, or called.
    """
    module, _, attribute = name.rpartition(":")
    file = user_path(module) if module.endswith(".py") else None
    if (folder := str(Path.cwd() if file is None else file.resolve().parent)) not in sys.path:
        sys.path.append(folder)
    # Importing a module runs code of others, which may raise anything.
    with Caught() as caught:
        found = getattr(importlib.import_module(module) if file is None else _module_of(file), attribute)
        if callable(found):
            return found
        raise TypeError(f"it is a {type(found).__name__}, and no function")
    raise AgentMismatchError(
        f"the solver {name!r} cannot be loaded ({type(caught.error).__name__}: {caught.error}); give file.py:function, "
        "or module:function of a module that Python finds from here"
    ) from caught.error


def _module_of(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # as an import does, so that its classes can be pickled
    spec.loader.exec_module(module)
    return module


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
    experiment = saved_editing_experiment(folder, request.checkpoint)
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
    agent = EditAgent(*load_policy(folder, request.checkpoint, request.seed, rules, request.precision))
    try:
        seen = pairs_seen_by(experiment.task, experiment.environment.augmentation)
    except (UnknownDatasetError, NotInstalledError):
        return Player(agent, rules, None)
    return Player(agent, rules, sum(pair in seen for task in tasks for pair in task.test))
