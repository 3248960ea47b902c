"""``jaxarc train --multirun``: every combination of some values, one run after the other."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jaxarc.cli.progress import measured_parts
from jaxarc.cli.runs import AnyResult, learn_any
from jaxarc.cli.settings import AnyExperiment, one_kind_of_error
from jaxarc.cli.spread import mean_share
from jaxarc.cli.training_run import last_reports
from jaxarc.config import ConfigValidationError
from jaxarc.training import Experiment, TrainingDivergedError
from jaxarc.training.run_folder import make_new_folder
from jaxarc.training.surrogates import SurrogateExperiment, SurrogateResult


@dataclass(frozen=True)
class _Ending:
    """How one combination went."""

    words: str
    outcome: AnyResult | None  # None where it diverged


def expand(overrides: Sequence[str]) -> list[list[str]]:
    """Return each combination of the values that overrides list, as overrides with one value each.

    Raises:
        ConfigValidationError: no override lists values, one cannot be read, or one is a range without end.
    """
    with one_kind_of_error():
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    if not any(override.is_sweep_override() for override in parsed):
        raise ConfigValidationError("jaxarc train: --multirun needs a field with several values: training.seed=0,1,2")
    with one_kind_of_error():
        (combinations,) = BasicSweeper.split_arguments(parsed, None)
    return [list(combination) for combination in combinations]


def run_sweep(experiments: Mapping[tuple[str, ...], AnyExperiment], console: Console) -> bool:
    """Run experiments, known by their overrides, in run folders below one new folder.

    A run that diverges is noted, and the next one starts; Ctrl-C ends the sweep with the run that it ended.

    Returns:
        Whether no run diverged.
    """
    folder = _sweep_folder(list(experiments.values()))
    endings: dict[tuple[str, ...], _Ending] = {}
    for number, (chosen, experiment) in enumerate(experiments.items(), start=1):
        console.rule(f"{number} of {len(experiments)}: {escape(' '.join(_told(chosen, experiments)))}")
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


def _told(chosen: tuple[str, ...], experiments: Mapping[tuple[str, ...], AnyExperiment]) -> list[str]:
    """Return the overrides in which combinations differ."""
    return [override for override in chosen if not all(override in other for other in experiments)]


def _table(endings: Mapping[tuple[str, ...], _Ending], experiments: Mapping[tuple[str, ...], AnyExperiment]) -> Table:
    of_surrogates = all(isinstance(experiment, SurrogateExperiment) for experiment in experiments.values())
    measured, samples = ("held out", "examples") if of_surrogates else ("unseen solved", "environment\nsteps")
    table = Table("run", "overrides", measured, samples, "learning\nseconds", "ended")
    for column in table.columns[2:5]:
        column.justify = "right"
    table.columns[1].overflow = "fold"
    for number, (chosen, ending) in enumerate(endings.items(), start=1):
        told = escape("\n".join(_told(chosen, experiments)))
        if ending.outcome is None:
            table.add_row(str(number), told, "-", "-", "-", ending.words)
            continue
        last = ending.outcome.reports[-1]
        table.add_row(
            str(number), told, _measured(ending.outcome), f"{last.samples:,}", f"{last.seconds:.1f}", ending.words
        )
    return table


def _measured(outcome: AnyResult) -> str:
    if isinstance(outcome, SurrogateResult):
        return "\n".join(measured_parts(outcome.reports[-1]))
    return mean_share(report.evaluation_solve_rate for report in last_reports(outcome.reports))
