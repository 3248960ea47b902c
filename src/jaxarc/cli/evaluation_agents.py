"""From what ``jaxarc evaluate --agent`` names to an agent and the rules that it plays by."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jaxarc.agents import EditPolicy
from jaxarc.config import JaxArcConfig
from jaxarc.envs.spaces import action_space
from jaxarc.evaluation import (
    Agent,
    AgentMismatchError,
    EditAgent,
    ImaginingAgent,
    RecordedAgent,
    SubmitPolicy,
    read_recordings,
)
from jaxarc.parallel import Policy, RandomPolicy
from jaxarc.tasks import TaskSet
from jaxarc.training import RunFolder
from jaxarc.training.saved_agent import WhichCheckpoint, load_agent

DEFAULT_FORMAT: Final = "bbox"
DEFAULT_SIDE: Final = 30


@dataclass(frozen=True)
class RulesWished:
    """What the command line says about the rules; None leaves it to the agent."""

    selection_format: str | None
    side: int | None  # rows and columns of the canvas
    max_steps: int | None
    answers_visible: bool


@dataclass(frozen=True)
class AgentWished:
    """Which of the agents of a run folder is wished."""

    checkpoint: WhichCheckpoint = "best"
    seed: int | None = None  # None: the run's first


@dataclass(frozen=True)
class Player:
    """An agent with the rules that it plays by."""

    agent: Agent | Policy
    rules: JaxArcConfig


def find_player(name: str, tasks: TaskSet, wished: RulesWished, of_run: AgentWished) -> Player:
    """Return the agent that a name means: ``random``, ``submit``, a run folder, or a file of recorded actions.

    Raises:
        AgentMismatchError: there is no such agent, or it cannot play by the rules that are wished.
        CheckpointError, RecordingError: its file cannot be used.
    """
    if name in ("random", "submit"):
        rules = _plain_rules(wished)
        return Player(RandomPolicy(action_space(rules)) if name == "random" else SubmitPolicy.for_config(rules), rules)
    path = Path(name)
    if path.is_dir():
        return _trained_player(RunFolder(path), wished, of_run)
    if path.is_file():
        return _recorded_player(path, tasks, wished)
    raise AgentMismatchError(
        f"--agent {name!r} is neither random nor submit, nor a folder of jaxarc train, nor a file of recorded actions; "
        "correct the name or the path"
    )


def _plain_rules(wished: RulesWished, **fields: Any) -> JaxArcConfig:
    side = wished.side or DEFAULT_SIDE
    if wished.max_steps is not None:
        fields["max_episode_steps"] = wished.max_steps
    return JaxArcConfig().with_fields(
        selection_format=wished.selection_format or DEFAULT_FORMAT,
        max_grid_height=side,
        max_grid_width=side,
        invalid_action_policy="noop",
        **fields,
    )


def _recorded_player(path: Path, tasks: TaskSet, wished: RulesWished) -> Player:
    """Time is long enough for the longest recording, unless the command line says otherwise."""
    recordings = read_recordings(path)
    longest = max((len(actions) for actions in recordings.values()), default=0)
    rules = _plain_rules(wished, max_episode_steps=longest + 1)
    return Player(RecordedAgent.create(recordings, tasks, rules), rules)


def _trained_player(folder: RunFolder, wished: RulesWished, of_run: AgentWished) -> Player:
    policy, experiment = load_agent(folder, of_run.checkpoint, of_run.seed)
    rules = experiment.environment
    _require_same_rules(folder, rules, wished)
    if wished.max_steps is not None:
        rules = rules.with_fields(max_episode_steps=wished.max_steps)
    return Player(EditAgent(policy) if isinstance(policy, EditPolicy) else ImaginingAgent(policy), rules)


def _require_same_rules(folder: RunFolder, rules: JaxArcConfig, wished: RulesWished) -> None:
    """Refuse what the agent of a run was not trained for, naming everything that differs."""
    side = None if wished.side is None else (wished.side, wished.side)
    facts = {
        "--format": (rules.action.selection_format, wished.selection_format),
        "--canvas": (rules.grid_shape, side),
    }
    differs = [
        f"it was trained with {trained}, but {option} says {asked}: leave {option} out"
        for option, (trained, asked) in facts.items()
        if asked not in (None, trained)
    ]
    if rules.observation.reveal_target and not wished.answers_visible:
        differs.append(
            "it looks at the answer, target_grid (observation.reveal_target=True), which test mode hides: train one "
            "without, or add --answers-visible to measure how well it edits, which is no score by the rules of ARC"
        )
    if differs:
        raise AgentMismatchError(f"the agent of {folder.path} does not fit this evaluation: {'; '.join(differs)}")
