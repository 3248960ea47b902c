"""The training loop: steps, reports, checkpoints and their clock, the same for whatever is trained.

``run`` drives a ``Trainable``: agents (``agents/train.py``) or surrogates (``surrogate/surrogate_training.py``).
One pass of the loop:

    step      a compiled call, which makes ``updates_per_step`` updates
    check     every ``updates_per_report`` updates: are all losses finite?
    evaluate  in the first report, the last one, and in every ``reports_per_evaluation``-th one
    report    a line of metrics for each seed, which then counts as part of the run
    save      if the newest checkpoint is old enough
"""

import abc
import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax

from jaxarc.errors import JaxarcError
from jaxarc.parallel import any_process, broadcast_flag, is_primary
from jaxarc.runs.folder import MetricsFile, RunConfig, RunFolder, RunReport
from jaxarc.runs.run_state import RunState, load_run_state, require_same_run, require_unused, save_run_state

State: TypeAlias = Any
"""A pytree; its arrays are saved."""

Metrics: TypeAlias = Any
"""What steps measure while they learn."""

Numbers = dict[str, float]
"""Fields of a report."""


class TrainingDivergedError(JaxarcError, ArithmeticError):
    """A loss or a gradient is not a finite number any more."""


@dataclass(frozen=True)
class Intervals:
    """The length of a run and the intervals of its reports, in updates."""

    num_updates: int  # of the whole run
    updates_per_step: int  # in one call of ``step``; divides the next two
    updates_per_report: int
    reports_per_evaluation: int
    max_seconds: float | None  # stop earlier, counted without compilation


@dataclass(frozen=True)
class TrainResult:
    """The result of a run."""

    state: State
    reports: list[Any]  # the first of each seed before learning, the last after it; both with an evaluation
    compile_seconds: float  # until learning began: of compiling, and of measuring the first state meanwhile
    interrupted: bool  # stopped before its updates were used up


class CompiledStep(NamedTuple):
    """A step that is compiled for one device, to be measured."""

    name: str
    program: Any
    parameters: State  # among the arguments, shapes or arrays
    optimizer: State


class Trainable(abc.ABC):
    """The interface of everything that the loop trains: six methods, and a few with defaults."""

    experiment: Any  # all choices, a RunConfig
    report_type: type[RunReport]
    intervals: Intervals
    advice: ClassVar[str]  # what to do after a loss that is not finite: "lower x or y"
    clock_counts_reports: ClassVar[bool]  # whether the seconds of a run include its evaluations

    @abc.abstractmethod
    def init(self) -> State:
        """Make the state before the first step."""

    @abc.abstractmethod
    def step(self, state: State, update: int) -> tuple[State, Metrics]:
        """Learn for ``updates_per_step`` updates, and return when they are done.

        Args:
            state: may be donated.
            update: number of updates before this step.

        Returns:
            The next state, and the metrics of all steps since the last report.
        """

    @abc.abstractmethod
    def check(self, metrics: Metrics) -> Mapping[int, Numbers]:
        """Return the losses of each seed, all of which have to be finite."""

    @abc.abstractmethod
    def evaluate(self, state: State) -> list[Numbers]:
        """Measure a state on held-out data: fields of the report of each seed."""

    @abc.abstractmethod
    def report(
        self,
        update: int,
        seconds: float,
        metrics: Metrics,
        evaluation: list[Numbers] | None,
        updates_per_second: float | None,
    ) -> list[Any]:
        """Make the report of each seed.

        Args:
            update: number of updates so far.
            seconds: since learning began.
            metrics: of the steps since the last report; None where there was none.
            evaluation: what ``evaluate`` returned; None where this report goes without.
            updates_per_second: of the steps since the last report.
        """

    @abc.abstractmethod
    def compiled_step(self) -> CompiledStep:
        """Compile ``step`` for one device."""

    def like(self) -> State:
        """Return a state with the structure, shapes and dtypes of the run's; its arrays are not read."""
        return self.init()

    def place(self, state: State) -> State:
        """Put a state on the devices of the run."""
        return state

    def begin_compiling(self, state: State) -> None:
        """Begin to compile in threads what ``step`` and ``evaluate`` call: the first state is evaluated meanwhile."""
        del state

    def compile(self, state: State) -> None:
        """Compile it, or wait for the threads, so that the clock does not count it; see :meth:`begin_compiling`."""
        del state

    def is_learned(self, reports: Sequence[Any]) -> bool:
        """Return whether a run with these reports has learned what it is to learn, so that it stops early."""
        del reports
        return False

    def running(self, update: int) -> AbstractContextManager[None]:
        """Hold what the steps from ``update`` on need, such as a thread that loads data."""
        del update
        return nullcontext()

    def write_tables(self, run_state: RunState, folder: RunFolder | None) -> None:
        """Write tables beside the metrics before the last checkpoint, and again where a report follows it.

        The folder is None in all processes but the first.
        """
        del run_state, folder


