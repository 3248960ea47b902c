"""One training run on a terminal: its announcement, its live line, and the tables at its end."""

import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

import jax
from rich.console import Console
from rich.table import Table

from jaxarc.agents import Experiment, Report
from jaxarc.agents.searched_answers import SearchedAnswers
from jaxarc.agents.train import AgentResult, training_mesh
from jaxarc.agents.train import train as run_training
from jaxarc.cli.console import LiveLine, escape, mean_share, number_table, progress_bar, range_share, warn
from jaxarc.cli.processes import GracefulStop, ensured, signals_interrupt
from jaxarc.config import AnswerConfig, ConfigValidationError, ParallelConfig
from jaxarc.datasets.training_pairs import TrainingPairs, load_pairs, pairs_by_rule
from jaxarc.parallel import (
    ProcessError,
    allgather_text,
    distributed_session,
    is_distributed,
    is_primary,
    use_host_cores,
)
from jaxarc.runs import RunFolder, create_run_folder
from jaxarc.runs.folder import RunConfig, remove_unused
from jaxarc.runs.loop import TrainingDivergedError
from jaxarc.runs.metrics import RunReport
from jaxarc.runs.writers import LogWriter, LogWriters, check_extras, open_log_writers
from jaxarc.search import Question
from jaxarc.tasks import TaskFormatError
from jaxarc.tasks.pair_pool import PairPool
from jaxarc.tasks.procedural import ProceduralTasks

Result = TypeVar("Result")


def learn(experiment: Experiment, console: Console, resume: RunFolder | None = None) -> AgentResult:
    """Train in a new run folder, or go on in an old one, and print its course.

    Raises:
        ConfigValidationError: no task is left, or a library that the logging needs is missing.
        TaskFormatError, UnknownDatasetError, TrainingDivergedError, LogWriterError, ProcessError, OSError: see the
            functions called.
    """
    check_extras(experiment.logging)
    _make_cores(experiment.parallel)
    with distributed_session(experiment.parallel, agreed=(TrainingDivergedError,)):
        return _learn(without_place(experiment), console if is_primary() else Console(quiet=True), resume)


def _learn(experiment: Experiment, console: Console, resume: RunFolder | None) -> AgentResult:
    start = time.perf_counter()
    _check_devices(experiment)
    if not experiment.training.compilation_cache:
        jax.config.update("jax_enable_compilation_cache", False)
    pairs = load_training_pairs(experiment)

    def announce(folder: RunFolder) -> None:
        console.print(_announcement(experiment, pairs, folder), highlight=False, soft_wrap=True)
        if experiment.answer.source == "searched":
            _search_answers(experiment.answer, pairs, console)

    progress = lambda: TrainingProgress(console, experiment.num_updates, experiment.training.num_seeds)
    train = functools.partial(run_training, experiment, pairs)
    folder, outcome = train_in_folder(experiment, resume, announce, progress, train)
    if is_primary():
        _draw(outcome.reports, folder, _title(experiment, pairs))
    console.print(_results(experiment, outcome, pairs))
    console.print(_actions(outcome, pairs), highlight=False)
    if experiment.curriculum.kind != "uniform":
        line = _drawn(experiment.curriculum.kind, outcome.reports, len(pairs.train_ids))
        console.print(line, highlight=False, soft_wrap=True)
    console.print(
        _closing(outcome, experiment.num_updates, folder, time.perf_counter() - start), highlight=False, soft_wrap=True
    )
    return outcome


def train_in_folder(
    experiment: RunConfig,
    resume: RunFolder | None,
    announce: Callable[[RunFolder], None],
    open_progress: Callable[[], LogWriter],
    train: Callable[..., Result],
) -> tuple[RunFolder, Result]:
    """Train in a new run folder, or go on in an old one, until it is done or a signal ends it.

    A new folder in which nothing was learned is removed.

    Args:
        experiment: all choices.
        resume: the old folder, or None.
        announce: prints what is about to be learned.
        open_progress: opens what shows the reports on the terminal; the loggers of the experiment get them too.
        train: as :func:`jaxarc.agents.train.train` without its first two arguments.

    Raises:
        LogWriterError, OSError: a logger or the folder cannot be opened; and what ``train`` raises.
    """
    folder = shared_folder(lambda: resume or create_run_folder(experiment))
    with ensured(lambda: remove_unused(folder)) if resume is None else nullcontext():
        announce(folder)
        loggers = open_log_writers(experiment, folder) if is_primary() else []
        # Several processes stop together from the start; one by itself quits at once where nothing was learned.
        with GracefulStop(keeps=is_distributed()) as stop, LogWriters([*loggers, open_progress()], warn) as writers:

            def note(report: RunReport) -> None:
                writers.write(report)
                stop.keeps |= report.update > 0

            return folder, train(folder, note, lambda: stop.is_set, resume=resume is not None)


def last_reports(reports: Sequence[Report]) -> list[Report]:
    """Return the newest report of each seed."""
    return list({report.seed: report for report in reports}.values())


