"""A surrogate run on a terminal: training, and the evaluation of a run folder."""

import dataclasses
import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import jax
from rich.console import Console
from rich.table import Table

from jaxarc.agents.saved_agent import WhichCheckpoint, chosen_checkpoint
from jaxarc.cli.console import LiveLine, escape, number_table, percent, range_share
from jaxarc.cli.training_run import left_out, train_in_folder
from jaxarc.config import ConfigValidationError, SurrogateMeshConfig
from jaxarc.config.training import Precision
from jaxarc.nn.precision import DTYPES, cast_floats, products_in
from jaxarc.parallel import use_host_cores
from jaxarc.runs import RunFolder
from jaxarc.runs.writers import check_extras
from jaxarc.surrogate import (
    SurrogateExperiment,
    SurrogateReport,
    SurrogateResult,
    make_task,
    train_surrogate,
)
from jaxarc.surrogate.agreement import Agreement, CalibrationBin, GraphAccuracy
from jaxarc.surrogate.held_out import (
    PlayedPairs,
    SurrogateEvaluation,
    evaluate_model,
    evaluate_surrogate,
    load_model,
    write_evaluation,
)
from jaxarc.surrogate.lookahead import LookaheadTask
from jaxarc.surrogate.mesh import MeshPlacement
from jaxarc.surrogate.task import SurrogateTask
from jaxarc.tasks import TaskFormatError

_EXPERTS: Final = {
    "parent_sets": "the exact posterior over parent sets of linear structural models",
    "graphs": "the graphs of drawn structural models",
    "lookahead": "the expert that looks one edit ahead",
}
_LEARNED: Final = {
    "parent_sets": "what the expert thinks of candidates",
    "graphs": "how likely each edge is",
    "lookahead": "what the expert thinks of candidates",
}


def learn_surrogate(
    experiment: SurrogateExperiment, console: Console, resume: RunFolder | None = None
) -> SurrogateResult:
    """Train in a new run folder, or go on in an old one, and print its course.

    Raises:
        ConfigValidationError: no task is left, or a library that the logging needs is missing.
        TaskFormatError, UnknownDatasetError, TrainingDivergedError, LogWriterError, OSError: see the functions called.
    """
    start = time.perf_counter()
    check_extras(experiment.logging)
    _make_devices(experiment.surrogate_mesh)
    if not experiment.surrogate.compilation_cache:
        jax.config.update("jax_enable_compilation_cache", False)
    task = load_surrogate_task(experiment)
    announce = lambda folder: console.print(_announcement(experiment, task, folder), highlight=False, soft_wrap=True)
    progress = lambda: SurrogateProgress(console, experiment.num_updates)
    train = functools.partial(train_surrogate, experiment, task)
    folder, outcome = train_in_folder(experiment, resume, announce, progress, train)
    evaluation = evaluate_model(task, outcome.state.model, outcome.reports[-1].update)
    write_evaluation(folder, evaluation)
    _draw(outcome.reports, folder, _title(experiment))
    show_evaluation(evaluation, folder, console)
    console.print(_closing(outcome, folder, time.perf_counter() - start), highlight=False, soft_wrap=True)
    return outcome


def _make_devices(mesh: SurrogateMeshConfig) -> None:
    """Make as many devices as the mesh has: on a CPU one for each core that is asked for."""
    if mesh.num_devices == 1:
        return
    try:
        use_host_cores(mesh.num_devices)
        MeshPlacement.from_config(mesh)
    except (RuntimeError, ValueError) as error:
        raise ConfigValidationError(f"jaxarc train: surrogate_mesh: {error}") from error


def load_surrogate_task(experiment: SurrogateExperiment) -> SurrogateTask:
    """Make what a surrogate learns from and is measured on.

    Raises:
        ConfigValidationError: no task is left, or the rules do not fit the expert.
        TaskFormatError, UnknownDatasetError: see :func:`make_task`.
    """
    try:
        return make_task(experiment)
    except TaskFormatError:
        raise
    except ValueError as error:  # no task is small enough, or the rules do not fit the expert
        raise ConfigValidationError(f"jaxarc train: {error}") from error


