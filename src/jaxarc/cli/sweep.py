"""``jaxarc train --multirun``: each combination of values, in run folders below one new folder."""

import datetime
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Override
from rich.console import Console

from jaxarc.agents import Experiment
from jaxarc.cli.agent_run import last_reports
from jaxarc.cli.console import escape, mean_share, number_table
from jaxarc.cli.settings import AnyExperiment, one_kind_of_error, parse_override
from jaxarc.cli.surrogate_run import measured_parts
from jaxarc.config import ConfigValidationError
from jaxarc.runs import TrainingDivergedError
from jaxarc.runs.folder import make_new_folder
from jaxarc.surrogate.surrogate_experiment import SurrogateExperiment
from jaxarc.surrogate.surrogate_training import SurrogateResult


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


def run_sweep(
    experiments: Mapping[tuple[str, ...], AnyExperiment],
    learn: Callable[[AnyExperiment, Console], Any],
    console: Console,
) -> bool:
    """Run experiments, known by their overrides, in run folders below one new folder.

    A run that diverges is noted, and the next one starts; Ctrl-C ends the sweep with the run that it ended.

    Returns:
        Whether no run diverged.
    """
    folder = _sweep_folder(list(experiments.values()))
    of_surrogates = all(isinstance(experiment, SurrogateExperiment) for experiment in experiments.values())
    score, samples = ("held out", "examples") if of_surrogates else ("unseen solved", "environment\nsteps")
    table = number_table("run", "overrides", score, samples, "learning\nseconds", "ended", num_words=2)
    table.columns[-1].justify = "left"
    table.columns[1].overflow = "fold"
    all_done = True
    for number, (chosen, experiment) in enumerate(experiments.items(), start=1):
        # Of a=1 b=3 and a=2 b=3 the runs differ in the override of a.
        differing = [escape(one) for one in chosen if not all(one in other for other in experiments)]
        console.rule(f"{number} of {len(experiments)}: {' '.join(differing)}")
        name = f"{experiment.logging.run_name}-{number:0{len(str(len(experiments)))}}"
        logging = experiment.logging.replace(run_root=str(folder), run_name=name)
        try:
            outcome = learn(experiment.replace(logging=logging), console)
        except TrainingDivergedError as error:
            console.print(f"[bold red]Diverged:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
            table.add_row(str(number), "\n".join(differing), "-", "-", "-", "diverged")
            all_done = False
            continue
        last = outcome.reports[-1]
        numbers = _score(outcome), f"{last.samples:,}", f"{last.seconds:.1f}"
        table.add_row(str(number), "\n".join(differing), *numbers, "stopped" if outcome.interrupted else "done")
        if outcome.interrupted:
            break
    console.rule("all runs")
    console.print(table)
    console.print(f"Sweep folder: {escape(str(folder))}", highlight=False, soft_wrap=True)
    return all_done


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


def _score(outcome: Any) -> str:
    if isinstance(outcome, SurrogateResult):
        return "\n".join(measured_parts(outcome.reports[-1]))
    return mean_share(report.evaluation_solve_rate for report in last_reports(outcome.reports))
