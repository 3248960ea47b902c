"""An agent over a task set by the rules of ARC: k attempts at each test input, whose answer it never sees."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final, TypeAlias

import jax
import numpy as np

from jaxarc.config import AugmentationConfig, EvaluationConfig, JaxArcConfig
from jaxarc.constants import PADDING
from jaxarc.datasets import TaskSet
from jaxarc.envs.params import EnvParams
from jaxarc.evaluation.agent import Agent, EpisodeSpec, as_agent, require_agent_fits
from jaxarc.evaluation.episodes import Episodes, play_episodes
from jaxarc.evaluation.submission import Score, Submission, is_right, majority_vote, score_submission
from jaxarc.files import write_whole
from jaxarc.parallel import Policy
from jaxarc.tasks import RawTask, uniform_weights

ActionCounts: TypeAlias = Mapping[tuple[str, int], int]
"""By task id and index of the test input: how many actions an expert took."""


@dataclass(frozen=True)
class EpisodeResult:
    """One episode as the table counts it."""

    is_right: bool  # its grid is the answer
    submitted: bool
    steps: int
    best_similarity: float  # 0 .. 1


@dataclass(frozen=True)
class TaskRow:
    """One task of an evaluation."""

    task_id: str
    num_outputs: int  # test outputs of the task
    solved_outputs: int  # of which an attempt that was handed in is right
    attempts: int  # episodes played: every attempt, or every vote, at every test input
    solves: int  # of these, whose grid is the answer
    submitted: int  # of these, ended by the agent; the others ran out of time
    first_solving_step: int | None  # fewest steps of an episode that solved; None: none did
    best_similarity: float  # 0 .. 1, of any grid in any episode with the answer
    mean_steps: float  # of an episode
    efficiency: float | None  # expert's actions over fewest steps, mean of the solved outputs whose count is known


def make_row(
    task_id: str, solved: Sequence[bool], played: Sequence[Sequence[EpisodeResult]], counts: ActionCounts
) -> TaskRow:
    """Sum up the episodes of one task.

    Args:
        task_id: names it.
        solved: of each test output, whether an attempt that was handed in is right.
        played: the episodes at each test input.
        counts: what an expert needed, where that is known.
    """
    episodes = [episode for at_input in played for episode in at_input]
    fewest = [min((e.steps for e in at_input if e.is_right), default=None) for at_input in played]
    ratios = [
        counts[task_id, i] / steps for i, steps in enumerate(fewest) if steps is not None and (task_id, i) in counts
    ]
    return TaskRow(
        task_id=task_id,
        num_outputs=len(solved),
        solved_outputs=sum(solved),
        attempts=len(episodes),
        solves=sum(episode.is_right for episode in episodes),
        submitted=sum(episode.submitted for episode in episodes),
        first_solving_step=min((steps for steps in fewest if steps is not None), default=None),
        best_similarity=max(episode.best_similarity for episode in episodes),
        mean_steps=fmean(episode.steps for episode in episodes),
        efficiency=fmean(ratios) if ratios else None,
    )


def best_first(rows: Iterable[TaskRow]) -> list[TaskRow]:
    """Sort by share of solved outputs, then of solving episodes, then by best similarity; equal ones by id."""
    key = lambda row: (-row.solved_outputs / row.num_outputs, -row.solves / row.attempts, -row.best_similarity)
    return sorted(rows, key=lambda row: (*key(row), row.task_id))


def write_task_rows(path: str | Path, rows: Iterable[TaskRow]) -> Path:
    """Write one line of JSON per task, whole.

    Returns:
        The path.
    """
    return write_whole(path, "".join(f"{json.dumps(dataclasses.asdict(row))}\n" for row in rows).encode())


_ONE_INPUT: Final = {  # whatever the config says: one pair, from its input, one submit, no word on its worth
    "start_grid": "input",
    "max_submissions": 1,
    "score_on_submit": False,
    "allow_demo_switching": False,
    "allow_test_switching": False,
}


@dataclass(frozen=True)
class Evaluation:
    """What an agent handed in, and how it fared."""

    submission: Submission
    score: Score
    rows: tuple[TaskRow, ...]  # in the order of the task set

    @property
    def efficiency(self) -> float | None:
        """Mean over the tasks that have one; None where none has."""
        known = [row.efficiency for row in self.rows if row.efficiency is not None]
        return fmean(known) if known else None


def evaluate(
    agent: Agent | Policy,
    tasks: TaskSet,
    rules: JaxArcConfig,
    config: EvaluationConfig | None = None,
    *,
    answers_visible: bool = False,
    action_counts: ActionCounts | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """Let an agent hand in grids for every test input of a task set, and score them.

    An attempt is an episode in test mode on one test pair, from its input: the grid that the agent submits, or the
    working grid when time runs out. With ``config.votes`` each episode plays the task augmented, its grid is turned
    back, and the most frequent grids become the attempts. Scoring compares grids on the host, outside the agent.

    Args:
        agent: a policy ``(key, observation) -> action`` of one environment, or an :class:`Agent` with a memory.
        tasks: what is played; every task must fit the canvas of ``rules``.
        rules: canvas, actions, observations, length of an episode. What concerns pairs, starts, submits and
            augmentation is fixed as said above.
        config: attempts, votes, seed, batch size.
        answers_visible: show the answers, as ``rules.observation`` says; such a score says how well the agent edits a
            grid into a given one, and is none by the rules of ARC. Demonstrations, if shown, are then the other tests.
        action_counts: what an expert needed, for the efficiency.
        on_progress: called with episodes done and episodes in all.

    Raises:
        AgentMismatchError: the agent needs other observations or takes other actions.
        ConfigValidationError: the rules would show the answer.
        ValueError: a task does not fit the canvas.
    """
    config = config or EvaluationConfig()
    agent = as_agent(agent)
    params = _params(tasks, rules, config, answers_visible)
    require_agent_fits(agent, params)
    places = _places(tasks, _episodes_per_input(config))
    key = jax.random.key(config.seed)
    episodes = play_episodes(agent, params, places, key, config.batch_size, on_progress)
    return _judge(tasks, episodes, config, action_counts or {})


def _params(tasks: TaskSet, rules: JaxArcConfig, config: EvaluationConfig, answers_visible: bool) -> EnvParams:
    augmentation = config.augmentation if config.votes else AugmentationConfig()
    mode = "train" if answers_visible else "test"
    rules = rules.with_fields(**_ONE_INPUT, mode=mode, augmentation=augmentation)
    if answers_visible:  # where answers may be seen, the tests are what demonstrations are
        tests = tuple(RawTask.of_checked_pairs(task.task_id, task.test, task.test) for task in tasks)
        tasks = TaskSet(tasks.name, tests)
    buffer = tasks.buffer(rules.grid_shape).with_symmetries(augmentation.num_symmetries)
    return EnvParams(buffer, uniform_weights(len(tasks)), rules)


def _places(tasks: TaskSet, per_input: int) -> EpisodeSpec:
    """Every attempt at every test input of every task, in this order."""
    places = [
        (task_index, pair_index, attempt)
        for task_index, task in enumerate(tasks)
        for pair_index in range(len(task.test))
        for attempt in range(per_input)
    ]
    return EpisodeSpec(*np.array(places, np.int32).T)


def _judge(tasks: TaskSet, episodes: Episodes, config: EvaluationConfig, counts: ActionCounts) -> Evaluation:
    submission: dict[str, list[list[np.ndarray]]] = {}
    rows: dict[str, list[list[EpisodeResult]]] = {}
    first, per_input = 0, _episodes_per_input(config)
    for task in tasks:
        submission[task.task_id], rows[task.task_id] = [], []
        for _, answer in task.test:
            here = range(first, first + per_input)
            grids = [_active_area(np.asarray(episodes.grids[i])) for i in here]
            submission[task.task_id].append(majority_vote(grids, config.attempts) if config.votes else grids)
            rows[task.task_id].append([_played(episodes, i, is_right(grids[i - first], answer)) for i in here])
            first += per_input
    score = score_submission(submission, tasks)
    table = tuple(make_row(task_id, score.solved[task_id], played, counts) for task_id, played in rows.items())
    return Evaluation(submission, score, table)


def _active_area(padded: np.ndarray) -> np.ndarray:
    active = padded > PADDING
    return padded[: active[:, 0].sum(), : active[0].sum()]


def _played(episodes: Episodes, place: int, right: bool) -> EpisodeResult:
    return EpisodeResult(
        is_right=right,
        submitted=bool(episodes.submitted[place]),
        steps=int(episodes.steps[place]),
        best_similarity=float(episodes.best_similarity[place]),
    )


def _episodes_per_input(config: EvaluationConfig) -> int:
    return config.votes or config.attempts
