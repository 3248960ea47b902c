"""``jaxarc train``: a run in a new folder, a run that goes on in its folder, or a sweep of runs."""

import datetime
import functools
import itertools
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import jax
import typer
from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf
from rich.console import Console
from typer.core import TyperCommand

from jaxarc.cli.console import ConfigOption, QuietOption, escape, number_table, progress_bar, warn
from jaxarc.cli.place_options import OnOption, ShardsOption, SlurmOption, place_of
from jaxarc.cli.presenter import LiveReports, draw_curves, show_closing, show_lines, show_results
from jaxarc.cli.settings import (
    as_field,
    one_kind_of_error,
    parse_override,
    read_experiment,
    topics_of,
    with_own_parts,
)
from jaxarc.cli.signals import GracefulStop, ensured, signals_interrupt
from jaxarc.config import ConfigValidationError
from jaxarc.errors import visible
from jaxarc.files import user_path, write_whole
from jaxarc.jobs import Job, Place, remove_results
from jaxarc.jobs import run as run_jobs
from jaxarc.parallel import ProcessError, allgather_text, is_distributed, is_primary
from jaxarc.runs import RunFolder, TrainingDivergedError, TrainResult, create_run_folder, open_run_folder
from jaxarc.runs.folder import RunReport, folder_of_this_job, make_new_folder, remove_unused
from jaxarc.runs.kind import KINDS, kind_of
from jaxarc.runs.loop import Trainable, run
from jaxarc.runs.presentation import Presentation, last_reports, said
from jaxarc.runs.run_state import require_same_choices
from jaxarc.runs.writers import LogWriters, check_extras, open_log_writers

_PARAGRAPHS: Final = (
    "Train an agent on real ARC tasks, and measure it on tasks that it never saw.",
    """By default a PPO agent learns on the pairs of the ARC-AGI-1 training tasks whose grids have sides up to 10, as in
    make train; [cyan]experiment=small_grids[/] takes a minute on two CPU cores. The answer is visible to the agent: it
    learns to edit a grid into a given one, not to infer a task's rule. The run folder holds config.json, metrics.jsonl,
    learning_curve.png, checkpoints and tasks.jsonl, with one line per task. [cyan]jaxarc compare[/] compares runs.""",
    """Ctrl-C (or SIGTERM) ends it early, keeps what was learned and exits with 0; a second Ctrl-C quits at once.
    [cyan]--resume RUN[/] goes on with an interrupted run in its folder, with the same results.""",
    """[cyan]surrogate=NAME[/] trains a model of an expert instead of an agent; the names are below.
    [cyan]jaxarc evaluate RUN[/] evaluates it.""",
    """[bold]Overrides[/] are topic.field=value, such as [cyan]schedule.learning_rate=1e-3 training.seed=1[/];
    topic=name takes another choice of configs/choices.yaml, [cyan]experiment=NAME[/] a preset of all topics.
    [cyan]--show[/] prints every value. With [cyan]--multirun[/] a field takes several values, as in
    [cyan]training.seed=0,1,2[/] or [cyan]range(0,3)[/], and each combination runs.""",
)
_EXAMPLES: Final = """Examples:
    jaxarc train
    jaxarc train experiment=small_grids training.seed=1
    jaxarc train --multirun training.seed=0,1,2 schedule.learning_rate=1e-3,4e-3
    jaxarc train --resume runs/NAME
    jaxarc train --fields schedule"""
HELP: Final = "\n\n".join([*(" ".join(paragraph.split()) for paragraph in _PARAGRAPHS), _EXAMPLES])


