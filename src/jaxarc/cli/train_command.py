"""``jaxarc train``: a run in a new folder, a run that goes on in its folder, or a sweep of runs."""

import datetime
import functools
import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, Final

import jax
import typer
from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf
from rich.console import Console
from rich.table import Table
from typer.core import TyperCommand

from jaxarc.cli.console import ConfigOption, QuietOption, escape, number_table, progress_bar, warn
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
    [cyan]--resume RUN[/] continues an interrupted run in its folder, with the results of an uninterrupted one.""",
    """[cyan]surrogate=NAME[/] trains a model of an expert instead of an agent: [cyan]surrogate=lookahead[/], of the
    expert that looks one edit ahead, [cyan]surrogate=parent_sets[/] or [cyan]surrogate=graphs[/], of structural models.
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
        bool, typer.Option("--multirun", "-m", help="Run each combination of the values, one after the other.")
    ] = False,
    config: ConfigOption = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Go on in this run folder from its newest checkpoint; only logging, checkpoint, parallel and "
            "training.max_seconds can be overridden.",
        ),
    ] = None,
    fields: Annotated[
        bool,
        typer.Option("--fields", help="List all fields, or those of topics: --fields schedule."),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    given = [with_own_parts(override) for override in overrides or []]
    if fields:
        from jaxarc.cli.train_help import print_fields

        print_fields(given)
        return
    if resume is not None and (multirun or config is not None):
        raise typer.BadParameter("a run keeps its own config; leave --multirun and --config out", param_hint="--resume")
    if multirun and show:
        raise typer.BadParameter("shows one config; leave --multirun out", param_hint="--show")
    console = Console(quiet=quiet)
    if multirun:
        if not _run_sweep({tuple(chosen): read_experiment(chosen, config) for chosen in expand(given)}, console):
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
        training = kind.load(experiment, bar)
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


def _run_sweep(experiments: Mapping[tuple[str, ...], Any], console: Console) -> bool:
    """Run experiments, known by their overrides, in run folders below one new folder.

    A run that diverges is noted, and the next one starts; Ctrl-C ends the sweep with the run that it ended.

    Returns:
        Whether no run diverged.
    """
    folder = _sweep_folder(list(experiments.values()))
    row = KINDS[next(iter(experiments.values())).kind]
    table = number_table(
        "run", "overrides", row.score, row.samples.replace("_", "\n"), "learning\nseconds", "ended", num_words=2
    )
    table.columns[-1].justify = "left"
    table.columns[1].overflow = "fold"
    with ensured(lambda: _say_where_it_stopped(folder, table.row_count, len(experiments))):
        all_done = _fill_sweep(experiments, folder, table, console)
    console.rule("all runs")
    console.print(table)
    console.print(f"Sweep folder: {escape(str(folder))}", highlight=False, soft_wrap=True)
    return all_done


def _say_where_it_stopped(folder: Path, num_done: int, count: int) -> None:
    """Say in a line what a sweep has done that a signal or an error ended; not by print, which may be amid a line."""
    if num_done < count:
        with suppress(OSError):
            folder.rmdir()  # where nothing was learned
        where = f"; they are in {visible(str(folder))}" if folder.exists() else ""
        os.write(2, f"The sweep stopped: {num_done} of {count} runs are done{where}\n".encode())


def _fill_sweep(experiments: Mapping[tuple[str, ...], Any], folder: Path, table: Table, console: Console) -> bool:
    """Run the experiments, and add a row for each; return whether no run diverged."""
    all_done = True
    for number, (chosen, experiment) in enumerate(experiments.items(), start=1):
        # Of a=1 b=3 and a=2 b=3 the runs differ in the override of a.
        differing = [escape(one) for one in chosen if not all(one in other for other in experiments)]
        console.rule(f"{number} of {len(experiments)}: {' '.join(differing)}")
        name = f"{experiment.logging.run_name}-{number:0{len(str(len(experiments)))}}"
        logging = experiment.logging.replace(run_root=str(folder), run_name=name)
        try:
            presentation, outcome = learn(experiment.replace(logging=logging), console)
        except TrainingDivergedError as error:
            console.print(f"[bold red]Diverged:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
            table.add_row(str(number), "\n".join(differing), "-", "-", "-", "diverged")
            all_done = False
            continue
        last = outcome.reports[-1]
        score = "\n".join(said(presentation.score, last_reports(outcome.reports))) or "-"
        numbers = score, f"{last.samples:,}", f"{last.seconds:.1f}"
        table.add_row(str(number), "\n".join(differing), *numbers, "stopped" if outcome.interrupted else "done")
        if outcome.interrupted:
            break
    return all_done


def _sweep_folder(experiments: Sequence[Any]) -> Path:
    if any(topics_of(experiment).get("parallel", {}).get("multihost") for experiment in experiments):
        raise ConfigValidationError(
            "jaxarc train: --multirun does not go with parallel.multihost=true, as processes meet only once; start "
            "each run by a command of its own"
        )
    roots = {experiment.logging.run_root for experiment in experiments}
    if len(roots) > 1:
        raise ConfigValidationError(f"jaxarc train: a sweep has one logging.run_root, got {', '.join(sorted(roots))}")
    name = f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-{experiments[0].logging.run_name}-sweep"
    return make_new_folder(Path(*roots), name)
