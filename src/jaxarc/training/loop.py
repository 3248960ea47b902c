"""The training loop: a few updates in one compiled call, then a report; again until the steps are used up."""

import dataclasses
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxarc.agents.cloning import CloningExamples
from jaxarc.config import ConfigValidationError
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.errors import JaxarcError
from jaxarc.evaluation import TaskResults
from jaxarc.parallel import any_process, broadcast_flag, data_mesh, is_primary, replicate, to_host
from jaxarc.prng import keys_of_seeds
from jaxarc.training.cloning import TraceExampleError, load_examples
from jaxarc.training.experiment import Experiment
from jaxarc.training.metrics import MetricsFile, Report
from jaxarc.training.pairs import TrainingPairs
from jaxarc.training.run_folder import RunFolder
from jaxarc.training.run_state import (
    RunState,
    load_run_state,
    require_same_run,
    require_same_start,
    require_unused,
    save_run_state,
)
from jaxarc.training.tables import write_measured_table, write_task_table
from jaxarc.training.updates import (
    Progress,
    TrainingState,
    answer_shown_params,
    make_params,
    measure,
    place_state,
    run_updates,
    start_training,
)


class TrainingDivergedError(JaxarcError, ArithmeticError):
    """A loss or a gradient is not a finite number any more."""


@dataclass(frozen=True)
class TrainResult:
    """How a run ended."""

    state: TrainingState  # of all seeds, leaves [K, ...]
    reports: list[Report]  # the first of each seed before learning, the last after it; both measured
    compile_seconds: float
    interrupted: bool  # stopped before its steps were used up
    played: TaskResults | None = None  # of the last state on each measured pair, [K, T]; None: it was measured before


def train(
    experiment: Experiment,
    pairs: TrainingPairs,
    folder: RunFolder | None = None,
    on_report: Callable[[Report], None] = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    resume: bool = False,
) -> TrainResult:
    """Train an agent of each seed, measuring it on every training pair and every unseen pair.

    Args:
        experiment: all choices.
        pairs: what is played.
        folder: gets the metrics as they come, a checkpoint now and then, and at the end how each learned task went.
        on_report: called with each new report; the first ones come before learning.
        should_stop: asked after each compiled call; of several processes, all stop as soon as one of them wants to.
        resume: go on from the folder's newest checkpoint, or from the start where there is none yet. What is computed,
            and so what is written but for the clocks, is the same as without an interruption.

    Returns:
        The outcome, also after ``KeyboardInterrupt`` or ``should_stop``: what was learned is kept.

    Raises:
        TrainingDivergedError: a loss is not finite; the newest checkpoint then holds the last good state.
        RunFolderError: another process uses the folder, or it holds a run that is not to be resumed.
        IncompatibleRunError: the run to resume was started with other choices.
        CheckpointError: every checkpoint of the run is damaged.
        ProcessMismatchError: the processes of the run are not alike.
    """
    require_same_run(experiment)
    with nullcontext() if folder is None else folder.lock():
        if folder is not None and not resume:
            require_unused(folder)
        run = _Run(experiment, pairs, folder, on_report, resume)
        if run.is_finished:
            return TrainResult(run.run_state.state, run.run_state.reports, 0.0, interrupted=False)
        return _learn(run, should_stop)


def training_mesh(experiment: Experiment) -> Mesh | None:
    """Return the devices that share the work of a run; None where one does all of it.

    Raises:
        ValueError: there are fewer devices than the experiment asks for, or, as a ConfigValidationError, the work
            cannot be split evenly over all there are.
    """
    choice = experiment.parallel
    if choice.num_devices == 1 and choice.over == "seeds":
        return None
    mesh = data_mesh(choice.num_devices or None)
    if problems := experiment.uneven_over(mesh.size):
        raise ConfigValidationError("; ".join(problems))
    return mesh


def _learn(run: "_Run", should_stop: Callable[[], bool]) -> TrainResult:
    run.compile()
    interrupted, is_agreed = False, jax.process_count() == 1
    try:
        if not run.run_state.reports:
            run.report_start()
        while not run.is_finished and not any_process(run.is_out_of_time):
            if interrupted := any_process(should_stop()):
                break
            run.advance()
            run.save_if_due()
        is_agreed = True
    except KeyboardInterrupt:
        if not is_agreed:
            raise
        interrupted = True
    except TrainingDivergedError:
        is_agreed = True  # all processes see the same losses
        raise
    finally:
        if is_agreed:  # saving needs all processes, and the others do not hear of what went wrong here alone
            run.save_end()
    run.measure_end()
    return TrainResult(run.run_state.state, run.run_state.reports, run.compile_seconds, interrupted, run.played)


