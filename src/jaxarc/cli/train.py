"""``jaxarc train``: a run in a new folder, a run that goes on in its folder, or a sweep of runs."""

import datetime
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf
from rich.console import Console
from rich.table import Table
from typer.core import TyperCommand

from jaxarc.agents import Experiment
from jaxarc.agents.train import AgentResult
from jaxarc.cli.console import QuietOption, escape, mean_share, number_table
from jaxarc.cli.settings import AnyExperiment, one_kind_of_error, parse_override, read_any_experiment, topics_of
from jaxarc.cli.surrogate_run import learn_surrogate, measured_parts
from jaxarc.cli.training_run import last_reports, learn
from jaxarc.config import ConfigValidationError
from jaxarc.runs import RunFolder, TrainingDivergedError, open_run_folder
from jaxarc.runs.folder import make_new_folder
from jaxarc.runs.state import require_same_choices
from jaxarc.surrogate.experiment import SurrogateExperiment
from jaxarc.surrogate.train import SurrogateResult

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
    topic=name selects another file of configs/<topic>/, [cyan]experiment=NAME[/] a preset of all topics.
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
    config: Annotated[
        Path | None,
        typer.Option(help="Start from this file instead of configs/: a run's config.json, or what --show printed."),
    ] = None,
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
    given = overrides or []
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
        if not run_sweep({tuple(chosen): read_any_experiment(chosen, config) for chosen in expand(given)}, console):
            raise typer.Exit(1)
        return
    folder = None if resume is None else open_run_folder(resume)
    experiment = read_any_experiment(given, config) if folder is None else resumed_experiment(folder, given)
    if show:
        typer.echo(OmegaConf.to_yaml(topics_of(experiment)), nl=False)
        return
    if folder is None or not report_if_finished(folder, experiment, console):
        learn_any(experiment, console, folder)


def resumed_experiment(folder: RunFolder, overrides: Sequence[str]) -> AnyExperiment:
    """Read the choices of a run, and change those that its results do not depend on.

    Raises:
        ConfigValidationError: an override is not of a single field.
        IncompatibleRunError: an override would change what is computed.
    """
    groups = [override for override in overrides if "." not in override.partition("=")[0]]
    if groups:
        raise ConfigValidationError(
            f"jaxarc train: {groups[0]!r} does not go with --resume, since a run keeps its choices; leave it out, or "
            "write topic.field=value, such as training.max_seconds=60"
        )
    saved = read_any_experiment([], folder.config)
    changed = read_any_experiment(overrides, folder.config)
    require_same_choices(saved.as_dict(), changed.as_dict())
    return changed


def report_if_finished(folder: RunFolder, experiment: AnyExperiment, console: Console) -> bool:
    """Print that a run is finished and return true, or return false if anything is left to learn or to write."""
    newest = folder.checkpoints.newest()
    is_finished = newest is not None and newest.update >= experiment.num_updates and folder.learning_curve.exists()
    if is_finished:
        line = f"{escape(str(folder.path))} is finished: all {experiment.num_updates} updates are learned."
        console.print(line, highlight=False, soft_wrap=True)
    return is_finished


AnyResult: TypeAlias = AgentResult | SurrogateResult


def learn_any(experiment: AnyExperiment, console: Console, resume: RunFolder | None = None) -> AnyResult:
    """Train an agent or a surrogate in a new run folder, or continue in an old one, and print the course of the run.

    Raises:
        ConfigValidationError, TrainingDivergedError, OSError: and more, see the functions called.
    """
    if isinstance(experiment, SurrogateExperiment):
        return learn_surrogate(experiment, console, resume)
    return learn(experiment, console, resume)


@dataclass(frozen=True)
class _Ending:
    """The result of one combination."""

    words: str
    outcome: AnyResult | None  # None where it diverged


