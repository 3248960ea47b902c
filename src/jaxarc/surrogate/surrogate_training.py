"""Train surrogates: what the training loop asks of them, with batches made ahead of time and compiled steps."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float32

from jaxarc.nn.update import init_optimizer, make_surrogate_optimizer
from jaxarc.runs.folder import RunFolder
from jaxarc.runs.loop import CompiledStep, Intervals, Numbers, Trainable, TrainResult, run
from jaxarc.surrogate.mesh_placement import MeshPlacement
from jaxarc.surrogate.prefetcher import DataPrefetcher
from jaxarc.surrogate.surrogate_experiment import SurrogateExperiment, SurrogateReport
from jaxarc.surrogate.surrogate_task import SurrogateTask
from jaxarc.surrogate.train_step import Model

Sums = dict[str, Float32[Array, ""]]
"""Metrics by name, each the sum over the steps since the last report."""


class SurrogateState(NamedTuple):
    """The training state of a run."""

    model: Model
    optimizer: optax.OptState
    sums: Sums


def train_surrogate(
    experiment: SurrogateExperiment,
    task: SurrogateTask,
    folder: RunFolder | None = None,
    on_report: Callable[[SurrogateReport], None] = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    resume: bool = False,
) -> TrainResult:
    """Train a surrogate on its task.

    Arguments, result and errors are those of :func:`jaxarc.runs.loop.run`; the task is that of
    :func:`jaxarc.surrogate.make_task`, or one of your own. The model of the result is on one device.
    """
    training = SurrogateTraining(experiment, task)
    result = run(training, experiment, folder, on_report, should_stop, resume=resume)
    model = training.placement.gather(result.state.model)
    return dataclasses.replace(result, state=result.state._replace(model=model))


class SurrogateTraining(Trainable):
    """The training of one surrogate."""

    experiment: SurrogateExperiment
    report_type = SurrogateReport
    advice: ClassVar[str] = "lower surrogate_training.learning_rate or surrogate_training.max_grad_norm"
    clock_counts_reports: ClassVar[bool] = False

    def __init__(self, experiment: SurrogateExperiment, task: SurrogateTask):
        self.experiment = experiment
        self.task = task
        config = experiment.surrogate
        self.intervals = Intervals(
            num_updates=experiment.num_updates,
            updates_per_step=1,
            updates_per_report=config.steps_per_report,
            reports_per_evaluation=config.reports_per_evaluation,
            max_seconds=config.max_seconds,
        )

    @functools.cached_property
    def placement(self) -> MeshPlacement:
        return MeshPlacement.from_config(
            self.experiment.surrogate_mesh, self.experiment.surrogate_training.accumulation_steps
        )

    @functools.cached_property
    def first_batch(self) -> Any:
        """The batch of step 0, for its shapes."""
        return self.placement.place_batch(self._make_batch(0))

    @property
    def batch_size(self) -> int:
        return len(jax.tree.leaves(self.first_batch)[0])

    def init(self) -> SurrogateState:
        """Make the state before the first step, and the step."""
        config = self.experiment.surrogate_training
        optimizer = self.placement.keep(make_surrogate_optimizer(config))
        key = jax.random.fold_in(jax.random.key(self.experiment.surrogate.seed), 0)
        model = self.placement.split_layers(self.task.make_model(key))
        self.train_step = self.task.make_step(model, optimizer, config)
        return SurrogateState(model, init_optimizer(optimizer, model), self._no_sums())

    def place(self, state: SurrogateState) -> SurrogateState:
        return self.placement.place_weights(state)

    def compile(self, state: SurrogateState) -> None:
        """Take a step that is thrown away, so that none of those that count waits for the compiler."""
        weights = state.model, state.optimizer
        # The step runs on a copy, because it donates what it gets. Nothing of its result is kept.
        copied = jax.tree.map(jnp.copy, eqx.filter(weights, eqx.is_array))
        model, opt_state = eqx.combine(copied, weights)
        metrics = self.train_step(model, opt_state, self.first_batch)[2]
        jax.block_until_ready(_add(metrics, metrics))

    @contextmanager
    def running(self, update: int) -> Iterator[None]:
        """Load the batches of the steps from ``update`` on in a thread of their own."""
        batches = map(self._make_batch, range(update, self.experiment.num_updates))
        with DataPrefetcher(
            batches, self.experiment.surrogate.buffer_size, self.placement.batch_sharding
        ) as prefetched:
            self._batches = prefetched
            yield

    def step(self, state: SurrogateState, update: int) -> tuple[SurrogateState, Sums]:
        """Take one step."""
        batch = next(self._batches)
        model, optimizer, metrics = self.train_step(state.model, state.optimizer, batch)
        # The sums are a part of the saved state, so a run that is resumed between two
        # reports averages over all its steps.
        is_first = update % self.intervals.updates_per_report == 0  # after a report: sums begin anew
        sums = _add(self._no_sums() if is_first else state.sums, metrics)
        jax.block_until_ready(sums)  # or steps would pile up, and a request to stop would wait for all of them
        return SurrogateState(model, optimizer, sums), sums

    def check(self, metrics: Sums) -> dict[int, Numbers]:
        return {self.experiment.surrogate.seed: self._fields_of(metrics)}

    def evaluate(self, state: SurrogateState) -> list[Numbers]:
        return [self.task.evaluate(self.placement.gather(state.model)).numbers()]

    def report(
        self,
        update: int,
        seconds: float,
        metrics: Sums | None,
        evaluation: list[Numbers] | None,
        updates_per_second: float | None,
    ) -> list[SurrogateReport]:
        fields: dict[str, Any] = {}
        if metrics is not None:
            # With a report every 10 updates: 10 steps at update 20, and 3 at update 23 where the run ends.
            num_steps = (update - 1) % self.intervals.updates_per_report + 1  # since the last report
            fields |= {name: total / num_steps for name, total in self._fields_of(metrics).items()}
        if updates_per_second is not None:
            fields["examples_per_second"] = updates_per_second * self.batch_size
        if evaluation is not None:
            fields |= evaluation[0]
        examples = update * self.batch_size
        return [SurrogateReport(update, examples, seconds, self.experiment.surrogate.seed, **fields)]

    def compiled_step(self) -> CompiledStep:
        experiment = self.experiment
        config = experiment.surrogate_training
        optimizer = make_surrogate_optimizer(config)
        model = self.task.make_model(jax.random.key(experiment.surrogate.seed))
        opt_state = init_optimizer(optimizer, model)
        step: Any = eqx.filter_jit(self.task.make_step(model, optimizer, config))
        program = step.lower(model, opt_state, self._make_batch(0)).compile().compiled
        return CompiledStep("train step", program, model, opt_state)

    def _make_batch(self, step: int) -> Any:
        return self.task.batch(self.experiment.surrogate.seed, step)

    def _no_sums(self) -> Sums:
        return {metric: jnp.float32(0) for metric in self.task.metric_fields}

    def _fields_of(self, sums: Sums) -> Numbers:
        """Name each sum by its field of a report."""
        return {self.task.metric_fields[metric]: total.item() for metric, total in jax.device_get(sums).items()}


@jax.jit
def _add(sums: Sums, metrics: Sums) -> Sums:
    return jax.tree.map(jnp.add, sums, metrics)
