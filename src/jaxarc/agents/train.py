"""Train agents: what the loop of a run asks of them, answered with the compiled calls of ``updates.py``."""

import functools
import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Key

from jaxarc.agents.canvases import (
    TasksOnCanvas,
    canvases_of,
    configs_of,
    join_states,
    merge_progress,
    share_learned,
    split_state,
)
from jaxarc.agents.cloning import CloningExamples, TraceExampleError, load_examples
from jaxarc.agents.experiment import Experiment, Report
from jaxarc.agents.ppo import TrainConfig
from jaxarc.agents.updates import (
    Progress,
    TrainingState,
    answer_shown_params,
    measure,
    place_state,
    run_updates,
    start_training,
)
from jaxarc.config import ConfigValidationError
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.datasets.task_set import choose_sides
from jaxarc.envs.params import EnvParams
from jaxarc.evaluation import TaskResults
from jaxarc.fusion import compiles_for_cpu
from jaxarc.jobs import host_cores
from jaxarc.parallel import (
    available_memory,
    data_mesh,
    program_memory,
    replicate,
    require_memory,
    size_of,
    to_host,
)
from jaxarc.prng import keys_of_seeds
from jaxarc.runs.folder import RunFolder, write_table
from jaxarc.runs.loop import CompiledStep, Intervals, Numbers, Trainable, TrainResult, run
from jaxarc.runs.run_state import RunState, require_same_start
from jaxarc.tasks.curriculum import Curriculum, curriculum_weights

Columns = TypeVar("Columns")

_GROWTH: Final = 4.0  # memory of an update over that of the state before it

run_updates_in_place = jax.jit(
    inspect.unwrap(run_updates), static_argnames=("train_config", "length", "mesh", "over"), donate_argnums=0
)
"""What :func:`run_updates` does, in the memory of the state, which must not be used again."""


def update_program() -> Any:
    """Return the compiled call of an update: the memory of an accelerator holds the state once, a CPU has room."""
    return run_updates if compiles_for_cpu() else run_updates_in_place


def compiler_options() -> dict[str, Any] | None:
    """Return how XLA compiles what learns: on a CPU with LLVM's first level, which takes a fifth less time.

    Results are bitwise equal, and updates as fast: most of their time is in C++ and in products of matrices.
    """
    return {"xla_backend_optimization_level": 1} if compiles_for_cpu() else None


@dataclass(frozen=True)
class AgentResult(TrainResult):
    """The result of a run of agents; the leaves of its state have a leading axis of seeds, [K, ...]."""

    state: TrainingState
    reports: list[Report]
    played: TaskResults | None = None  # of the last state on each evaluation pair, [K, T]; None: evaluated earlier


def train(
    experiment: Experiment,
    pairs: Any,
    folder: RunFolder | None = None,
    on_report: Callable[[Report], None] = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    resume: bool = False,
) -> AgentResult:
    """Train an agent of each seed, and evaluate it on every training pair and every evaluation pair.

    Arguments, result and errors are those of :func:`jaxarc.runs.loop.run`; ``pairs`` are :class:`TrainingPairs`, or
    :class:`GameLevels` of a game. The folder also gets tables of all training tasks and all evaluation pairs.
    """
    training = AgentTraining(experiment, pairs)
    result = run(training, experiment, folder, on_report, should_stop, resume=resume)
    return AgentResult(result.state, result.reports, result.compile_seconds, result.interrupted, training.played)


def training_mesh(experiment: Experiment) -> Mesh | None:
    """Return the devices that share the work of a run; None where one does all of it.

    Raises:
        ValueError: there are fewer devices than the experiment asks for, or, as a ConfigValidationError, the work
            cannot be split evenly over all there are.
    """
    choice = experiment.parallel
    if choice.num_devices == 1 and choice.over == "seeds":
        return None
    # 0 devices in the config are all there are; the work has to be divisible by them.
    mesh = data_mesh(choice.num_devices or None)
    if problems := experiment.uneven_over(mesh.size):
        raise ConfigValidationError("; ".join(problems))
    return mesh