class TrainCommand(TyperCommand):
    """A command whose help ends with tables of presets and fields, which are made only for the help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from jaxarc.cli.train_help import print_overview

        super().format_help(ctx, formatter)
        print_overview()


app = typer.Typer(add_completion=False)


@app.command("train", cls=TrainCommand, help=HELP)
def train(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="What to change, as topic.field=value.", show_default=False)
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the whole config as YAML and stop.")] = False,
    multirun: Annotated[
        bool,
        typer.Option("--multirun", "-m", help="Run each combination of the values."),
    ] = False,
    on: OnOption = "local",
    shards: ShardsOption = None,
    slurm: SlurmOption = None,
    config: ConfigOption = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Go on in this folder of a run or a sweep; of a run only logging, checkpoint, parallel and "
            "training.max_seconds can be overridden.",
        ),
    ] = None,
    fields: Annotated[
        bool,
        typer.Option("--fields", help="List all fields, or those of topics."),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    given = [with_own_parts(override) for override in overrides or []]
    if fields:
        from jaxarc.cli.train_help import print_fields

        print_fields(given)
        return
    if resume is not None and config is not None and not multirun:
        raise typer.BadParameter("a run keeps its own config; leave --config out", param_hint="--resume")
    if not multirun and (on != "local" or shards is not None or slurm):
        raise typer.BadParameter("divides the runs of --multirun; see parallel for one run", param_hint="--shards")
    if multirun and show:
        raise typer.BadParameter("shows one config; leave --multirun out", param_hint="--show")
    console = Console(quiet=quiet)
    if multirun:
        if resume is not None and (not resume.is_dir() or RunFolder(resume).config.exists()):
            raise typer.BadParameter(
                f"{resume} is no folder of a sweep; name one, or leave --multirun out", param_hint="--resume"
            )
        place = place_of(on, shards, slurm, None)._replace(processes=1)  # a run at a time has the cores of a shard
        experiments = {tuple(chosen): read_experiment(chosen, config) for chosen in expand(given)}
        if not _run_sweep(experiments, _Sweep(place, resume, overrides or [], config), console):
            raise typer.Exit(1)
        return
    folder = None if resume is None else open_run_folder(resume)
    experiment = read_experiment(given, config) if folder is None else resumed_experiment(folder, given)
    if show:
        typer.echo(OmegaConf.to_yaml(topics_of(experiment)), nl=False)
        return
    folder = folder or folder_of_this_job(experiment)
    if folder is None or not report_if_finished(folder, experiment, console):
        learn(experiment, console, folder)


def resumed_experiment(folder: RunFolder, overrides: Sequence[str]) -> Any:
    """Read the choices of a run, and change those that its results do not depend on."""
    groups = [override for override in map(as_field, overrides) if "." not in override.partition("=")[0]]
    if groups:
        raise ConfigValidationError(
            f"jaxarc train: {groups[0]!r} does not go with --resume, since a run keeps its choices; leave it out, or "
            "write topic.field=value, such as training.max_seconds=60"
        )
    saved = read_experiment([], folder.config)
    changed = read_experiment(overrides, folder.config)
    require_same_choices(saved.as_dict(), changed.as_dict())
    return changed


def report_if_finished(folder: RunFolder, experiment: Any, console: Console) -> bool:
    """Print that a run is finished and return true, or return false if anything is left to learn or to write."""
    newest = folder.checkpoints.newest()
    is_finished = (
        newest is not None and newest.record.update >= experiment.num_updates and folder.learning_curve.exists()
    )
    if is_finished:
        line = f"{escape(str(folder.path))} is finished: all {experiment.num_updates} updates are learned."
        console.print(line, highlight=False, soft_wrap=True)
    return is_finished


def learn(experiment: Any, console: Console, resume: RunFolder | None = None) -> tuple[Presentation, TrainResult]:
    """Train in a new run folder, or go on in an old one, and print the course of the run.

    A new folder in which nothing was learned is removed.
    """
    start = time.perf_counter()
    check_extras(experiment.logging)
    kind = kind_of(experiment)
    with kind.session(experiment):
        console = console if is_primary() else Console(quiet=True)
        bar = functools.partial(progress_bar, is_shown=not console.quiet)
        training = kind.load(experiment)
        folder = _shared(lambda: resume or create_run_folder(training.experiment))
        presentation = kind.presentation(training, folder)
        with ensured(lambda: remove_unused(folder)) if resume is None else nullcontext():
            show_lines([*presentation.announcement, f"Run folder: {folder.path}"], console)
            with signals_interrupt():
                kind.prepare(training, bar)
            result = _train(training, presentation, folder, console, resumes=resume is not None)
        if is_primary():
            draw_curves(presentation, result.reports, folder)
        show_results(kind.results(training, result, folder), folder, console)
        show_closing(presentation, result, folder, console, time.perf_counter() - start)
    return presentation, result


def _train(
    training: Trainable, presentation: Presentation, folder: RunFolder, console: Console, *, resumes: bool
) -> TrainResult:
    """Train until it is done or a signal ends it; every report goes to the terminal and to the loggers."""
    experiment = training.experiment
    loggers = open_log_writers(experiment, folder) if is_primary() else []
    # Several processes stop together from the start; one by itself quits at once where nothing was learned.
    with (
        GracefulStop(keeps=is_distributed()) as stop,
        LogWriters([*loggers, LiveReports(presentation, len(experiment.seeds), console)], warn) as writers,
    ):

        def note(report: RunReport) -> None:
            writers.write(report)
            stop.keeps |= report.update > 0

        return run(training, experiment, folder, note, lambda: stop.is_set, resume=resumes)


def _shared(make: Callable[[], RunFolder]) -> RunFolder:
    """Let process 0 make a run folder, and open it in all."""
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


def expand(overrides: Sequence[str]) -> list[list[str]]:
    """Return each combination of the values that overrides list, as overrides with one value each.

    ``a=1,2 b=3`` gives ``a=1 b=3`` and ``a=2 b=3``.
    """
    parsed = [parse_override(override) for override in overrides]
    if not any(override.is_sweep_override() for override in parsed):
        raise ConfigValidationError("jaxarc train: --multirun needs a field with several values: training.seed=0,1,2")
    return [list(combination) for combination in itertools.product(*map(_values_of, parsed))]


def _values_of(override: Override) -> list[str]:
    """Return an override with each of its values: ``a=1,2`` gives ``a=1`` and ``a=2``."""
    with one_kind_of_error():
        key = override.get_key_element()
        if not override.is_sweep_override():
            return [f"{key}={override.get_value_element_as_str()}"]
        if not override.is_discrete_sweep():
            raise ConfigValidationError(
                f"jaxarc train: {override.input_line!r} has no end of values; list them, or use range(0,10)"
            )
        values = [f"{key}={value}" for value in override.sweep_string_iterator()]
        if not values:
            raise ConfigValidationError(f"jaxarc train: {override.input_line!r} has no value; range(0,3) has 0, 1, 2")
        return values


_CHOICES: Final = "sweep.json"  # in the folder of a sweep that a job of SLURM makes


class _Sweep(NamedTuple):
    """How the runs of a sweep are done."""

    place: Place
    folder: Path | None  # to go on in
    overrides: list[str]  # as they were given
    config: Path | None

    @property
    def choices(self) -> dict[str, Any]:
        return {"overrides": self.overrides, "config": str(self.config)}


def _run_sweep(experiments: Mapping[tuple[str, ...], Any], sweep: _Sweep, console: Console) -> bool:
    """Run experiments, known by their overrides, in run folders below one folder.

    A run that diverges is noted, and the next one starts; Ctrl-C ends the sweep with the run that it ended.

    Returns:
        Whether no run diverged.
    """
    folder = sweep.folder or _sweep_folder(list(experiments.values()), sweep.choices)
    # Of a=1 b=3 and a=2 b=3 the runs differ in the override of a.
    differing = [[one for one in chosen if not all(one in other for other in experiments)] for chosen in experiments]
    rows: dict[int, _Row] = {}
    with ensured(lambda: _say_where_it_stopped(folder, len(rows), len(experiments))):
        _fill_sweep(experiments, differing, sweep, folder.absolute(), rows, console)
    kind = KINDS[next(iter(experiments.values())).kind]
    table = number_table(
        "run", "overrides", kind.score, kind.samples.replace("_", "\n"), "learning\nseconds", "ended", num_words=2
    )
    table.columns[-1].justify = "left"
    table.columns[1].overflow = "fold"
    for index, row in sorted(rows.items()):
        table.add_row(str(index + 1), escape("\n".join(differing[index])), *row)
    console.rule("all runs")
    console.print(table)
    console.print(f"Sweep folder: {escape(str(folder))}", highlight=False, soft_wrap=True)
    return all(row.ended in ("done", "stopped") for row in rows.values())


def _say_where_it_stopped(folder: Path, num_done: int, count: int) -> None:
    """Say in a line what a sweep has done that a signal or an error ended; not by print, which may be amid a line."""
    if num_done < count:
        if num_done == 0 and not _run_folders(folder):
            shutil.rmtree(folder)  # nothing was learned
        where = f"; they are in {visible(str(folder))}" if folder.exists() else ""
        os.write(2, f"The sweep stopped: {num_done} of {count} runs are done{where}\n".encode())


def _fill_sweep(
    experiments: Mapping[tuple[str, ...], Any],
    differing: Sequence[Sequence[str]],
    sweep: _Sweep,
    folder: Path,
    rows: "dict[int, _Row]",
    console: Console,
) -> None:
    """Run the experiments, and add a row for each by its index, until a user ends one."""

    @functools.wraps(_learn_in_sweep)  # so that it is the same job, which a sweep may go on with elsewhere
    def learn_here(*arguments: Any) -> _Row:
        return _learn_in_sweep(*arguments, console=console)

    is_here = sweep.place.engine == "here"
    count = len(experiments)
    jobs = []
    for number, (chosen, experiment) in enumerate(experiments.items(), start=1):
        name = f"{experiment.logging.run_name}-{number:0{len(str(count))}}"
        title = f"{number} of {count}: {' '.join(differing[number - 1])}"
        arguments = (sweep.overrides, chosen, sweep.config, folder, name, title)
        jobs.append(Job(learn_here if is_here else _learn_in_sweep, arguments))
    try:
        with nullcontext() if is_here else signals_interrupt():
            for done in run_jobs(jobs, sweep.place, folder=folder / "jobs", about=sweep.choices):
                row = _Row("-", "-", "-", done.fault) if done.fault else _Row(*done.value)
                rows[done.job] = row
                if not is_here:
                    line = f"{jobs[done.job].arguments[-1]}: {row.ended}, {' '.join(row.score.split())}"
                    console.print(line, markup=False, highlight=False, soft_wrap=True)
    except _StoppedRun as stop:
        rows[len(rows)] = stop.row
    if len(rows) == count:
        remove_results(folder / "jobs")


class _Row(NamedTuple):
    """What the table of a sweep says of a run."""

    score: str
    samples: str
    seconds: str
    ended: str


class _StoppedRun(Exception):  # noqa: N818 - it is no error
    """A user has ended a run, which its folder goes on from."""

    def __init__(self, row: _Row) -> None:
        self.row = row


def _learn_in_sweep(
    overrides: Sequence[str],
    chosen: Sequence[str],
    config: Path | None,
    folder: Path,
    name: str,
    title: str,
    console: Console | None = None,
) -> _Row:
    """Train a run of a sweep, or go on in its folder, where it was begun."""
    for override in overrides:
        with_own_parts(override)  # which loads them in this process
    experiment = read_experiment(chosen, config)
    logging = experiment.logging.replace(run_root=str(folder), run_name=name)
    console = console or Console(quiet=True)
    console.rule(escape(title))
    try:
        presentation, outcome = learn(experiment.replace(logging=logging), console, *_run_folders(folder, name))
    except TrainingDivergedError as error:
        console.print(f"[bold red]Diverged:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return _Row("-", "-", "-", "diverged")
    last = outcome.reports[-1]
    score = "\n".join(said(presentation.score, last_reports(outcome.reports))) or "-"
    row = _Row(score, f"{last.samples:,}", f"{last.seconds:.1f}", "stopped" if outcome.interrupted else "done")
    if outcome.interrupted:
        raise _StoppedRun(row)
    return row


def _run_folders(sweep: Path, name: str = "") -> list[RunFolder]:
    """List the runs of a sweep that have begun, or the one of a name."""
    return [RunFolder(path.parent) for path in sweep.glob(f"*-{name or '*'}/{RunFolder(sweep).config.name}")]


def _sweep_folder(experiments: Sequence[Any], choices: dict[str, Any]) -> Path:
    """Make a folder for a sweep, or return the one that this job made before SLURM started it again."""
    if any(topics_of(experiment).get("parallel", {}).get("multihost") for experiment in experiments):
        raise ConfigValidationError(
            "jaxarc train: --multirun does not go with parallel.multihost=true, as processes meet only once; start "
            "each run by a command of its own"
        )
    roots = {experiment.logging.run_root for experiment in experiments}
    if len(roots) > 1:
        raise ConfigValidationError(f"jaxarc train: a sweep has one logging.run_root, got {', '.join(sorted(roots))}")
    written = json.dumps(choices).encode()
    for file in user_path(Path(*roots)).glob(f"*/{_CHOICES}"):
        folder = RunFolder(file.parent)
        if folder.is_of_this_job and file.read_bytes() == written:
            folder.claim()
            return folder.path
    name = f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-{experiments[0].logging.run_name}-sweep"
    path = make_new_folder(Path(*roots), name)
    if "SLURM_JOB_ID" in os.environ:
        write_whole(path / _CHOICES, written)
        RunFolder(path).claim()
    return path
