"""The loop that trains surrogates: batches made ahead of time, compiled steps, and now and then a report."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from jaxarc.surrogate import DataPrefetcher, init_optimizer, make_surrogate_optimizer
from jaxarc.surrogate.mesh import MeshPlacement
from jaxarc.surrogate.train_step import Model
from jaxarc.training.loop import TrainingDivergedError
from jaxarc.training.metrics import MetricsFile
from jaxarc.training.run_folder import RunFolder
from jaxarc.training.run_state import RunState, load_run_state, require_unused, save_run_state
from jaxarc.training.surrogates.experiment import SurrogateExperiment, SurrogateReport
from jaxarc.training.surrogates.task import Step, SurrogateTask


class SurrogateState(NamedTuple):
    """What a run has learned, by the names of its tasks."""

    models: dict[str, Model]
    optimizers: dict[str, optax.OptState]
    sums: dict[str, dict[str, Array]]  # of what the steps since the last report told


@dataclass(frozen=True)
class SurrogateResult:
    """How a run ended."""

    state: SurrogateState
    reports: list[SurrogateReport]  # the first before learning, the last after it; both measured
    compile_seconds: float
    interrupted: bool  # stopped before its steps were used up


def train_surrogate(
    experiment: SurrogateExperiment,
    tasks: Mapping[str, SurrogateTask],
    folder: RunFolder | None = None,
    on_report: Callable[[SurrogateReport], None] = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    resume: bool = False,
) -> SurrogateResult:
    """Train the models of a surrogate, each on its task, one step of each in turn.

    Args:
        experiment: all choices.
        tasks: by name; see :func:`jaxarc.training.surrogates.make_tasks`.
        folder: gets the metrics as they come, and a checkpoint now and then.
        on_report: called with each new report; the first one comes before learning.
        should_stop: asked after each step.
        resume: go on from the folder's newest checkpoint, or from the start where there is none yet. What is computed,
            and so what is written but for the clocks, is the same as without an interruption.

    Returns:
        The outcome, also after ``should_stop``: what was learned is kept. After ``KeyboardInterrupt`` too, unless it
        came amid a step or a report: then the newest checkpoint holds what is kept.

    Raises:
        TrainingDivergedError: a loss is not finite; the newest checkpoint then holds the last good state.
        KeyboardInterrupt: it came amid a step, whose arguments are gone, or amid a report.
        RunFolderError: another process uses the folder, or it holds a run that is not to be resumed.
        IncompatibleRunError: the run to resume was started with other choices.
        CheckpointError: every checkpoint of the run is damaged.
    """
    with nullcontext() if folder is None else folder.lock():
        if folder is not None and not resume:
            require_unused(folder)
        run = _Run(experiment, tasks, folder, on_report, resume)
        if run.is_finished:
            return SurrogateResult(run.result, run.run_state.reports, 0.0, interrupted=False)
        return _learn(run, should_stop)


def _learn(run: "_Run", should_stop: Callable[[], bool]) -> SurrogateResult:
    run.compile()
    interrupted = False
    try:
        if not run.run_state.reports:
            run.report_start()
        ahead = run.experiment.surrogate.buffer_size
        with DataPrefetcher(run.batches(), ahead, run.placement.batch_sharding) as batches:
            while not run.is_finished and not run.is_out_of_time:
                if interrupted := should_stop():
                    break
                run.advance(next(batches))
    except KeyboardInterrupt:
        if _is_gone(run.run_state.state) or run.is_reporting:  # half of a report cannot be resumed
            raise
        interrupted = True
    run.save_end()
    run.measure_end()
    return SurrogateResult(run.result, run.run_state.reports, run.compile_seconds, interrupted)


class _Run:
    """The host's side of a run: steps, clock, reports and files."""

    def __init__(
        self,
        experiment: SurrogateExperiment,
        tasks: Mapping[str, SurrogateTask],
        folder: RunFolder | None,
        on_report: Callable[[SurrogateReport], None],
        resume: bool,
    ):
        self.experiment, self.tasks, self.folder, self.on_report = experiment, tasks, folder, on_report
        self.created, self.is_reporting = time.perf_counter(), False
        self.placement = MeshPlacement.from_config(
            experiment.surrogate_mesh, experiment.surrogate_training.accumulation_steps
        )
        self.first_batches = {name: self.placement.place_batch(batch) for name, batch in self._batches_at(0).items()}
        self.batch_size = max(len(jax.tree.leaves(batch)[0]) for batch in self.first_batches.values())
        self.steps, fresh = self._start()
        loaded = self._load(folder, fresh) if folder is not None and resume else None
        run_state = loaded or RunState[SurrogateState, SurrogateReport](fresh)
        self.run_state = dataclasses.replace(run_state, state=self.placement.place_weights(run_state.state))
        self.seconds_saved = self.run_state.seconds  # when the newest checkpoint was written
        self.reported_at = self.run_state.updates, self.run_state.seconds

    @property
    def result(self) -> SurrogateState:
        """What was learned, its models on one device."""
        state = self.run_state.state
        return state._replace(models=self.placement.gather(state.models))

    @property
    def is_finished(self) -> bool:
        return self.run_state.updates >= self.experiment.num_updates

    @property
    def is_out_of_time(self) -> bool:
        limit = self.experiment.surrogate.max_seconds
        return limit is not None and self.seconds >= limit

    @property
    def seconds(self) -> float:
        """Since learning began, without compilation, measuring, saving and the time between two processes."""
        return time.perf_counter() - self.started

    def compile(self) -> None:
        """Take a step that is thrown away, so that none of those that count waits for the compiler."""
        state = self.run_state.state
        for name, step in self.steps.items():
            learner = state.models[name], state.optimizers[name]
            copies = eqx.combine(jax.tree.map(jnp.copy, eqx.filter(learner, eqx.is_array)), learner)
            told = step(copies[0], copies[1], self.first_batches[name])[2]
            jax.block_until_ready(_add(told, told))
        now = time.perf_counter()
        self.started, self.compile_seconds = now - self.run_state.seconds, now - self.created

    def batches(self) -> Iterator[dict[str, Any]]:
        """Make the batches of the steps to come, each when it is asked for."""
        return map(self._batches_at, range(self.run_state.updates, self.experiment.num_updates))

    def report_start(self) -> None:
        self._report({}, is_measured=True)

    def advance(self, batches: Mapping[str, Any]) -> None:
        """Take one step of every task; report and save where it is time to."""
        state, learned = self.run_state.state, {}
        for name, step in self.steps.items():
            learned[name] = step(state.models[name], state.optimizers[name], batches[name])
        models, optimizers, told = ({name: each[place] for name, each in learned.items()} for place in range(3))
        state = SurrogateState(models, optimizers, {name: _add(state.sums[name], told[name]) for name in told})
        jax.block_until_ready(state.sums)  # or steps would pile up, and a wish to stop would wait for all of them
        self.run_state = dataclasses.replace(self.run_state, state=state, updates=self.run_state.updates + 1)
        if self.run_state.updates % self.experiment.surrogate.steps_per_report == 0 or self.is_finished:
            self._report_means()
            self._save_if_due()

    def save_end(self) -> None:
        self._require_finite()
        self._save()

    def measure_end(self) -> None:
        """Measure the last state if that did not happen; a run that goes on later takes this report back."""
        if self.run_state.score is None:
            self._report({}, is_measured=True)

    def _batches_at(self, step: int) -> dict[str, Any]:
        return {name: task.batch(self.experiment.surrogate.seed, step) for name, task in self.tasks.items()}

    def _start(self) -> tuple[dict[str, Step], SurrogateState]:
        """Make the steps, and the state before the first of them."""
        steps, state = {}, SurrogateState({}, {}, {})
        key = jax.random.key(self.experiment.surrogate.seed)
        for number, (name, task) in enumerate(self.tasks.items()):
            config = task.training_config(self.experiment.surrogate_training)
            optimizer = self.placement.keep(make_surrogate_optimizer(config))
            model = self.placement.split_layers(task.make_model(jax.random.fold_in(key, number)))
            opt_state = init_optimizer(optimizer, model)
            steps[name] = step = task.make_step(model, optimizer, config)
            told = eqx.filter_eval_shape(step, model, opt_state, self.first_batches[name])[2]
            state.models[name], state.optimizers[name], state.sums[name] = model, opt_state, _zeros_like(told)
        return steps, state

    def _load(self, folder: RunFolder, fresh: SurrogateState) -> RunState[SurrogateState, SurrogateReport] | None:
        arrays, rest = eqx.partition(fresh, eqx.is_array)
        run_state = load_run_state(folder, self.experiment, arrays, SurrogateReport)
        if run_state is None:
            return None
        return dataclasses.replace(run_state, state=eqx.combine(run_state.state, rest))

    def _report_means(self) -> None:
        """Report the means over the steps since the last report, and begin new sums."""
        self._require_finite()
        self.is_reporting = True
        state, updates, seconds = self.run_state.state, self.run_state.updates, self.seconds
        count = (updates - 1) % self.experiment.surrogate.steps_per_report + 1
        means = {
            self.tasks[name].metric_fields[metric]: total.item() / count
            for name, sums in state.sums.items()
            for metric, total in sums.items()
        }
        since, then = self.reported_at
        speed = self.batch_size * (updates - since) / (seconds - then)
        self.run_state = dataclasses.replace(self.run_state, state=state._replace(sums=_zeros_like(state.sums)))
        number = len(self.run_state.reports)
        is_measured = number % self.experiment.surrogate.reports_per_measurement == 0 or self.is_finished
        self._report({**means, "examples_per_second": speed}, is_measured)
        self.reported_at, self.is_reporting = (updates, self.seconds), False

    def _report(self, facts: dict[str, float], is_measured: bool) -> None:
        seconds, updates, begun = self.seconds, self.run_state.updates, time.perf_counter()
        if is_measured:
            models = self.placement.gather(self.run_state.state.models)
            for name, task in self.tasks.items():
                facts = {**facts, **task.evaluate(models[name]).numbers()}
        examples = updates * self.batch_size
        report = SurrogateReport(updates, examples, seconds, self.experiment.surrogate.seed, **facts)
        if self.folder is not None:
            MetricsFile(self.folder.metrics, SurrogateReport).append([report])
        self.run_state = dataclasses.replace(self.run_state, reports=[*self.run_state.reports, report])
        self.on_report(report)
        self.started += time.perf_counter() - begun

    def _save_if_due(self) -> None:
        """Save now and then, better after a measured report; the end has a call of its own."""
        waited, enough = self.seconds - self.seconds_saved, self.experiment.checkpoint.min_seconds
        if waited >= (enough if self.run_state.score is not None else 2 * enough) and not self.is_finished:
            self._save()

    def _save(self) -> None:
        """Save what there is, without moving the clock."""
        if self.folder is not None:
            self.seconds_saved, begun = self.seconds, time.perf_counter()
            arrays = eqx.filter(self.run_state.state, eqx.is_array)
            run_state = dataclasses.replace(self.run_state, state=arrays, seconds=self.seconds_saved)
            save_run_state(self.folder, self.experiment, run_state, SurrogateReport)
            self.started += time.perf_counter() - begun

    def _require_finite(self) -> None:
        told = jax.device_get(self.run_state.state.sums)
        wrong = {
            self.tasks[name].metric_fields[metric]: total.item()
            for name, sums in told.items()
            for metric, total in sums.items()
            if not math.isfinite(total)
        }
        if wrong:
            raise TrainingDivergedError(self._say_diverged(wrong))

    def _say_diverged(self, wrong: Mapping[str, float]) -> str:
        config = self.experiment
        saved = [] if self.folder is None else self.folder.checkpoints.updates()
        files = (
            f"the last good checkpoint is {self.folder.checkpoints.at(saved[-1])}; " if self.folder and saved else ""
        )
        return (
            f"a loss or gradient is not finite in the {config.surrogate.steps_per_report} steps up to "
            f"{self.run_state.updates}, seed {config.surrogate.seed}: {wrong}; {files}lower "
            "surrogate_training.learning_rate or surrogate_training.max_grad_norm and train again"
        )


@jax.jit
def _add(sums: dict[str, Array], told: dict[str, Array]) -> dict[str, Array]:
    return jax.tree.map(jnp.add, sums, told)


def _zeros_like(told: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), told)


def _is_gone(state: SurrogateState) -> bool:
    """Tell whether a step has taken the arrays of a state."""
    return any(leaf.is_deleted() for leaf in jax.tree.leaves(state) if isinstance(leaf, jax.Array))