class AgentTraining(Trainable):
    """Agents of several seeds, which learn side by side in one compiled program."""

    experiment: Experiment
    report_type = Report
    advice: ClassVar[str] = "lower schedule.learning_rate or agent.max_grad_norm"
    clock_counts_reports: ClassVar[bool] = True

    def __init__(self, experiment: Experiment, pairs: Any):
        self.experiment = experiment
        self.pairs = pairs
        self.played: TaskResults | None = None  # what the newest evaluation returned
        self._measuring: list[Future[Any]] = []  # the programs, of each canvas one
        self._updating: list[Future[Any]] = []
        training = experiment.training
        self.intervals = Intervals(
            num_updates=experiment.num_updates,
            updates_per_step=training.updates_per_report,
            updates_per_report=training.updates_per_report,
            reports_per_evaluation=training.reports_per_evaluation,
            max_seconds=training.max_seconds,
        )

    @functools.cached_property
    def mesh(self) -> Mesh | None:
        return training_mesh(self.experiment)

    @functools.cached_property
    def sides(self) -> tuple[int, ...]:
        """The sides of the canvases; none where one holds all pairs, which is that of the rules."""
        return choose_sides(self.experiment.task.canvases, self.pairs.eval)

    @functools.cached_property
    def learned(self) -> list[TasksOnCanvas]:
        """The tasks that are learned from, on each canvas that holds some."""
        return canvases_of(self.pairs.train, self.experiment.environment, self.sides)

    @functools.cached_property
    def measured(self) -> list[TasksOnCanvas]:
        """The pairs that evaluations play, on each canvas that holds some."""
        return canvases_of(self.pairs.eval, self.experiment.environment, self.sides)

    @functools.cached_property
    def train_configs(self) -> list[TrainConfig]:
        """How to learn on each canvas."""
        return configs_of(self.experiment.train_config, self.learned)

    @functools.cached_property
    def train_params(self) -> list[EnvParams]:
        return self._params_of(self.learned)

    @functools.cached_property
    def eval_params(self) -> list[EnvParams]:
        return self._params_of(self.measured)

    def init(self) -> TrainingState:
        examples = self._load_examples() if self.experiment.cloning.traces else None
        shapes = self.like()
        require_memory(self.experiment.agent.num_envs, size_of(shapes), available_memory(), growth=_GROWTH)
        # All programs are compiled in threads, in the order in which they are called: so the first state is measured
        # and reported while an update is still being compiled.
        if self.mesh is None:
            self._begin_measure(shapes)
        given = [(self._keys(g), params) for g, params in enumerate(self.train_params)]
        starting = []
        for g, config in enumerate(self.train_configs):
            policies = shapes.learner.policy if g else None  # fresh ones on the first canvas
            more = config, self.experiment.curriculum, examples, policies
            starting.append(self._compile(start_training, *given[g], *more))
        if self.mesh is None:
            self._begin_updates(shapes)
        states: list[TrainingState] = []
        for program, of_canvas in zip(_programs(starting), given, strict=True):
            policies = states[0].learner.policy if states else None
            states.append(program(*of_canvas, examples, policies))
        return join_states(states)

    def like(self) -> TrainingState:
        # Shapes are traced, not computed. The examples of an expert change values only, so they can be left out here.
        states = []
        for params, config in zip(self.train_params, self.train_configs, strict=True):
            start = lambda keys, params, config=config: start_training(keys, params, config, self.experiment.curriculum)
            states.append(jax.eval_shape(start, self._keys(), params))
        return join_states([share_learned(state, states[0]) for state in states])

    def place(self, state: TrainingState) -> TrainingState:
        """Put every agent, or its part, on its device; first compare what the processes start from."""
        require_same_start(self.train_params, self.eval_params, state)
        return state if self.mesh is None else place_state(state, self.mesh, self.experiment.parallel.over)

    def begin_compiling(self, state: TrainingState) -> None:
        self._begin_measure(state)
        self._begin_updates(state)

    def compile(self, state: TrainingState) -> None:
        self.begin_compiling(state)
        self._run_updates = _programs(self._updating)
        _programs(self._measuring)  # no evaluation waits for them
        needed = max((program_memory(program) for program in self._run_updates), key=lambda size: size or 0)
        num_devices = 1 if self.mesh is None else len(self.mesh.local_devices)
        require_memory(
            self.experiment.agent.num_envs,
            None if needed is None else num_devices * needed,
            available_memory(self.mesh),
            num_devices=num_devices,
        )

    def is_learned(self, reports: Sequence[Report]) -> bool:
        goal = self.experiment.training.stop_at_solve_rate
        if goal is None or not reports:
            return False
        newest = reports[-self.experiment.training.num_seeds :]
        rates = [rate for report in newest for rate in (report.train_solve_rate, report.evaluation_solve_rate)]
        known = [rate for rate in rates if rate is not None]
        return bool(known) and min(known) >= goal

    def step(self, state: TrainingState, update: int) -> tuple[TrainingState, Progress]:
        calls = []
        for _ in range(self.intervals.updates_per_step // self._updates_per_call):
            progress = []
            states = split_state(state, len(self.learned))
            learned = states[0]
            for g, program in enumerate(self._run_updates):
                learned, metrics = program(share_learned(states[g], learned), self.train_params[g])
                states[g] = learned
                progress.append(metrics)
            state = join_states(states)
            calls.append(progress)
        return state, merge_progress(to_host(calls), self.train_configs)

    def check(self, metrics: Progress) -> dict[int, Numbers]:
        losses = _losses_of(metrics)
        seeds = self.experiment.training.seeds
        return {seed: {name: value[k].item() for name, value in losses.items()} for k, seed in enumerate(seeds)}

    def evaluate(self, state: TrainingState) -> list[Numbers]:
        """Play all pairs; where tasks are made as they are needed there are no training pairs, and no rate of them."""
        self._begin_measure(state)
        played = [
            to_host(program(state.players, params))
            for program, params in zip(_programs(self._measuring), self.eval_params, strict=True)
        ]
        self.played = in_order = self._in_order(self.measured, len(self.pairs.eval), *played)
        solved = np.asarray(in_order.solved)
        num_train = self.pairs.num_train
        # [K, T] -> two blocks of columns. A block without a pair has no rate, and the report then says None.
        parts = {"train_solve_rate": solved[:, :num_train], "evaluation_solve_rate": solved[:, num_train:]}
        rates = [{name: part[k].mean().item() for name, part in parts.items() if part.size} for k in range(len(solved))]
        steps = np.asarray(in_order.steps)
        return [of_seed | self.pairs.scores(solved[k], steps[k]) for k, of_seed in enumerate(rates)]

    def report(
        self,
        update: int,
        seconds: float,
        metrics: Progress | None,
        evaluation: list[Numbers] | None,
        updates_per_second: float | None,
    ) -> list[Report]:
        samples = self.experiment.agent.samples_per_update
        reports = []
        for k, seed in enumerate(self.experiment.training.seeds):
            fields: dict[str, Any] = {} if metrics is None else _fields_of(metrics, k)
            if evaluation is not None:
                fields |= evaluation[k]
            if updates_per_second is not None:
                fields["steps_per_second"] = updates_per_second * samples
            reports.append(Report(update, update * samples, seconds, seed, **fields))
        return reports

    def write_tables(self, run_state: RunState, folder: RunFolder | None) -> None:
        """Write how each training task went, and each evaluation pair if it was the last state that played it."""
        # All processes take part in the copy and in the evaluation; only the first one has a folder to write to.
        curricula = [to_host(part.curriculum) for part in split_state(run_state.state, len(self.learned))]
        has_score = run_state.score is not None
        if has_score and self.played is None:  # a process that was killed evaluated it, maybe without its table
            self.evaluate(run_state.state)
        if folder is None:
            return
        seeds = self.experiment.training.seeds
        rows = [
            TaskRows.of(curriculum, config.agent.num_minibatches / config.minibatches_of_update)
            for curriculum, config in zip(curricula, self.train_configs, strict=True)
        ]
        table = self._in_order(self.learned, len(self.pairs.train_ids), *rows)
        write_task_table(folder.tasks, seeds, self.pairs.train_ids, table)
        if has_score and self.played is not None:
            write_measured_table(folder.measured, seeds, self.pairs.eval.task_ids, self.played)

    def compiled_step(self) -> CompiledStep:
        """Compile an update of all seeds, on the largest canvas; the other arguments are environments and tasks."""
        state = split_state(self.like(), len(self.learned))[0]  # shapes alone
        lowered = update_program().lower(state, self.train_params[0], self.train_configs[0], self._updates_per_call)
        name = f"update of {self.experiment.training.num_seeds} agent(s)"
        if len(self.learned) > 1:
            name += " on a canvas of {}x{}".format(*self.learned[0].rules.grid_shape)
        program = lowered.compile(compiler_options())
        return CompiledStep(name, program, state.learner.policy, state.learner.optimizer_state)

    @property
    def _updates_per_call(self) -> int:
        """On one canvas a call makes all updates of a report; several take turns in each update."""
        return self.intervals.updates_per_step if len(self.learned) == 1 else 1

    @functools.cached_property
    def _compilers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max(2, host_cores()))

    def _compile(self, program: Any, *args: Any) -> Future[Any]:
        """Trace a program, and compile it in a thread: XLA compiles outside of Python's lock."""
        return self._compilers.submit(program.lower(*args).compile, compiler_options())

    def _begin_measure(self, state: TrainingState) -> None:
        """Begin to compile what plays all pairs of each canvas."""
        devices = self.mesh, self.experiment.parallel.over
        if not self._measuring:
            self._measuring = [self._compile(measure, state.players, params, *devices) for params in self.eval_params]

    def _begin_updates(self, state: TrainingState) -> None:
        """Begin to compile what learns on each canvas."""
        devices = self.mesh, self.experiment.parallel.over
        if not self._updating:
            learning = zip(split_state(state, len(self.learned)), self.train_params, self.train_configs, strict=True)
            self._updating = [
                self._compile(update_program(), part, params, config, self._updates_per_call, *devices)
                for part, params, config in learning
            ]

    @staticmethod
    def _in_order(canvases: Sequence[TasksOnCanvas], num_tasks: int, *parts: Columns) -> Columns:
        """Put columns [K, T_g] of the tasks of each canvas together as columns [K, T]."""

        def merge(*columns: Any) -> np.ndarray:
            whole = np.zeros((*columns[0].shape[:-1], num_tasks), columns[0].dtype)
            for canvas, column in zip(canvases, columns, strict=True):
                whole[:, canvas.places] = column
            return whole

        return jax.tree.map(merge, *parts)

    def _params_of(self, canvases: Sequence[TasksOnCanvas]) -> list[Any]:
        """Put tasks on the device, or on all devices of the mesh."""
        made = [canvas.params for canvas in canvases]
        return made if self.mesh is None else [replicate(params, self.mesh) for params in made]

    def _keys(self, canvas: int = 0) -> Key[Array, " K"]:
        """Return the key of each seed; on every canvas after the first its episodes have keys of their own."""
        keys = keys_of_seeds(self.experiment.training.seeds)
        return jax.vmap(lambda key: jax.random.fold_in(key, canvas))(keys) if canvas else keys

    def _load_examples(self) -> CloningExamples:
        """Replay the traces that the policies are to imitate."""
        train = self.pairs.train
        train_config = self.experiment.train_config
        dataset = self.experiment.task.train_dataset
        if not isinstance(train, TaskSet):
            raise TraceExampleError(
                f"cloning.traces={train_config.cloning.traces!r} are of tasks that stand in files, but "
                f"task.train_dataset={dataset!r} makes new ones; leave cloning.traces out"
            )
        params = answer_shown_params(self.train_params[0], train_config)
        agent = train_config.agent
        return load_examples(train_config.cloning.traces, load_tasks(dataset), train, params, agent.gamma, agent.reward)