def run(
    trainable: Trainable,
    experiment: RunConfig,
    folder: RunFolder | None = None,
    on_report: Callable[[Any], None] = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    resume: bool = False,
) -> TrainResult:
    """Train until the updates are used up, the time is over, all is learned, or somebody stops it.

    Args:
        trainable: what learns.
        experiment: all choices, which checkpoints hold.
        folder: gets the metrics as they come, checkpoints, and tables at the end.
        on_report: called with each new report; the first ones come before learning.
        should_stop: asked before each step; of several processes, all stop as soon as one of them wants to.
        resume: go on from the folder's newest checkpoint, or from the start where there is none yet. Everything that
            is computed and written, except for the clocks, is the same as without an interruption.

    Returns:
        The result, also after ``should_stop``: the run keeps what it learned. After ``KeyboardInterrupt`` too, unless
        that came before the first step, when there is nothing to keep, or amid a step or a report whose state was
        donated: then the newest checkpoint holds what is kept.

    Raises:
        TrainingDivergedError: a loss is not finite; the newest checkpoint then holds the last good state.
        KeyboardInterrupt: see above; or it came in one of several processes before all of them agreed to stop.
        RunFolderError: another process uses the folder, or it holds a run that is not to be resumed.
        IncompatibleRunError: the run to resume was started with other choices.
        CheckpointError: every checkpoint of the run is damaged.
        ProcessMismatchError: the processes of the run are not alike.
    """
    require_same_run(experiment)
    # The lock comes first, so that no other run can begin here between the check and the first file.
    with nullcontext() if folder is None else folder.lock():
        if folder is not None and not resume:
            require_unused(folder)
        current = _Run(trainable, experiment, folder, on_report, resume)
        if current.is_finished:
            return TrainResult(current.run_state.state, current.run_state.reports, 0.0, interrupted=False)
        return _learn(current, should_stop)


def _learn(current: "_Run", should_stop: Callable[[], bool]) -> TrainResult:
    current.trainable.begin_compiling(current.run_state.state)
    if not current.run_state.reports:  # while the step may still be compiled
        current.report(current.run_state.state, 0, None, is_evaluated=True)
    current.compile()
    interrupted = False
    # Saving needs all processes, and the others do not know of an error in this one: so nothing is saved after an
    # error that they do not share.
    is_agreed = jax.process_count() == 1
    try:
        with current.trainable.running(current.run_state.updates):
            while not current.is_finished and not any_process(current.is_out_of_time):
                interrupted = any_process(should_stop())
                if interrupted:
                    break
                current.advance()
        is_agreed = True
    except KeyboardInterrupt:
        if not is_agreed or current.is_donated:
            raise
        interrupted = True
    except TrainingDivergedError:
        is_agreed = True  # all processes see the same losses
        raise
    finally:
        if is_agreed:
            current.save_end()
    current.require_finite(current.metrics, current.run_state.updates)
    current.evaluate_end()
    return TrainResult(current.run_state.state, current.run_state.reports, current.compile_seconds, interrupted)