def _announcement(experiment: SurrogateExperiment, surrogate_task: SurrogateTask, folder: RunFolder) -> str:
    problem = experiment.surrogate.problem
    task = experiment.task
    lines = [f"Learning from {_EXPERTS[problem]}: {_LEARNED[problem]}."]
    if isinstance(surrogate_task, LookaheadTask):
        lines.append(
            f"Pairs of {escape(task.train_dataset)}, sides up to {task.max_side}; measured on those of "
            f"{escape(task.evaluation_dataset)}. [bold]The answer is visible.[/]"
        )
        lines[-1] += left_out(surrogate_task.num_left_out)
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
    # Matplotlib takes half a second to import; a mistyped command must not wait for it.
    from jaxarc.render.figures import Panel, draw_panels

    wanted = (
        ("nats", {"loss, learned from": "total_loss", "KL to the expert, held out": "kl"}, False),
        (
            "agreement, held out",
            {"first choice": "top1_agreement", "first five": "top5_agreement"},
            True,
        ),
        ("edges, held out", {"AUROC": "auroc", "right at 0.5": "edge_accuracy"}, True),
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


def show_evaluation(evaluation: SurrogateEvaluation, folder: RunFolder, console: Console) -> None:
    """Print what was measured, and draw the calibration into the run folder."""
    if evaluation.agreement is not None:
        console.print(_agreement(evaluation.agreement))
        console.print(_calibration(evaluation.agreement.calibration, "candidates", "by the expert"))
        error = evaluation.agreement.calibration_error
        _draw_calibration(evaluation.agreement.calibration, error, folder, "mean probability by the expert")
    if evaluation.graphs is not None:
        console.print(_graphs(evaluation.graphs))
        console.print(_calibration(evaluation.graphs.calibration, "ordered pairs", "share of edges"))
        error = evaluation.graphs.overall.calibration_error
        _draw_calibration(evaluation.graphs.calibration, error, folder, "share of edges")
    if evaluation.policies:
        console.print(_policies(evaluation.policies))


def _agreement(agreement: Agreement) -> Table:
    table = number_table("agreement with the expert", f"{agreement.num_examples:,} held-out examples")
    table.add_row("KL(expert || surrogate), nats", f"{agreement.kl:.4f}")
    table.add_row("first choice is one that the expert likes best", percent(agreement.top1_agreement))
    for name, (count, share) in agreement.top1_by_group.items():
        table.add_row(f"  where only {name} is best, {count:,} of them", percent(share))
    table.add_row("such a one is among the first five", percent(agreement.top5_agreement))
    if agreement.regret is not None:
        table.add_row("regret: worth lost by the first choice", percent(agreement.regret, 2))
    table.add_row("calibration error", percent(agreement.calibration_error, 2))
    return table


def _graphs(accuracy: GraphAccuracy) -> Table:
    table = number_table("held out", "models", "AUROC", "expected SHD", "right at 0.5", "calibration error")
    table.columns[0].no_wrap = True  # in 80 columns its words would be cut first
    for name, each in {"all": accuracy.overall, **accuracy.by_samples}.items():
        auroc = "-" if each.auroc is None else f"{each.auroc:.4f}"
        shares = percent(each.edge_accuracy), percent(each.calibration_error, 2)
        table.add_row(name, f"{each.num_models:,}", auroc, f"{each.expected_shd:.3f}", *shares)
    return table


def _calibration(bins: Sequence[CalibrationBin], what: str, expected: str) -> Table:
    table = number_table(what, "probability by the surrogate", expected, num_words=0)
    for each in bins:
        table.add_row(f"{each.size:,}", f"{each.predicted:.4f}", f"{each.expected:.4f}")
    return table


def _policies(policies: Mapping[str, PlayedPairs]) -> Table:
    table = number_table("held-out pairs, answer visible", "solved", "actions")
    for name, each in policies.items():
        table.add_row(name, percent(each.solved), "-" if each.mean_steps is None else f"{each.mean_steps:,.1f}")
    return table


def _draw_calibration(bins: Sequence[CalibrationBin], error: float, folder: RunFolder, expected: str) -> None:
    # Matplotlib takes half a second to import; a mistyped command must not wait for it.
    from jaxarc.render.figures import draw_calibration

    draw_calibration(bins, folder.calibration, f"Calibration error {percent(error, 2)}", expected)


def evaluate_run(
    folder: RunFolder,
    experiment: SurrogateExperiment,
    overrides: Sequence[str],
    checkpoint: WhichCheckpoint,
    precision: Precision = "float32",
) -> None:
    """Evaluate a trained surrogate on held-out examples and pairs, print tables and write ``evaluation.json``.

    Its weights are cast to ``precision``. The experiment is that of the run with the overrides, which are written down.

    Raises:
        CheckpointError: the folder holds no checkpoint of this run.
    """
    record = chosen_checkpoint(folder, checkpoint)
    task = load_surrogate_task(experiment)
    model = cast_floats(load_model(folder, task, checkpoint), DTYPES[precision])
    with products_in(precision):
        evaluation = evaluate_surrogate(experiment, task, model, record.update)
    evaluation = dataclasses.replace(evaluation, precision=precision, overrides=tuple(overrides))
    write_evaluation(folder, evaluation)
    show_evaluation(evaluation, folder, Console())


class SurrogateProgress:
    """Shows the reports of a surrogate on a live line; a writer of reports, open from its start."""

    def __init__(self, console: Console, num_steps: int):
        self._line = LiveLine(console, num_steps)
        self._measured = ""
        self.close = self._line.close

    def write(self, report: SurrogateReport) -> None:
        """Show the newest report."""
        if report.score is not None:
            self._measured = f"held out: {', '.join(measured_parts(report))}"
        parts = []
        if report.examples_per_second is not None:
            parts.append(f"{report.examples_per_second:,.0f} examples/s")
        if report.total_loss is not None:
            parts.append(f"loss {report.total_loss:.3f}")
        self._line.show("step", report.update, [*parts, self._measured])


def measured_parts(report: SurrogateReport) -> Iterator[str]:
    """Yield the measurements of a report, each as a few words."""
    if report.kl is not None:
        yield f"KL {report.kl:.3f}"
        yield f"top-1 {range_share([report.top1_agreement])}"
    if report.expected_shd is not None:
        yield f"expected SHD {report.expected_shd:.2f}"
    if report.auroc is not None:
        yield f"AUROC {report.auroc:.3f}"
