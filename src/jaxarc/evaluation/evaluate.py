"""Evaluate an agent by the rules of ARC: k attempts at each test input, whose answer it never sees.

:func:`evaluate` plays one episode per attempt (or per vote), turns the final grids into a submission, scores it, and
sums up each task in a :class:`TaskRow`, because a mean hides that 3 of 400 tasks are solved.
"""

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
from jaxarc.tasks import RawTask, uniform_weights
from jaxarc.unroll import Policy

ActionCounts: TypeAlias = Mapping[tuple[str, int], int]
"""By task id and index of the test input: how many actions an expert took."""

_RULES_OF_ARC: Final = {  # whatever the config says: one pair, from its input, one submit, no score of the submit
    "start_grid": "input",
    "max_submissions": 1,
    "score_on_submit": False,
    "allow_demo_switching": False,
    "allow_test_switching": False,
}


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
    solved_outputs: int  # of these, with a right attempt in the submission
    attempts: int  # episodes played: every attempt, or every vote, at every test input
    solves: int  # of these, whose grid is the answer
    submitted: int  # of these, ended by the agent; the others ran out of time
    first_solving_step: int | None  # fewest steps of an episode that solved; None: none did
    best_similarity: float  # 0 .. 1, of any grid in any episode with the answer
    mean_steps: float  # of an episode
    efficiency: float | None  # expert's actions over fewest steps, mean of the solved outputs whose count is known


@dataclass(frozen=True)
class Evaluation:
    """The submission of an agent, its score, and a row for each task."""

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
    """Let an agent submit grids for every test input of a task set, and score them.

    An attempt is an episode in test mode on one test pair, from its input: the grid that the agent submits, or the
    working grid when time runs out. With ``config.votes`` each episode plays the task augmented, the augmentation of
    its grid is undone, and the most frequent grids become the attempts. Scoring compares grids on the host, outside the
    agent.

    Args:
        agent: a policy ``(key, observation) -> action`` of one environment, or an :class:`Agent` with a memory.
        tasks: every task must fit the canvas of ``rules``.
        rules: canvas, actions, observations, length of an episode. Pairs, starts, submits and augmentation are those
            described above, whatever it says.
        config: attempts, votes, seed, batch size.
        answers_visible: show the answers, as ``rules.observation`` says. Such a score measures how well the agent edits
            one grid into another, and is not a score by the rules of ARC. Demonstrations, if shown, are then the tests.
        action_counts: number of actions of an expert, for the efficiency.
        on_progress: called with episodes done and episodes in all.

    Raises:
        AgentMismatchError: the agent needs other observations or takes other actions.
        ConfigValidationError: the rules would show the answer.
        ValueError: a task does not fit the canvas.
    """
    config = config or EvaluationConfig()
    agent = as_agent(agent)
    params = _make_params(tasks, rules, config, answers_visible)
    require_agent_fits(agent, params)
    specs = _make_specs(tasks, _episodes_per_input(config))
    key = jax.random.key(config.seed)
    episodes = play_episodes(agent, params, specs, key, config.batch_size, on_progress)
    return _score(tasks, episodes, config, action_counts or {})


def make_row(
    task_id: str, solved: Sequence[bool], results: Sequence[Sequence[EpisodeResult]], counts: ActionCounts
) -> TaskRow:
    """Sum up the episodes of one task.

    Example of the efficiency: a task has two test outputs, solved in 8 and in 5 steps at best, and an expert took 6
    actions at the first; the count of the second is not known. The efficiency is 6 / 8.

    Args:
        task_id: of the task.
        solved: of each test output, whether an attempt in the submission is right.
        results: the episodes at each test input.
        counts: number of actions of an expert, where that is known.
    """
    episodes = [episode for at_input in results for episode in at_input]
    # For each test input the fewest steps of an episode that solved it; inputs that nobody solved have no ratio.
    fewest = [min((e.steps for e in at_input if e.is_right), default=None) for at_input in results]
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


def _make_params(tasks: TaskSet, rules: JaxArcConfig, config: EvaluationConfig, answers_visible: bool) -> EnvParams:
    # Only votes are about augmented tasks: each sees the task turned or recolored, and its answer is turned back.
    augmentation = config.augmentation if config.votes else AugmentationConfig()
    mode = "train" if answers_visible else "test"
    rules = rules.with_fields(**_RULES_OF_ARC, mode=mode, augmentation=augmentation)
    if answers_visible:  # the environment shows answers of demonstrations only, so each test becomes one
        tests = tuple(RawTask.of_checked_pairs(task.task_id, task.test, task.test) for task in tasks)
        tasks = TaskSet(tasks.name, tests)
    buffer = tasks.buffer(rules.grid_shape).with_symmetries(augmentation.num_symmetries)
    return EnvParams(buffer, uniform_weights(len(tasks)), rules)


def _make_specs(tasks: TaskSet, per_input: int) -> EpisodeSpec:
    """List every attempt at every test input of every task, the attempts of one input next to each other."""
    specs = [
        (task_index, pair_index, attempt_index)
        for task_index, task in enumerate(tasks)
        for pair_index in range(len(task.test))
        for attempt_index in range(per_input)
    ]
    return EpisodeSpec(*np.array(specs, np.int32).T)


def _score(tasks: TaskSet, episodes: Episodes, config: EvaluationConfig, counts: ActionCounts) -> Evaluation:
    """Make a submission of the final grids, in the order of :func:`_make_specs`, and score it."""
    submission: dict[str, list[list[np.ndarray]]] = {}
    results: dict[str, list[list[EpisodeResult]]] = {}
    per_input = _episodes_per_input(config)
    first = 0
    for task in tasks:
        submission[task.task_id] = []
        results[task.task_id] = []
        for _, answer in task.test:
            # ``first`` runs over the episodes in the order of the specs: task, test input, attempt. With 2 attempts and
            # 2 test inputs the first task has the episodes 0 1 and 2 3.
            grids = [_active_area(np.asarray(episodes.grids[first + i])) for i in range(per_input)]
            submission[task.task_id].append(majority_vote(grids, config.attempts) if config.votes else grids)
            played = [_result(episodes, first + i, is_right(grid, answer)) for i, grid in enumerate(grids)]
            results[task.task_id].append(played)
            first += per_input
    score = score_submission(submission, tasks)
    rows = tuple(make_row(task_id, score.solved[task_id], of_task, counts) for task_id, of_task in results.items())
    return Evaluation(submission, score, rows)


def _active_area(padded: np.ndarray) -> np.ndarray:
    # The grid begins at the top left, so its first column and row tell how large it is.
    active = padded > PADDING
    return padded[: active[:, 0].sum(), : active[0].sum()]


def _result(episodes: Episodes, index: int, right: bool) -> EpisodeResult:
    return EpisodeResult(
        is_right=right,
        submitted=bool(episodes.submitted[index]),
        steps=int(episodes.steps[index]),
        best_similarity=float(episodes.best_similarity[index]),
    )


def _episodes_per_input(config: EvaluationConfig) -> int:
    return config.votes or config.attempts
