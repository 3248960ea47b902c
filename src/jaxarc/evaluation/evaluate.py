"""Evaluate an agent by the rules of ARC: k attempts at each test input, whose answer it never sees.

:func:`evaluate` plays one episode per attempt (or per vote), turns the final grids into a submission, scores it, and
sums up each task in a :class:`TaskRow`.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from jaxarc.compilation import require_own_jax
from jaxarc.config import AugmentationConfig, ConfigValidationError, EvaluationConfig, JaxArcConfig
from jaxarc.constants import PADDING
from jaxarc.datasets import TaskSet
from jaxarc.datasets.catalogue import GivenTasks
from jaxarc.datasets.task_set import choose_sides
from jaxarc.envs.params import EnvParams
from jaxarc.evaluation.agent import Agent, EpisodeSpec, as_agent, require_canvas_fits
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
        config: attempts, votes, seed, batch size; the canvases of an agent that takes any, where it sees the answers.
        answers_visible: show the answers, as ``rules.observation`` says. Such a score measures how well the agent edits
            one grid into another, and is not a score by the rules of ARC. Demonstrations, if shown, are then the tests.
        on_progress: called with episodes done and episodes in all.
        flat_actions: as of ``make``, and of no effect: either form of an action is understood.
        **fields: changes of the rules, as ``make`` takes them, but for those that are described above.

    Raises:
        AgentMismatchError: the agent fails, needs other observations or takes other actions, or is for one canvas
            where there are several.
        ConfigValidationError: the rules or the choice of a canvas would show the answer, a canvas is larger than that
            of the rules, or a field is one that an evaluation has to choose.
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
    return planned.score(planned.play(on_progress))


class EpisodesOnCanvas(NamedTuple):
    """The episodes that are played on one canvas."""

    params: EnvParams  # their tasks, and the rules with this canvas
    specs: EpisodeSpec  # [E_g]; tasks are numbered as in ``params``
    places: Int[np.ndarray, " T_g"]  # of these tasks in the whole set


class PlannedEvaluation(NamedTuple):
    """E episodes, and what they are played and scored by."""

    agent: Agent
    tasks: TaskSet
    canvases: Sequence[EpisodesOnCanvas]  # the smallest first
    config: EvaluationConfig
    answers_visible: bool

    def play(self, on_progress: Callable[[int, int], None] = lambda done, total: None) -> list[Episodes]:
        """Play all episodes, those of one canvas after those of another, see :func:`play_episodes`."""
        played = []
        for canvas in self.canvases:
            before = sum(len(episodes.steps) for episodes in played)
            tell = lambda done, _, before=before: on_progress(before + done, self.num_episodes)
            played.append(self._play(canvas, canvas.specs, tell))
        return played

    def play_batch(self, number: int) -> Episodes:
        """Play the batch of this number, from 0 on, as :meth:`play` does: by the same program, with the same bits."""
        size = self.config.batch_size
        canvas, first = self._batches[number]
        played = self._play(canvas, batch_of(canvas.specs, first // size, size))
        num_episodes = len(canvas.specs.task_index) - first  # what the last batch repeats is left out
        return Episodes(*(part[:num_episodes] for part in played))

    def score(self, batches: Sequence[Episodes]) -> Evaluation:
        """Score all episodes, in the order of tasks, test inputs and attempts, from those of all batches."""
        padded = [batch._replace(grids=_pad(np.asarray(batch.grids), *self.tasks.grid_shape)) for batch in batches]
        # With canvases of the tasks 1 3 and 0 2, one episode each, the episodes 2 0 3 1 are those of tasks 0 1 2 3.
        task_indices = np.concatenate([canvas.places[canvas.specs.task_index] for canvas in self.canvases])
        order = np.argsort(task_indices, stable=True)
        episodes = Episodes(*(np.concatenate(parts)[order] for parts in zip(*padded, strict=True)))
        return dataclasses.replace(_score(self.tasks, episodes, self.config), answers_visible=self.answers_visible)

    @property
    def num_episodes(self) -> int:
        return sum(len(canvas.specs.task_index) for canvas in self.canvases)

    @property
    def num_batches(self) -> int:
        return len(self._batches)

    @property
    def _batches(self) -> list[tuple[EpisodesOnCanvas, int]]:
        """The canvas of each batch, and the number of its first episode there."""
        size = self.config.batch_size
        return [(each, first) for each in self.canvases for first in range(0, len(each.specs.task_index), size)]

    def _play(
        self, canvas: EpisodesOnCanvas, specs: EpisodeSpec, on_progress: Callable[[int, int], None] = lambda *_: None
    ) -> Episodes:
        size = self.config.batch_size
        return play_episodes(self.agent, canvas.params, specs, self._key, size, on_progress, canvas.places)

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
    rules = rules.with_fields(**_RULES_OF_ARC, mode=_mode(answers_visible), augmentation=_augmentation(config))
    played = tasks
    if answers_visible:  # the environment shows answers of demonstrations only, so each test becomes one
        tests = tuple(dataclasses.replace(task, train=task.test) for task in tasks)
        played = TaskSet(tasks.name, tests, tasks.canvas)
    agent, canvases = as_agent(agent), []
    for group in _split(played, rules, config, answers_visible):
        params = _make_params(group, rules)
        places = np.array([tasks.index_of(task_id) for task_id in group.task_ids])
        canvases.append(EpisodesOnCanvas(params, _make_specs(group, _episodes_per_input(config)), places))
        if config.canvases:
            require_canvas_fits(agent, params)
    return PlannedEvaluation(agent, tasks, canvases, config, answers_visible)


def _split(tasks: TaskSet, rules: JaxArcConfig, config: EvaluationConfig, answers_visible: bool) -> tuple[TaskSet, ...]:
    """Split tasks by the canvases that hold them, the smallest first; they are all on one unless the config says so."""
    if not config.canvases:
        return (tasks,)
    if not answers_visible:
        raise ConfigValidationError(
            f"canvases={config.canvases!r} would tell the agent about the size of a hidden answer, which the smallest "
            "canvas of its task has to hold, too; leave canvases empty, or write answers_visible=True"
        )
    groups = tasks.by_size(choose_sides(config.canvases, tasks))
    if max(groups[-1].grid_shape) > min(rules.grid_shape):
        height, width = rules.grid_shape
        raise ConfigValidationError(
            f"canvases must fit the canvas of the rules, {height}x{width}, got {groups[-1].grid_shape[0]} of "
            f"canvases={config.canvases!r}"
        )
    return groups


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


def _make_params(tasks: TaskSet, rules: JaxArcConfig) -> EnvParams:
    """Put tasks on the device, on their own canvas."""
    height, width = tasks.grid_shape
    buffer = tasks.buffer().with_symmetries(rules.augmentation.num_symmetries)
    rules = rules.with_fields(max_grid_height=height, max_grid_width=width)
    return EnvParams(buffer, uniform_weights(len(tasks)), rules)


def _pad(grids: Int[np.ndarray, "B h w"], height: int, width: int) -> Int[np.ndarray, "B H W"]:
    more = ((0, 0), (0, height - grids.shape[1]), (0, width - grids.shape[2]))
    return np.pad(grids, more, constant_values=PADDING)


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
