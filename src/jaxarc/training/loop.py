"""The training loop: a few updates in one compiled call, then a report; again until the steps are used up."""

import dataclasses
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import jax
import numpy as np

from jaxarc.training.checkpoint import save_checkpoint
from jaxarc.training.experiment import Experiment
from jaxarc.training.metrics import MetricsFile, Report
from jaxarc.training.pairs import TrainingPairs
from jaxarc.training.run_folder import RunFolder
from jaxarc.training.task_table import write_task_table
from jaxarc.training.updates import Progress, TrainingState, make_params, measure, run_updates, start_training


class TrainingDivergedError(ArithmeticError):
    """A loss is not a finite number any more."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    state: TrainingState
    reports: list[Report]  # the first before learning, the last after it; both measured
    compile_seconds: float
    interrupted: bool  # stopped before its steps were used up


def train(
    experiment: Experiment,
    pairs: TrainingPairs,
    folder: RunFolder | None = None,
    on_report: Callable[[Report], None] = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Train an agent, measuring it on every training pair and every unseen pair.

    Args:
        experiment: all choices.
        pairs: what is played.
        folder: gets the metrics as they come, and at the end the checkpoint and how each learned task went.
        on_report: called with each report; the first comes before learning.
        should_stop: asked after each report.

    Returns:
        The outcome, also after ``KeyboardInterrupt`` or ``should_stop``: what was learned is kept.

    Raises:
        TrainingDivergedError: a loss is not finite; the checkpoint then holds the last good state.
    """
    run = _Run(experiment, pairs, folder, on_report)
    limit = experiment.training.max_seconds
    interrupted = out_of_time = False
    try:
        run.report(Report(update=0, environment_steps=0, seconds=0.0), is_measured=True)
        while run.updates < experiment.num_updates and not out_of_time:
            if interrupted := should_stop():
                break
            run.advance()
            out_of_time = limit is not None and run.seconds >= limit
    except KeyboardInterrupt:
        interrupted = True
    finally:
        run.save()
    run.measure_last()
    return Outcome(run.state, run.reports, run.compile_seconds, interrupted)


class _Run:
    """The host's side of a run: compiled functions, clock, reports and files."""

    def __init__(
        self,
        experiment: Experiment,
        pairs: TrainingPairs,
        folder: RunFolder | None,
        on_report: Callable[[Report], None],
    ):
        self.experiment, self.folder, self.on_report = experiment, folder, on_report
        self.num_train, self.task_ids = pairs.num_train, pairs.learned.task_ids
        self.reports: list[Report] = []
        self.updates = 0
        start = time.perf_counter()
        self.learned = make_params(pairs.learned, experiment.environment)
        self.measured = make_params(pairs.measured, experiment.environment)
        recipe, length = experiment.recipe, experiment.training.updates_per_report
        key = jax.random.key(experiment.training.seed)
        self.state = start_training(key, self.learned, recipe, experiment.curriculum)
        lowered = (
            run_updates.lower(self.state, self.learned, recipe, length),
            measure.lower(self.state.learner.policy, self.measured),
        )
        with ThreadPoolExecutor(len(lowered)) as pool:  # XLA compiles outside of Python's lock
            self.run_updates, self.measure = pool.map(lambda function: function.compile(), lowered)
        self.started = time.perf_counter()
        self.compile_seconds = self.started - start

    @property
    def seconds(self) -> float:
        """Since learning began."""
        return time.perf_counter() - self.started

    def advance(self) -> None:
        """Make one compiled call, keep its result if it is sound, and report it."""
        start = time.perf_counter()
        state, progress = self.run_updates(self.state, self.learned)
        losses = {name: mean.item() for name, mean in progress.losses._asdict().items()}
        duration = time.perf_counter() - start
        each = self.experiment.training.updates_per_report
        if not all(map(math.isfinite, losses.values())):
            raise TrainingDivergedError(
                f"a loss is not finite between updates {self.updates} and {self.updates + each}: {losses}; "
                "lower schedule.learning_rate or agent.max_grad_norm"
            )
        self.state, self.updates = state, self.updates + each
        numbers = len(self.reports)
        last = self.updates >= self.experiment.num_updates
        self.report(
            self._describe(progress, losses, each * self.experiment.agent.samples_per_update / duration),
            is_measured=last or numbers % self.experiment.training.reports_per_evaluation == 0,
        )

    def report(self, report: Report, is_measured: bool) -> None:
        """Measure if wanted, and hand the report on."""
        if is_measured:
            report = dataclasses.replace(report, **self._solve_rates())
        self.reports.append(report)
        if self.folder is not None:
            MetricsFile(self.folder.metrics).append(report)
        self.on_report(report)

    def measure_last(self) -> None:
        """Make sure that the last report is measured, also after an interruption."""
        last = self.reports[-1]
        if last.evaluation_solve_rate is None or last.update != self.updates:
            steps = self.updates * self.experiment.agent.samples_per_update
            self.report(Report(update=self.updates, environment_steps=steps, seconds=self.seconds), is_measured=True)

    def save(self) -> None:
        if self.folder is not None:
            save_checkpoint(self.folder.checkpoint, self.state, self.experiment.as_dict())
            write_task_table(self.folder.tasks, self.task_ids, self.state.curriculum)

    def _solve_rates(self) -> dict[str, float]:
        solved = np.asarray(self.measure(self.state.learner.policy, self.measured))
        rates = solved[: self.num_train].mean(), solved[self.num_train :].mean()
        return {"train_solve_rate": float(rates[0]), "evaluation_solve_rate": float(rates[1])}

    def _describe(self, progress: Progress, losses: dict[str, float], steps_per_second: float) -> Report:
        episodes = progress.episodes
        ended = episodes.ended.item()
        share = lambda total: total.item() / ended if ended else None
        return Report(
            update=self.updates,
            environment_steps=self.updates * self.experiment.agent.samples_per_update,
            seconds=self.seconds,
            steps_per_second=steps_per_second,
            episodes=ended,
            mean_return=share(episodes.return_sum),
            mean_length=share(episodes.length_sum),
            episode_solve_rate=share(episodes.solved),
            tasks_played=progress.tasks_played.item(),
            effective_tasks=progress.effective_tasks.item(),
            **losses,
        )