def expand(overrides: Sequence[str]) -> list[list[str]]:
    """Return each combination of the values that overrides list, as overrides with one value each.

    ``a=1,2 b=3`` gives ``a=1 b=3`` and ``a=2 b=3``.

    Raises:
        ConfigValidationError: no override lists values, one cannot be read, or one is a range without end.
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
        return [f"{key}={value}" for value in override.sweep_string_iterator()]


def run_sweep(experiments: Mapping[tuple[str, ...], AnyExperiment], console: Console) -> bool:
    """Run experiments, known by their overrides, in run folders below one new folder.

    A run that diverges is noted, and the next one starts; Ctrl-C ends the sweep with the run that it ended.

    Returns:
        Whether no run diverged.
    """
    folder = _sweep_folder(list(experiments.values()))
    endings: dict[tuple[str, ...], _Ending] = {}
    for number, (chosen, experiment) in enumerate(experiments.items(), start=1):
        console.rule(f"{number} of {len(experiments)}: {escape(' '.join(_differing(chosen, experiments)))}")
        name = f"{experiment.logging.run_name}-{number:0{len(str(len(experiments)))}}"
        endings[chosen] = _run(
            experiment.replace(logging=experiment.logging.replace(run_root=str(folder), run_name=name)), console
        )
        if endings[chosen].words == "stopped":
            break
    console.rule("all runs")
    console.print(_table(endings, experiments))
    console.print(f"Sweep folder: {escape(str(folder))}", highlight=False, soft_wrap=True)
    return all(ending.outcome is not None for ending in endings.values())


def _sweep_folder(experiments: Sequence[AnyExperiment]) -> Path:
    if any(isinstance(experiment, Experiment) and experiment.parallel.multihost for experiment in experiments):
        raise ConfigValidationError(
            "jaxarc train: --multirun does not go with parallel.multihost=true, as processes meet only once; start "
            "each run by a command of its own"
        )
    roots = {experiment.logging.run_root for experiment in experiments}
    if len(roots) > 1:
        raise ConfigValidationError(f"jaxarc train: a sweep has one logging.run_root, got {', '.join(sorted(roots))}")
    name = f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-{experiments[0].logging.run_name}-sweep"
    return make_new_folder(Path(*roots), name)


def _run(experiment: AnyExperiment, console: Console) -> _Ending:
    try:
        outcome = learn_any(experiment, console)
    except TrainingDivergedError as error:
        console.print(f"[bold red]Diverged:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return _Ending("diverged", None)
    return _Ending("stopped" if outcome.interrupted else "done", outcome)


def _differing(chosen: tuple[str, ...], experiments: Mapping[tuple[str, ...], AnyExperiment]) -> list[str]:
    """Return the overrides in which combinations differ: of ``a=1 b=3`` and ``a=2 b=3`` that of ``a``."""
    return [override for override in chosen if not all(override in other for other in experiments)]


def _table(endings: Mapping[tuple[str, ...], _Ending], experiments: Mapping[tuple[str, ...], AnyExperiment]) -> Table:
    of_surrogates = all(isinstance(experiment, SurrogateExperiment) for experiment in experiments.values())
    score, samples = ("held out", "examples") if of_surrogates else ("unseen solved", "environment\nsteps")
    table = number_table("run", "overrides", score, samples, "learning\nseconds", "ended", num_words=2)
    table.columns[-1].justify = "left"
    table.columns[1].overflow = "fold"
    for number, (chosen, ending) in enumerate(endings.items(), start=1):
        overrides = "\n".join(map(escape, _differing(chosen, experiments)))
        if ending.outcome is None:
            table.add_row(str(number), overrides, "-", "-", "-", ending.words)
            continue
        last = ending.outcome.reports[-1]
        table.add_row(
            str(number), overrides, _score(ending.outcome), f"{last.samples:,}", f"{last.seconds:.1f}", ending.words
        )
    return table


def _score(outcome: AnyResult) -> str:
    if isinstance(outcome, SurrogateResult):
        return "\n".join(measured_parts(outcome.reports[-1]))
    return mean_share(report.evaluation_solve_rate for report in last_reports(outcome.reports))
