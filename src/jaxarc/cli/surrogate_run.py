"""One run of a surrogate on a terminal: what is about to happen, how it goes, how it went."""

import dataclasses
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final

from rich.console import Console
from rich.markup import escape

from jaxarc.cli.interrupt import StopWish
from jaxarc.cli.progress import SurrogateProgress
from jaxarc.cli.surrogate_tables import show_evaluation
from jaxarc.cli.training_run import warn
from jaxarc.config import ConfigValidationError, SurrogateMeshConfig
from jaxarc.parallel import use_host_cores
from jaxarc.profiling import enable_compilation_cache
from jaxarc.surrogate.mesh import MeshPlacement
from jaxarc.tasks import TaskFormatError
from jaxarc.training import RunFolder, create_run_folder
from jaxarc.training.log_writers import LogWriter, LogWriters, check_extras, open_log_writers
from jaxarc.training.run_folder import kept_if_used
from jaxarc.training.surrogates import (
    SurrogateExperiment,
    SurrogateReport,
    SurrogateResult,
    make_tasks,
    train_surrogate,
)
from jaxarc.training.surrogates.evaluate import evaluate_models, write_evaluation
from jaxarc.training.surrogates.task import SurrogateTask

_EXPERTS: Final = {
    "parent_sets": "the exact posterior over parent sets of linear structural models",
    "lookahead": "the expert that looks one edit ahead",
}
_MODELS: Final = {
    "candidates": "what the expert thinks of candidates",
    "transition": "what an action does",
    "both": "what the expert thinks of candidates and, in a model beside it, what an action does",
}


def learn_surrogate(
    experiment: SurrogateExperiment, console: Console, resume: RunFolder | None = None
) -> SurrogateResult:
    """Train in a new run folder, or go on in an old one, and tell of it.

    Raises:
        ConfigValidationError: no task is left, or a library that the logging needs is missing.
        TaskFormatError, UnknownDatasetError, TrainingDivergedError, LogWriterError, OSError: see the functions called.
    """
    start = time.perf_counter()
    check_extras(experiment.logging)
    _make_devices(experiment.surrogate_mesh)
    if experiment.surrogate.compilation_cache:
        enable_compilation_cache()
    tasks = load_surrogate_tasks(experiment)
    folder = resume or create_run_folder(experiment)
    with kept_if_used(folder) if resume is None else nullcontext():
        console.print(_announcement(experiment, folder), highlight=False, soft_wrap=True)
        writers: list[LogWriter] = [
            *open_log_writers(experiment, folder),
            SurrogateProgress(console, experiment.num_updates),
        ]
        with StopWish() as wish, LogWriters[SurrogateReport](writers, warn) as all_writers:
            outcome = train_surrogate(
                experiment, tasks, folder, all_writers.write, lambda: wish.is_set, resume=resume is not None
            )
    evaluation = evaluate_models(tasks, outcome.state.models, outcome.reports[-1].update)
    write_evaluation(folder, evaluation)
    _draw(outcome.reports, folder, _title(experiment))
    show_evaluation(evaluation, folder, console)
    console.print(_closing(outcome, folder, time.perf_counter() - start), highlight=False, soft_wrap=True)
    return outcome


def _make_devices(mesh: SurrogateMeshConfig) -> None:
    """See that there are so many devices: on a CPU one for each core that is asked for."""
    if mesh.num_devices == 1:
        return
    try:
        use_host_cores(mesh.num_devices)
        MeshPlacement.from_config(mesh)
    except (RuntimeError, ValueError) as error:
        raise ConfigValidationError(f"jaxarc train: surrogate_mesh: {error}") from error


def load_surrogate_tasks(experiment: SurrogateExperiment) -> dict[str, SurrogateTask]:
    """Make what a surrogate learns from and is measured on.

    Raises:
        ConfigValidationError: no task is left, or the rules do not fit the expert.
        TaskFormatError, UnknownDatasetError: see :func:`make_tasks`.
    """
    try:
        return make_tasks(experiment)
    except TaskFormatError:
        raise
    except ValueError as error:  # no task is small enough, or the rules do not fit the expert
        raise ConfigValidationError(f"jaxarc train: {error}") from error


def _announcement(experiment: SurrogateExperiment, folder: RunFolder) -> str:
    problem, model, task = experiment.surrogate.problem, experiment.surrogate.model, experiment.task
    lines = [f"Learning from {_EXPERTS[problem]}: {_MODELS[model]}."]
    if problem == "lookahead":
        lines.append(
            f"Pairs of {task.train_dataset}, sides up to {task.max_side}; measured on those of "
            f"{task.evaluation_dataset}. [bold]The answer is visible.[/]"
        )
    return "\n".join([*lines, f"Run folder: {escape(str(folder.path))}"])


def _closing(outcome: SurrogateResult, folder: RunFolder, seconds: float) -> str:
    last = outcome.reports[-1]
    files = [path.name for path in sorted(folder.path.iterdir()) if not path.name.startswith(".")]
    ending = "Stopped early, and kept what was learned, after" if outcome.interrupted else "Done in"
    return "\n".join(
        [
            f"{ending} {seconds:.0f} s: {outcome.compile_seconds:.0f} s compiling, {last.seconds:.0f} s learning from "
            f"{last.examples:,} examples in {last.update:,} steps.",
            f"{escape(str(folder.path))}: {', '.join(files)}",
        ]
    )


def _title(experiment: SurrogateExperiment) -> str:
    return f"A surrogate of {_EXPERTS[experiment.surrogate.problem]}, seed {experiment.surrogate.seed}"


def _draw(reports: Sequence[SurrogateReport], folder: RunFolder, title: str) -> None:
    # Drawing takes half a second to import: whoever asks for help, or mistypes, does not wait for it.
    from jaxarc.render.figures import Panel, draw_panels

    wanted = (
        ("nats", {"loss, learned from": "total_loss", "KL to the expert, held out": "kl"}, False),
        (
            "agreement, held out",
            {"first choice": "top1_agreement", "first five": "top5_agreement"},
            True,
        ),
        (
            "next grids, every cell right",
            {"learned from": "transition_exact_grids", "held out": "exact_grid_accuracy"},
            True,
        ),
    )
    rows = [dataclasses.asdict(report) for report in reports]
    panels = []
    for label, fields, is_share in wanted:
        lines = {
            name: [(row["update"], row[field]) for row in rows if row[field] is not None]
            for name, field in fields.items()
        }
        if any(lines.values()):
            panels.append(Panel(label, {name: points for name, points in lines.items() if points}, is_share))
    draw_panels(panels, folder.learning_curve, title)