def _make_cores(parallel: ParallelConfig) -> None:
    """Make a device for each core that is asked for, on a CPU."""
    if parallel.num_devices == 1:
        return
    try:
        use_host_cores(parallel.num_devices // (parallel.num_processes or 1) or None)
    except RuntimeError as error:
        raise ConfigValidationError(f"jaxarc train: parallel.num_devices={parallel.num_devices}: {error}") from error


def _check_devices(experiment: Experiment) -> None:
    try:
        training_mesh(experiment)
    except ValueError as error:
        count = experiment.parallel.num_devices
        raise ConfigValidationError(f"jaxarc train: parallel.num_devices={count}: {error}") from error


def load_training_pairs(experiment: Experiment) -> TrainingPairs:
    """Load what an agent learns from and is evaluated on.

    Raises:
        ConfigValidationError: no task is left.
        TaskFormatError, UnknownDatasetError: see :func:`jaxarc.datasets.training_pairs.load_pairs`.
    """
    try:
        hides = experiment.answer.is_hidden
        rules = experiment.environment
        return load_pairs(experiment.task, rules.grid_shape, hides_answers=hides, augmentation=rules.augmentation)
    except TaskFormatError:
        raise
    except ValueError as error:  # no task is small enough, or none is unseen
        raise ConfigValidationError(f"jaxarc train: {error}") from error


def _search_answers(config: AnswerConfig, pairs: TrainingPairs, console: Console) -> None:
    """Search the answers that evaluations will ask for, with a bar, and where Ctrl-C ends it at once.

    Of each evaluation task the first pair is played and the others are shown.
    """
    questions = [Question(task.task_id, 0, task.train[1:], task.train[0][0]) for task in pairs.eval]
    answers = SearchedAnswers(config.search_seconds, config.search_processes)
    with (
        progress_bar("searched answers", total=len(questions), is_shown=not console.quiet) as show,
        signals_interrupt(),
    ):
        answers.answers(questions, show)


def _announcement(experiment: Experiment, pairs: TrainingPairs, folder: RunFolder) -> str:
    task = experiment.task
    recolors = experiment.environment.augmentation.recolor != "none"
    lines = [
        f"Learning from {escape(_material(experiment, pairs))}"
        f"{', their colors permuted anew in every episode' if recolors else ''}.",
        f"Measuring also on {pairs.num_evaluation} {_evaluated(pairs)} pairs of {escape(task.evaluation_dataset)}."
        f"{left_out(pairs.num_left_out)}",
        f"Run folder: {escape(str(folder.path))}",
    ]
    if experiment.environment.observation.reveal_target:
        lines.insert(
            2,
            "[bold]The answer is visible to the agent:[/] it learns to edit a grid into a given one, not to find the "
            "rule of a task; so test pairs count as pairs.",
        )
    if experiment.training.num_seeds > 1:
        lines.insert(0, f"{experiment.training.num_seeds} agents learn side by side, {_seeds(experiment)}.")
    return "\n".join(lines)


def _evaluated(pairs: TrainingPairs) -> str:
    """Name the evaluation pairs: where rules make the training pairs, chance may make one of these again."""
    return "newly drawn" if isinstance(pairs.train, ProceduralTasks) else "unseen"


def left_out(count: int) -> str:
    """Say how many pairs are not measured; nothing where all are."""
    if not count:
        return ""
    return f" {'One more is' if count == 1 else f'{count:,} more are'} left out: the training pairs hold them."


def _material(experiment: Experiment, pairs: TrainingPairs) -> str:
    task = experiment.task
    if isinstance(pairs.train, PairPool):
        return f"pairs of {task.train_dataset} that each episode draws, {pairs.train}"
    if pairs.num_train == 0:
        return f"{task.train_dataset}, new tasks as they are needed, sides {task.min_side} to {task.max_side}"
    return f"{pairs.num_train} pairs of {task.train_dataset}, sides up to {task.max_side}"


def _results(experiment: Experiment, outcome: AgentResult, pairs: TrainingPairs) -> Table:
    reports = outcome.reports
    first = last_reports(list(reversed(reports)))
    last = last_reports(reports)
    table = number_table(f"solved, {_answer(experiment)}", "pairs", "before", "after")
    if pairs.num_train:
        rates = [mean_share(report.train_solve_rate for report in stage) for stage in (first, last)]
        table.add_row("training pairs", str(pairs.num_train), *rates)
    rates = [mean_share(report.evaluation_solve_rate for report in stage) for stage in (first, last)]
    table.add_row(f"{_evaluated(pairs)} evaluation pairs", str(pairs.num_evaluation), *rates)
    if outcome.played is not None and len(rules := pairs_by_rule(pairs)) > 1:
        for rule, indices in rules.items():
            solved = mean_share(of_seed[indices].mean().item() for of_seed in outcome.played.solved)
            table.add_row(f"  {rule}", str(len(indices)), "", solved)
    return table


def _actions(outcome: AgentResult, pairs: TrainingPairs) -> str:
    """Say how many actions the evaluation pairs took that were solved."""
    if outcome.played is None:
        return "The run was measured when it ended; nothing was played again."
    solved, steps = (part[:, pairs.num_train :] for part in outcome.played)
    if not solved.any():
        return "No evaluation pair was solved."
    return f"A solved evaluation pair took {steps[solved].mean():.1f} actions on average, the submit included."


def _drawn(kind: str, reports: Sequence[Report], num_train: int) -> str:
    last = last_reports([report for report in reports if report.effective_tasks is not None])
    if not last:
        return f"Curriculum {kind}: stopped before the first report."
    played = statistics.fmean(report.tasks_played or 0 for report in last)
    effective = statistics.fmean(report.effective_tasks or 0.0 for report in last)
    return (
        f"Curriculum {kind}: {played:,.0f} of {num_train:,} pairs were played; "
        f"the next would be drawn as if from {effective:,.0f} equally likely ones."
    )


def _closing(outcome: AgentResult, num_updates: int, folder: RunFolder, seconds: float) -> str:
    last = outcome.reports[-1]
    files = [path.name for path in sorted(folder.path.iterdir()) if not path.name.startswith(".")]
    each = " of each seed" if len(last_reports(outcome.reports)) > 1 else ""
    share = "" if last.update == num_updates else f" after {last.update} of {num_updates} updates"
    ending = "Stopped early, and kept what was learned," if outcome.interrupted else "Done"
    return "\n".join(
        [
            "Every pair was played once by the greedy policy.",
            f"{ending}{share} in {seconds:.0f} s: {outcome.compile_seconds:.0f} s compiling, {last.seconds:.0f} s "
            f"learning and measuring {last.environment_steps:,} environment steps{each}.",
            f"{escape(str(folder.path))}: {', '.join(files)}",
            f"How each task went: {escape(str(folder.tasks))}",
            f"To see every episode: jaxarc replay {escape(str(folder.path))}",
        ]
    )


def _draw(reports: Sequence[Report], folder: RunFolder, title: str) -> None:
    # Matplotlib takes half a second to import; a mistyped command must not wait for it.
    from jaxarc.render.figures import LearningCurve, draw_learning_curve

    names = [field.name for field in dataclasses.fields(LearningCurve)]
    curves = []
    for seed in dict.fromkeys(report.seed for report in reports):
        rows = [dataclasses.asdict(report) for report in reports if report.seed == seed]
        curves.append(LearningCurve(**{name: [row[name] for row in rows] for name in names}))
    draw_learning_curve(curves, folder.learning_curve, title)


def _title(experiment: Experiment, pairs: TrainingPairs) -> str:
    algorithm = experiment.agent.algorithm.upper()
    return f"{algorithm} on {_material(experiment, pairs)}, {_answer(experiment)}, {_seeds(experiment)}"


def _answer(experiment: Experiment) -> str:
    return "answer visible" if experiment.environment.observation.reveal_target else "answer hidden"


def _seeds(experiment: Experiment) -> str:
    seeds = experiment.training.seeds
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


class TrainingProgress:
    """Shows the reports of agents on a live line; a writer of reports, open from its start.

    The reports of several seeds come one after the other and make one line: means, and for rates also the range.
    """

    def __init__(self, console: Console, num_updates: int, num_seeds: int = 1):
        self.num_seeds = num_seeds
        self._line = LiveLine(console, num_updates)
        self._rates = ""
        self._gathered: list[Report] = []  # of one update, from the seeds so far
        self.close = self._line.close

    def write(self, report: Report) -> None:
        """Show the newest report, when it is that of the last seed."""
        self._gathered.append(report)
        if len(self._gathered) == self.num_seeds:
            self._show(self._gathered)
            self._gathered = []

    def _show(self, reports: list[Report]) -> None:
        if reports[0].evaluation_solve_rate is not None:
            self._rates = f"solved: evaluation {range_share(report.evaluation_solve_rate for report in reports)}"
        if reports[0].train_solve_rate is not None:
            self._rates += f", train {range_share(report.train_solve_rate for report in reports)}"
        parts = []
        if speeds := [report.steps_per_second for report in reports if report.steps_per_second is not None]:
            parts.append(f"{sum(speeds) / 1000:.0f}k steps/s")
        if returns := [report.mean_return for report in reports if report.mean_return is not None]:
            parts.append(f"return {statistics.fmean(returns):.2f}")
        self._line.show("update", reports[0].update, [*parts, self._rates])


def without_place(experiment: Experiment) -> Experiment:
    """Leave out the id of this process and the address of process 0: a run can go on anywhere."""
    parallel = experiment.parallel.replace(coordinator_address=None, num_processes=None, process_id=None)
    return experiment.replace(parallel=parallel)


def shared_folder(make: Callable[[], RunFolder]) -> RunFolder:
    """Let process 0 make a run folder, and open it in all.

    Raises:
        ProcessError: this process does not see it.
    """
    if jax.process_count() == 1:
        return make()
    path = Path(allgather_text(str(make().path.resolve()) if is_primary() else "")[0])
    folder = RunFolder(path)
    if not folder.config.is_file():
        raise ProcessError(
            f"process {jax.process_index()} does not see the run folder {path} that process 0 made; set "
            "logging.run_root to a folder on a disk that all machines share"
        )
    return folder