def _programs(compiling: Sequence[Future[Any]]) -> list[Any]:
    """Wait for programs."""
    return [program.result() for program in compiling]


def _fields_of(progress: Progress, k: int) -> dict[str, Any]:
    """Return the fields of a report that a compiled call measured of one of its agents."""
    mine = jax.tree.map(lambda x: x[k].item(), progress)
    episodes = mine.episodes
    # Sums over the episodes that ended, divided by their number; None where no episode ended in these updates.
    mean = lambda total: total / episodes.ended if episodes.ended else None
    return {
        "episodes": episodes.ended,
        "mean_return": mean(episodes.return_sum),
        "mean_length": mean(episodes.length_sum),
        "episode_solve_rate": mean(episodes.solved),
        "tasks_played": mine.tasks_played,
        "effective_tasks": mine.effective_tasks,
        **_losses_of(mine),
    }


def _losses_of(progress: Progress) -> dict[str, Any]:
    """Return all numbers that must be finite, by the names of a report's fields."""
    losses = {name: loss for name, loss in progress.losses._asdict().items() if loss is not None}
    if progress.answer_loss is not None:
        losses["answer_loss"] = progress.answer_loss
    return losses


class TaskRows(NamedTuple):
    """How each task of K agents went, and the weight of its next draw."""

    attempts: Any  # int32[K, T]
    solves: Any  # int32[K, T]
    success_rate: Any  # float32[K, T], recent, which the curriculum goes by; the prior where there was none
    weight: Any  # float32[K, T]

    @classmethod
    def of(cls, curricula: Curriculum, share: float) -> Self:
        """Take them from curricula with leaves [K, T]; ``share`` is that of their canvas in all draws."""
        rows = curricula.statistics
        return cls(rows.attempts, rows.solves, rows.success_rate, share * np.asarray(_weights(curricula)))