class _Run:
    """The host's side of a run: compiled functions, clock, reports and files."""

    def __init__(
        self,
        experiment: Experiment,
        pairs: TrainingPairs,
        folder: RunFolder | None,
        on_report: Callable[[Report], None],
        resume: bool,
    ):
        self.experiment, self.folder, self.on_report = experiment, folder, on_report
        self.writes = folder if is_primary() else None  # of several processes one keeps the log; all save
        self.pairs, self.num_train, self.task_ids = pairs, pairs.num_train, pairs.train_ids
        self.played: TaskResults | None = None
        self.created = time.perf_counter()
        self.mesh, self.over = training_mesh(experiment), experiment.parallel.over
        self.learned = make_params(pairs.train, experiment.environment)
        self.measured = make_params(pairs.eval, experiment.environment)
        self.run_state = (self._load(folder) if folder is not None and resume else None) or RunState(self._start())
        require_same_start(self.learned, self.measured, self.run_state.state)
        self._spread()
        self.seconds_saved = self.run_state.seconds  # when the newest checkpoint was written

    @property
    def is_finished(self) -> bool:
        return self.run_state.updates >= self.experiment.num_updates

    @property
    def is_out_of_time(self) -> bool:
        limit = self.experiment.training.max_seconds
        return limit is not None and self.seconds >= limit

    @property
    def seconds(self) -> float:
        """Since learning began, without compilation, saving and the time between two processes."""
        return time.perf_counter() - self.started

    def compile(self) -> None:
        """Compile what the loop calls, and start the clock."""
        state, length = self.run_state.state, self.experiment.training.updates_per_report
        lowered = (
            run_updates.lower(state, self.learned, self.experiment.train_config, length, self.mesh, self.over),
            measure.lower(state.policy, self.measured, self.mesh, self.over),
        )
        with ThreadPoolExecutor(len(lowered)) as pool:  # XLA compiles outside of Python's lock
            self.run_updates, self.measure = pool.map(lambda function: function.compile(), lowered)
        now = time.perf_counter()
        self.started, self.compile_seconds = now - self.run_state.seconds, now - self.created

    def report_start(self) -> None:
        self._step_to(self.run_state.state, 0, [{} for _ in self.experiment.training.seeds], is_measured=True)

    def advance(self) -> None:
        """Make one compiled call, keep its result if it is sound, and report it."""
        start = time.perf_counter()
        state, progress = self.run_updates(self.run_state.state, self.learned)
        progress = to_host(progress)
        duration = time.perf_counter() - start
        self._require_finite(progress)
        each = self.experiment.training.updates_per_report
        updates = self.run_state.updates + each
        speed = each * self.experiment.agent.samples_per_update / duration
        facts = [_describe(progress, k, speed) for k in range(self.experiment.training.num_seeds)]
        number = len(self.run_state.reports) // len(facts)
        is_measured = number % self.experiment.training.reports_per_evaluation == 0
        self._step_to(state, updates, facts, is_measured or updates >= self.experiment.num_updates)

    def save_if_due(self) -> None:
        """Save now and then, better after a measured report; the end has a call of its own."""
        waited, enough = self.seconds - self.seconds_saved, self.experiment.checkpoint.min_seconds
        is_due = waited >= (enough if self.run_state.score is not None else 2 * enough)
        if not self.is_finished and broadcast_flag(is_due):
            self._save()

    def save_end(self) -> None:
        """Write how each task and each measured pair went, and then the checkpoint: where that is, the run is whole."""
        curricula = to_host(self.run_state.state.curriculum)
        if self.writes is not None:
            write_task_table(self.writes.tasks, self.experiment.training.seeds, self.task_ids, curricula)
        self._write_measured()
        self._save()

    def measure_end(self) -> None:
        """Measure the last state if that did not happen; a run that goes on later takes this report back."""
        if self.run_state.score is None:
            facts = [{} for _ in self.experiment.training.seeds]
            self._step_to(self.run_state.state, self.run_state.updates, facts, is_measured=True)
        elif self.played is None:  # it was measured by a process that was killed before it wrote the table, perhaps
            self.played = to_host(self.measure(self.run_state.state.policy, self.measured))
        self._write_measured()

    def _write_measured(self) -> None:
        """Write how each measured pair went, if it is the last state that played them."""
        if self.writes is not None and self.played is not None and self.run_state.score is not None:
            seeds = self.experiment.training.seeds
            write_measured_table(self.writes.measured, seeds, self.pairs.eval.task_ids, self.played)

    def _spread(self) -> None:
        """Put every agent, or its part, on its device, and the tasks on all."""
        if self.mesh is not None:
            self.learned, self.measured = replicate((self.learned, self.measured), self.mesh)
            state = place_state(self.run_state.state, self.mesh, self.over)
            self.run_state = dataclasses.replace(self.run_state, state=state)

    def _start(self) -> TrainingState:
        train_config = self.experiment.train_config
        examples = self._examples() if train_config.cloning.traces else None
        return start_training(self._keys(), self.learned, train_config, self.experiment.curriculum, examples)

    def _examples(self) -> CloningExamples:
        """Replay the traces that the policies shall imitate."""
        learned, train_config = self.pairs.train, self.experiment.train_config
        if not isinstance(learned, TaskSet):
            raise TraceExampleError(
                f"cloning.traces={train_config.cloning.traces!r} are of tasks that stand in files, but "
                f"task.train_dataset={self.experiment.task.train_dataset!r} makes new ones; leave cloning.traces out"
            )
        tasks, practice = (
            load_tasks(self.experiment.task.train_dataset),
            answer_shown_params(self.learned, train_config),
        )
        return load_examples(train_config.cloning.traces, tasks, learned, practice, train_config.agent.gamma)

    def _load(self, folder: RunFolder) -> RunState[TrainingState, Report] | None:
        train_config, curriculum = self.experiment.train_config, self.experiment.curriculum
        start = lambda keys, params: start_training(keys, params, train_config, curriculum)
        return load_run_state(folder, self.experiment, jax.eval_shape(start, self._keys(), self.learned), Report)

    def _keys(self) -> jax.Array:
        return keys_of_seeds(self.experiment.training.seeds)

    def _step_to(self, state: TrainingState, updates: int, facts: list[dict[str, Any]], is_measured: bool) -> None:
        """Report on a state with a line for each seed, and make it the run's; an interruption leaves the one before."""
        seconds, seeds = self.seconds, self.experiment.training.seeds
        if is_measured:
            facts = [{**told, **rates} for told, rates in zip(facts, self._solve_rates(state), strict=True)]
        steps = updates * self.experiment.agent.samples_per_update
        reports = [Report(updates, steps, seconds, seed, **told) for seed, told in zip(seeds, facts, strict=True)]
        if self.writes is not None:
            MetricsFile(self.writes.metrics, Report).append(reports)
        self.run_state = RunState(state, updates, [*self.run_state.reports, *reports])
        for report in reports:
            self.on_report(report)

    def _solve_rates(self, state: TrainingState) -> list[dict[str, float]]:
        """Return the rates of each seed; where tasks are made as they are needed there are no training pairs."""
        self.played = played = to_host(self.measure(state.policy, self.measured))
        solved = np.asarray(played.solved)
        parts = {"train_solve_rate": solved[:, : self.num_train], "evaluation_solve_rate": solved[:, self.num_train :]}
        return [{name: part[k].mean().item() for name, part in parts.items() if part.size} for k in range(len(solved))]

    def _save(self) -> None:
        """Save what there is, without moving the clock."""
        if self.folder is not None:
            self.seconds_saved, begun = self.seconds, time.perf_counter()
            run_state = dataclasses.replace(self.run_state, seconds=self.seconds_saved)
            save_run_state(self.folder, self.experiment, run_state, Report)
            self.started += time.perf_counter() - begun

    def _require_finite(self, progress: Progress) -> None:
        for k, seed in enumerate(self.experiment.training.seeds):
            losses = {name: value[k].item() for name, value in _losses_of(progress).items()}
            if not all(map(math.isfinite, losses.values())):
                raise TrainingDivergedError(self._say_diverged(seed, losses))

    def _say_diverged(self, seed: int, losses: dict[str, float]) -> str:
        first = self.run_state.updates
        files = (
            ""
            if self.folder is None
            else (f"the last good checkpoint is {self.folder.checkpoints.at(first)}, the config {self.folder.config}; ")
        )
        return (
            f"a loss or gradient of seed {seed} is not finite between updates {first} and "
            f"{first + self.experiment.training.updates_per_report}: {losses}; {files}"
            "lower schedule.learning_rate or agent.max_grad_norm and train again"
        )


def _describe(progress: Progress, k: int, steps_per_second: float) -> dict[str, Any]:
    """Return what a compiled call tells about one of its agents."""
    mine = jax.tree.map(lambda x: x[k].item(), progress)
    episodes = mine.episodes
    share = lambda total: total / episodes.ended if episodes.ended else None
    return {
        "steps_per_second": steps_per_second,
        "episodes": episodes.ended,
        "mean_return": share(episodes.return_sum),
        "mean_length": share(episodes.length_sum),
        "episode_solve_rate": share(episodes.solved),
        "tasks_played": mine.tasks_played,
        "effective_tasks": mine.effective_tasks,
        **_losses_of(mine),
    }


def _losses_of(progress: Progress) -> dict[str, Any]:
    """Return all that must be finite, by the names of a report's fields."""
    losses = progress.losses._asdict()
    auxiliary = losses.pop("auxiliary")
    answers = {} if progress.answer_loss is None else {"answer_loss": progress.answer_loss}
    return {**losses, **({} if auxiliary is None else auxiliary._asdict()), **answers}
