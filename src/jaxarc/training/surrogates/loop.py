"""Train surrogates: what the training loop asks of them, with batches made ahead of time and compiled steps."""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float32

from jaxarc.runs.folder import RunFolder
from jaxarc.runs.loop import Intervals, Numbers, Trainable, TrainResult, run
from jaxarc.surrogate import DataPrefetcher, init_optimizer, make_surrogate_optimizer
from jaxarc.surrogate.mesh import MeshPlacement
from jaxarc.surrogate.train_step import Model
from jaxarc.training.surrogates.experiment import SurrogateExperiment, SurrogateReport
from jaxarc.training.surrogates.task import Step, SurrogateTask

Sums = dict[str, dict[str, Float32[Array, ""]]]
"""Metrics by the names of tasks and of metrics, each the sum over the steps since the last report."""


class SurrogateState(NamedTuple):
    """The training state of a run, by the names of its tasks."""

    models: dict[str, Model]
    optimizers: dict[str, optax.OptState]
    sums: Sums


@dataclass(frozen=True)
class SurrogateResult(TrainResult):
    """The result of a run of a surrogate; its models are on one device."""


def train_surrogate(
    experiment: SurrogateExperiment,
    tasks: Mapping[str, SurrogateTask],
    folder: RunFolder | None = None,
    on_report: Callable[[SurrogateReport], None] = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    resume: bool = False,
) -> SurrogateResult:
    """Train the models of a surrogate, each on its task; they alternate step by step.

    Arguments, result and errors are those of :func:`jaxarc.runs.loop.run`; ``tasks`` are those of
    :func:`jaxarc.training.surrogates.make_tasks`.
    """
    training = SurrogateTraining(experiment, tasks)
    result = run(training, experiment, folder, on_report, should_stop, resume=resume)
    return SurrogateResult(result.state, result.reports, result.compile_seconds, result.interrupted)


class SurrogateTraining(Trainable):
    """The models of a surrogate, which learn side by side."""

    report_type = SurrogateReport
    advice: ClassVar[str] = "lower surrogate_training.learning_rate or surrogate_training.max_grad_norm"
    clock_counts_reports: ClassVar[bool] = False

    def __init__(self, experiment: SurrogateExperiment, tasks: Mapping[str, SurrogateTask]):
        self.experiment = experiment
        self.tasks = tasks
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
    def first_batches(self) -> dict[str, Any]:
        """The batches of step 0, for their shapes."""
        return {name: self.placement.place_batch(batch) for name, batch in self._make_batches(0).items()}

    @property
    def batch_size(self) -> int:
        return max(len(jax.tree.leaves(batch)[0]) for batch in self.first_batches.values())

    def init(self) -> SurrogateState:
        """Make the state before the first step, and the steps."""
        self.steps: dict[str, Step] = {}
        state = SurrogateState({}, {}, {})
        key = jax.random.key(self.experiment.surrogate.seed)
        for number, (name, task) in enumerate(self.tasks.items()):
            config = task.training_config(self.experiment.surrogate_training)
            optimizer = self.placement.keep(make_surrogate_optimizer(config))
            model = self.placement.split_layers(task.make_model(jax.random.fold_in(key, number)))
            step = task.make_step(model, optimizer, config)
            self.steps[name] = step
            state.models[name] = model
            state.optimizers[name] = init_optimizer(optimizer, model)
            metrics = eqx.filter_eval_shape(step, model, state.optimizers[name], self.first_batches[name])[2]
            state.sums[name] = _zeros_like(metrics)
        return state

    def place(self, state: SurrogateState) -> SurrogateState:
        return self.placement.place_weights(state)

    def compile(self, state: SurrogateState) -> None:
        """Take a step that is thrown away, so that none of those that count waits for the compiler."""
        for name, step in self.steps.items():
            weights = state.models[name], state.optimizers[name]
            # The step runs on a copy, because it donates what it gets. Nothing of its result is kept.
            copied = jax.tree.map(jnp.copy, eqx.filter(weights, eqx.is_array))  # a step takes its arguments away
            model, opt_state = eqx.combine(copied, weights)
            metrics = step(model, opt_state, self.first_batches[name])[2]
            jax.block_until_ready(_add(metrics, metrics))

    @contextmanager
    def running(self, update: int) -> Iterator[None]:
        """Load the batches of the steps from ``update`` on in a thread of their own."""
        batches = map(self._make_batches, range(update, self.experiment.num_updates))
        with DataPrefetcher(
            batches, self.experiment.surrogate.buffer_size, self.placement.batch_sharding
        ) as prefetched:
            self._batches = prefetched
            yield

    def step(self, state: SurrogateState, update: int) -> tuple[SurrogateState, Sums]:
        """Take one step of every task."""
        batches = next(self._batches)
        # The sums are a part of the saved state, so a run that is resumed between two
        # reports averages over all its steps.
        is_first = update % self.intervals.updates_per_report == 0  # after a report: sums begin anew
        models = {}
        optimizers = {}
        sums = {}
        for name, step in self.steps.items():
            models[name], optimizers[name], metrics = step(state.models[name], state.optimizers[name], batches[name])
            before = _zeros_like(metrics) if is_first else state.sums[name]
            sums[name] = _add(before, metrics)
        jax.block_until_ready(sums)  # or steps would pile up, and a request to stop would wait for all of them
        return SurrogateState(models, optimizers, sums), sums

    def check(self, metrics: Sums) -> dict[int, Numbers]:
        return {self.experiment.surrogate.seed: self._fields_of(metrics)}

    def evaluate(self, state: SurrogateState) -> list[Numbers]:
        models = self.placement.gather(state.models)
        numbers: Numbers = {}
        for name, task in self.tasks.items():
            numbers |= task.evaluate(models[name]).numbers()
        return [numbers]

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

    def result(self, state: SurrogateState) -> SurrogateState:
        return state._replace(models=self.placement.gather(state.models))

    def _make_batches(self, step: int) -> dict[str, Any]:
        seed = self.experiment.surrogate.seed
        return {name: task.batch(seed, step) for name, task in self.tasks.items()}

    def _fields_of(self, sums: Sums) -> Numbers:
        """Name each sum by its field of a report."""
        return {
            self.tasks[name].metric_fields[metric]: total.item()
            for name, of_task in jax.device_get(sums).items()
            for metric, total in of_task.items()
        }


@jax.jit
def _add(sums: dict[str, Array], metrics: dict[str, Array]) -> dict[str, Array]:
    return jax.tree.map(jnp.add, sums, metrics)


def _zeros_like(metrics: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), metrics)