class _Run:
    """One call of :func:`run`: where it is, its clock and its files."""

    def __init__(
        self,
        trainable: Trainable,
        experiment: RunConfig,
        folder: RunFolder | None,
        on_report: Callable[[Any], None],
        resume: bool,
    ):
        self.created = time.perf_counter()
        self.trainable = trainable
        self.intervals = trainable.intervals
        self.experiment = experiment
        self.folder = folder
        self.log_folder = folder if is_primary() else None  # of several processes one writes the log; all of them save
        self.on_report = on_report
        loaded = self._load(folder) if folder is not None and resume else None
        run_state = loaded or RunState(trainable.init())
        self.run_state = dataclasses.replace(run_state, state=trainable.place(run_state.state))
        self.metrics: Metrics = None  # of the steps since the last report, up to ``run_state``
        self.seconds_saved = self.run_state.seconds  # when the newest checkpoint was written
        self.step_seconds = 0.0  # of the steps since the last report that this process took
        self.step_updates = 0  # and their number of updates
        self.started = time.perf_counter() - self.run_state.seconds
        self.compile_seconds = 0.0

    @property
    def is_finished(self) -> bool:
        is_over = self.run_state.updates >= self.intervals.num_updates
        return is_over or self.trainable.is_learned(self.run_state.reports)

    @property
    def is_out_of_time(self) -> bool:
        limit = self.intervals.max_seconds
        return limit is not None and self.seconds >= limit

    @property
    def is_donated(self) -> bool:
        """Whether a step that was interrupted has taken the arrays of the state."""
        # A donated array is deleted when the call begins, not when it ends: an interruption in between leaves no state.
        leaves = jax.tree.leaves(self.run_state.state)
        return any(leaf.is_deleted() for leaf in leaves if isinstance(leaf, jax.Array))

    @property
    def seconds(self) -> float:
        """Since learning began, without saving and the time between two processes."""
        return time.perf_counter() - self.started

    def compile(self) -> None:
        """Compile what the loop calls, and start the clock."""
        self.trainable.compile(self.run_state.state)
        now = time.perf_counter()
        self.started = now - self.run_state.seconds
        self.compile_seconds = now - self.created

    def advance(self) -> None:
        """Take one step; where a report is due, adopt its result once it is checked and reported, and save."""
        before = time.perf_counter()
        # ``run_state`` stays that of before until the new state is adopted: an interruption amid the step leaves it
        # whole, unless the step took its arrays.
        state, metrics = self.trainable.step(self.run_state.state, self.run_state.updates)
        self.step_seconds += time.perf_counter() - before
        self.step_updates += self.intervals.updates_per_step
        updates = self.run_state.updates + self.intervals.updates_per_step
        is_last = updates >= self.intervals.num_updates
        # With a report every 10 updates and steps of 5, the step to 5 is adopted
        # unreported, the step to 10 is reported.
        if updates % self.intervals.updates_per_report and not is_last:
            self.metrics = metrics
            self.run_state = dataclasses.replace(self.run_state, state=state, updates=updates)
            return
        # Losses are checked before anything is written, so no metrics and no checkpoint hold a diverged state.
        self.require_finite(metrics, updates)
        number = len(self.run_state.reports) // len(self.experiment.seeds)  # of the report; the first one has number 0
        is_evaluated = number % self.intervals.reports_per_evaluation == 0 or is_last
        self.report(state, updates, metrics, is_evaluated=is_evaluated)
        self._save_if_due()

    def require_finite(self, metrics: Metrics, updates: int) -> None:
        """Check the metrics of the steps up to ``updates``.

        Raises:
            TrainingDivergedError: names the seed, its losses and the newest checkpoint.
        """
        seed, losses = next(iter(self._faults(metrics).items()), (0, None))
        if losses is None:
            return
        # With a report every 10 updates, metrics at update 25 are of the steps since 20.
        first = self.run_state.updates
        if self.metrics is not None:
            first -= first % self.intervals.updates_per_report
        raise TrainingDivergedError(
            f"a loss or gradient of seed {seed} is not finite between updates {first} and {updates}: {losses}; "
            f"{self._name_last_good_files()}{self.trainable.advice} and train again"
        )

    def save_end(self) -> None:
        """Write the tables and then a checkpoint, after which the run is complete; not of a state that is unsound."""
        if self.is_donated or self._faults(self.metrics):
            return
        if self.log_folder is not None:
            self.log_folder.require_claimed()
        self.trainable.write_tables(self.run_state, self.log_folder)
        self._save()

    def evaluate_end(self) -> None:
        """Evaluate the last state if no report did; a run that goes on later takes this report back."""
        if self.run_state.score is None:
            self.report(self.run_state.state, self.run_state.updates, None, is_evaluated=True)
            self.trainable.write_tables(self.run_state, self.log_folder)

    def _load(self, folder: RunFolder) -> RunState | None:
        is_leaf_array = lambda leaf: eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)
        arrays, rest = eqx.partition(self.trainable.like(), is_leaf_array)
        loaded = load_run_state(folder, self.experiment, arrays, self.trainable.report_type)
        if loaded is None:
            return None
        return dataclasses.replace(loaded, state=eqx.combine(loaded.state, rest))

    def report(self, state: State, updates: int, metrics: Metrics, *, is_evaluated: bool) -> None:
        """Report on a state with a line for each seed, and make it the run's; an interruption leaves the one before."""
        seconds = self.seconds
        begun = time.perf_counter()
        evaluation = self.trainable.evaluate(state) if is_evaluated else None
        speed = None if metrics is None else self.step_updates / self.step_seconds
        reports = self.trainable.report(updates, seconds, metrics, evaluation, speed)
        # The lines go to the file before the state is adopted, and the caller hears of them after both.
        if self.log_folder is not None:
            self.log_folder.require_claimed()
            MetricsFile(self.log_folder.metrics, self.trainable.report_type).append(reports)
        self.run_state = RunState(state, updates, [*self.run_state.reports, *reports])
        self.metrics = None
        self.step_seconds = 0.0
        self.step_updates = 0
        for report in reports:
            self.on_report(report)
        if not self.trainable.clock_counts_reports:
            self.started += time.perf_counter() - begun

    def _save_if_due(self) -> None:
        """Save a checkpoint if at least ``min_seconds`` have passed; twice that if the state was not evaluated."""
        enough = self.experiment.checkpoint.min_seconds
        if self.run_state.score is None:
            enough *= 2
        is_due = self.seconds - self.seconds_saved >= enough
        if not self.is_finished and broadcast_flag(is_due):  # the end has a save of its own
            self._save()

    def _save(self) -> None:
        """Save the state, without moving the clock."""
        if self.folder is None:
            return
        self.folder.require_claimed()
        self.seconds_saved = self.seconds
        begun = time.perf_counter()
        # The clock of the checkpoint is read before the writing and moved on after it: saving counts for nothing.
        arrays = eqx.filter(self.run_state.state, eqx.is_array)
        saved = dataclasses.replace(self.run_state, state=arrays, seconds=self.seconds_saved)
        save_run_state(self.folder, self.experiment, saved, self.trainable.report_type)
        self.started += time.perf_counter() - begun

    def _faults(self, metrics: Metrics) -> dict[int, Numbers]:
        """Return the losses of the seeds of which one is not finite."""
        losses = {} if metrics is None else self.trainable.check(metrics)
        return {seed: mine for seed, mine in losses.items() if not all(map(math.isfinite, mine.values()))}

    def _name_last_good_files(self) -> str:
        if self.folder is None:
            return ""
        checkpoints = self.folder.checkpoints
        is_good = not self.is_donated and not self._faults(self.metrics)  # then it will be saved when the run ends
        updates = [self.run_state.updates] if is_good else checkpoints.updates()[-1:]
        named = "".join(f"the last good checkpoint is {checkpoints.at(update)}, " for update in updates)
        return f"{named}the config {self.folder.config}; "
