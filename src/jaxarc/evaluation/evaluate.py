"""Evaluate an agent by the rules of ARC: k attempts at each test input, whose answer it never sees.

:func:`evaluate` plays one episode per attempt (or per vote), turns the final grids into a submission, scores it, and
sums up each task in a :class:`TaskRow`.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import jax
import numpy as np

from jaxarc.compilation import require_own_jax
from jaxarc.config import AugmentationConfig, ConfigValidationError, EvaluationConfig, JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.datasets.catalogue import GivenTasks
from jaxarc.envs.params import EnvParams
from jaxarc.evaluation.agent import Agent, EpisodeSpec, as_agent
from jaxarc.evaluation.episodes import Episodes, batch_of, play_episodes
from jaxarc.evaluation.submission import (
    Score,
    Submission,
    is_right,
    majority_vote,
    score_submission,
    solved_outputs,
)
from jaxarc.evaluation.task_rows import EpisodeResult, TaskRow, make_row
from jaxarc.registration import tasks_and_rules
from jaxarc.tasks import uniform_weights
from jaxarc.tasks.raw_task import crop_padding
from jaxarc.types import PRNGKey
from jaxarc.unroll import Policy

_RULES_OF_ARC: Final = {  # whatever the config says: one pair, from its input, one submit, no score of the submit
    "start_grid": "input",
    "max_submissions": 1,
    "score_on_submit": False,
    "allow_demo_switching": False,
    "allow_test_switching": False,
}


@dataclass(frozen=True)
class Evaluation:
    """The submission of an agent or a solver, its score, and a row for each task."""

    submission: Submission
    score: Score | None  # None: the answers are unknown, as those of a hidden test set
    rows: tuple[TaskRow, ...]  # in the order of the task set
    answers_visible: bool = False  # to the agent, so that the score is none by the rules of ARC

    def __repr__(self) -> str:
        visible = ", answers_visible=True: no score by the rules of ARC" if self.answers_visible else ""
        return f"Evaluation({len(self.rows)} tasks, {'answers unknown' if self.score is None else self.score}{visible})"


def evaluate(
    agent: Agent | Policy,
    tasks: TaskSet | str | Path | GivenTasks,
    rules: JaxArcConfig | None = None,
    config: EvaluationConfig | None = None,
    *,
    answers_visible: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    flat_actions: bool | None = None,
    **fields: Any,
) -> Evaluation:
    """Let an agent submit grids for every test input of a task set, and score them.

    An attempt is an episode in test mode on one test pair, from its input: the grid that the agent submits, or the
    working grid when time runs out. With ``config.votes`` each episode plays the task augmented, the augmentation of
    its grid is undone, and the most frequent grids become the attempts. Scoring compares grids on the host, outside the
    agent; where answers are unknown there is no score.

    Args:
        agent: a policy ``(key, observation) -> action`` of one environment, or an :class:`Agent` with a memory. An
            action is structured, or an integer, the flat action of ``make(..., flat_actions=True)``.
        tasks: a task set, or whatever :func:`jaxarc.make` makes one of.
        rules: canvas, actions, observations, length of an episode, as in ``params.config``; by default those that
            ``make`` has. Pairs, starts, submits and augmentation are those described above, whatever it says.
        config: attempts, votes, seed, batch size.
        answers_visible: show the answers, as ``rules.observation`` says. Such a score measures how well the agent edits
            one grid into another, and is not a score by the rules of ARC. Demonstrations, if shown, are then the tests.
        on_progress: called with episodes done and episodes in all.
        flat_actions: as of ``make``, and of no effect: either form of an action is understood.
        **fields: changes of the rules, as ``make`` takes them, but for those that are described above.

    Raises:
        AgentMismatchError: the agent fails, needs other observations or takes other actions.
        ConfigValidationError: the rules would show the answer, or a field is one that an evaluation has to choose.
        UnknownAnswerError: ``answers_visible``, and an answer is unknown.
        TypeError: the tasks are those of a generator, which have no end.
        ValueError: a task does not fit the canvas, or the actions have no numbers and the agent returns one.
    """
    require_own_jax()
    config = config or EvaluationConfig()
    _require_free(fields, config, answers_visible)
    found, rules = tasks_and_rules(tasks, rules, fields)
    if not isinstance(found, TaskSet):
        raise TypeError(
            f"evaluate plays each test of a task set, and {tasks!r:.100} makes tasks without end; evaluate on a data "
            "set, or on some of its tasks by jaxarc.datasets.sample_task_set"
        )
    planned = plan_evaluation(agent, found, rules, config, answers_visible)
    return planned.score([planned.play(on_progress)])


class PlannedEvaluation(NamedTuple):
    """E episodes, and what they are played and scored by."""

    agent: Agent
    tasks: TaskSet
    params: EnvParams
    specs: EpisodeSpec  # [E]
    config: EvaluationConfig
    answers_visible: bool

    def play(self, on_progress: Callable[[int, int], None] = lambda done, total: None) -> Episodes:
        """Play all episodes, see :func:`play_episodes`."""
        return play_episodes(self.agent, self.params, self.specs, self._key, self.config.batch_size, on_progress)

    def play_batch(self, number: int) -> Episodes:
        """Play the batch of this number, from 0 on, as :meth:`play` does: by the same program, with the same bits."""
        specs = batch_of(self.specs, number, self.config.batch_size)
        return play_episodes(self.agent, self.params, specs, self._key, self.config.batch_size)

    def score(self, batches: Sequence[Episodes]) -> Evaluation:
        """Score all episodes, in the order of the specs; what the last batch repeats is left out."""
        episodes = Episodes(
            *(np.concatenate(parts)[: len(self.specs.task_index)] for parts in zip(*batches, strict=True))
        )
        return dataclasses.replace(_score(self.tasks, episodes, self.config), answers_visible=self.answers_visible)

    @property
    def num_batches(self) -> int:
        return math.ceil(len(self.specs.task_index) / self.config.batch_size)

    @property
    def _key(self) -> PRNGKey:
        return jax.random.key(self.config.seed)


def plan_evaluation(
    agent: Agent | Policy, tasks: TaskSet, rules: JaxArcConfig, config: EvaluationConfig, answers_visible: bool
) -> PlannedEvaluation:
    """Return the episodes of :func:`evaluate`, which has these arguments and errors."""
    if rules.observation.reveal_target and not answers_visible:
        raise ConfigValidationError(
            "observation.reveal_target=True shows the answer, which an evaluation hides; write answers_visible=True to "
            "measure how well the agent edits towards it, which is no score by the rules of ARC"
        )
    tasks = tasks.fit(rules.grid_shape, rules.dataset.too_large)
    params = _make_params(tasks, rules, config, answers_visible)
    specs = _make_specs(tasks, _episodes_per_input(config))
    return PlannedEvaluation(as_agent(agent), tasks, params, specs, config, answers_visible)


def _require_free(fields: Mapping[str, Any], config: EvaluationConfig, answers_visible: bool) -> None:
    """Refuse fields that would have no effect, since an evaluation chooses them itself."""
    chosen = {**_RULES_OF_ARC, "mode": _mode(answers_visible), **dataclasses.asdict(_augmentation(config))}
    for name, value in fields.items():
        if name == "augmentation" or (name in chosen and value != chosen[name]):
            instead = {"mode": "answers_visible shows the answers"}.get(name, "augmentations are for config.votes")
            raise ConfigValidationError(
                f"evaluate chooses {name} itself, {chosen.get(name, 'by config')!r} here, got {value!r:.100}; leave it "
                f"out{'' if name in _RULES_OF_ARC else f', {instead}'}"
            )


def _mode(answers_visible: bool) -> str:
    return "train" if answers_visible else "test"


def _augmentation(config: EvaluationConfig) -> AugmentationConfig:
    """Only votes are about augmented tasks: each sees the task turned or recolored, and its answer is turned back."""
    return config.augmentation if config.votes else AugmentationConfig()


def _make_params(tasks: TaskSet, rules: JaxArcConfig, config: EvaluationConfig, answers_visible: bool) -> EnvParams:
    augmentation = _augmentation(config)
    rules = rules.with_fields(**_RULES_OF_ARC, mode=_mode(answers_visible), augmentation=augmentation)
    if answers_visible:  # the environment shows answers of demonstrations only, so each test becomes one
        tests = tuple(dataclasses.replace(task, train=task.test) for task in tasks)
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


def _score(tasks: TaskSet, episodes: Episodes, config: EvaluationConfig) -> Evaluation:
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
            grids = [crop_padding(np.asarray(episodes.grids[first + i])) for i in range(per_input)]
            submission[task.task_id].append(majority_vote(grids, config.attempts) if config.votes else grids)
            played = [_result(episodes, first + i, is_right(grid, answer)) for i, grid in enumerate(grids)]
            results[task.task_id].append(played)
            first += per_input
    score = score_submission(submission, tasks) if tasks.has_answers else None
    rows = []
    for task in tasks:
        solved = solved_outputs(submission[task.task_id], task) if task.has_answers else None
        rows.append(make_row(task.task_id, solved, results[task.task_id]))
    return Evaluation(submission, score, tuple(rows))


def _result(episodes: Episodes, index: int, right: bool) -> EpisodeResult:
    return EpisodeResult(
        is_right=right,
        submitted=bool(episodes.submitted[index]),
        steps=int(episodes.steps[index]),
        best_similarity=float(episodes.best_similarity[index]),
    )


def _episodes_per_input(config: EvaluationConfig) -> int:
    return config.votes or config.attempts
