"""``jaxarc judge``: how good a trained surrogate is, and whether it earns its place."""

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from jaxarc.cli.settings import read_any_experiment
from jaxarc.cli.surrogate_run import load_surrogate_tasks
from jaxarc.cli.surrogate_tables import show_evaluation
from jaxarc.training import open_run_folder
from jaxarc.training.metrics import read_reports
from jaxarc.training.saved_agent import WhichCheckpoint, chosen_checkpoint
from jaxarc.training.surrogates import SurrogateExperiment, SurrogateReport
from jaxarc.training.surrogates.evaluate import evaluate_surrogate, load_models, write_evaluation

_WHICH: Final = "The newest checkpoint, or the one that agreed best with the expert on the held-out examples."


def judge(
    run: Annotated[Path, typer.Argument(help="The run folder of jaxarc train surrogate=...")],
    checkpoint: Annotated[WhichCheckpoint, typer.Option(help=_WHICH)] = "last",
    against: Annotated[
        list[Path] | None,
        typer.Option(help="A run folder of an agent that plays the same held-out pairs; several times for several."),
    ] = None,
) -> None:
    """Measure a trained surrogate on held-out examples and pairs.

    Of what it thinks of candidates: agreement with the expert, regret, calibration. Of what it thinks that actions do:
    single steps, and how far it drifts on its own predictions. A surrogate of the lookahead expert then plays the
    held-out pairs against that expert, and against agents, but for the pairs that one of them learned from.

    The run folder gets evaluation.json and, of candidates, calibration.png.
    """
    folder = open_run_folder(run)
    experiment = read_any_experiment([], folder.config)
    if not isinstance(experiment, SurrogateExperiment):
        raise typer.BadParameter(
            f"{run} is the run of an agent, not of a surrogate; score agents with jaxarc evaluate", param_hint="RUN"
        )
    problem, model = experiment.surrogate.problem, experiment.surrogate.model
    if against and (problem != "lookahead" or model == "transition"):
        raise typer.BadParameter(
            "only a surrogate that learned what the lookahead expert thinks of candidates plays pairs, this one is of "
            f"surrogate.problem={problem}, surrogate.model={model}; leave it out",
            param_hint="--against",
        )
    agents = [open_run_folder(path) for path in against or []]
    record = chosen_checkpoint(folder, checkpoint)
    tasks = load_surrogate_tasks(experiment)
    models = load_models(folder, tasks, checkpoint)
    learned = read_reports(folder.metrics, SurrogateReport)[-1].seconds
    evaluation = evaluate_surrogate(experiment, tasks, models, record.update, agents, learned)
    write_evaluation(folder, evaluation)
    show_evaluation(evaluation, folder, Console())