_weights = jax.jit(jax.vmap(curriculum_weights))


def write_task_table(path: Path, seeds: Sequence[int], task_ids: Sequence[str], rows: TaskRows) -> None:
    """Write attempts, solves, success rates and the weight of the next draw, in the order of seeds and ``task_ids``.

    ``success_rate`` is that of all attempts, null where there was none; ``recent_success_rate`` is what the curriculum
    goes by, the prior where there was none.

    Args:
        path: of the file.
        seeds: of K agents.
        task_ids: of T tasks.
        rows: columns [K, T].
    """
    table = []
    # Columns [K, T] are walked seed by seed, and then task by task.
    for seed, *of_seed in zip(seeds, *(np.asarray(column) for column in rows), strict=True):
        of_tasks = zip(task_ids, *(column.tolist() for column in of_seed), strict=True)
        table += [
            {
                "seed": seed,
                "task_id": task_id,
                "attempts": attempts,
                "solves": solves,
                "success_rate": solves / attempts if attempts else None,
                "recent_success_rate": recent,
                "weight": weight,
            }
            for task_id, attempts, solves, recent, weight in of_tasks
        ]
    write_table(path, table)


def write_measured_table(path: Path, seeds: Sequence[int], task_ids: Sequence[str], played: TaskResults) -> None:
    """Write whether the greedy policy of each seed solved each pair, and in how many steps, the submit included.

    Args:
        path: of the file.
        seeds: of K agents.
        task_ids: of T pairs.
        played: leaves [K, T].
    """
    solved = np.asarray(played.solved)
    steps = np.asarray(played.steps)
    write_table(
        path,
        [
            {"seed": seed, "task_id": task_id, "solved": bool(solved[k, t]), "steps": int(steps[k, t])}
            for k, seed in enumerate(seeds)
            for t, task_id in enumerate(task_ids)
        ],
    )
