"""A run of a surrogate on a terminal: what it says before, while and after it learns, and where it is evaluated."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import jax
from rich.console import Console
from rich.table import Table

from jaxarc.agents.saved_agent import WhichCheckpoint, chosen_checkpoint
from jaxarc.cli.agent_run import left_out
from jaxarc.cli.console import escape, number_table, percent, progress_bar, range_share
from jaxarc.cli.settings import refused
from jaxarc.config.agent_training import Precision
from jaxarc.nn.precision import DTYPES, cast_floats, products_in
from jaxarc.parallel import use_host_cores
from jaxarc.runs import RunFolder
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
from jaxarc.surrogate.lookahead_task import LookaheadTask
from jaxarc.surrogate.mesh_placement import MeshPlacement
from jaxarc.surrogate.search_task import SearchExpertTask
from jaxarc.surrogate.surrogate_task import SurrogateTask

_EXPERTS: Final = {
    "parent_sets": "the exact posterior over parent sets of linear structural models",
    "graphs": "the graphs of drawn structural models",
    "lookahead": "the expert that looks one edit ahead",
    "search": "the programs that the search finds",
}
_LEARNED: Final = {
    "parent_sets": "what the expert thinks of candidates",
    "graphs": "how likely each edge is",
    "lookahead": "what the expert thinks of candidates",
    "search": "which words they have",
}
_PANELS: Final = (  # of the learning curves: label, name of a line and its field, whether it is a share
    ("nats", {"loss, learned from": "total_loss", "KL to the expert, held out": "kl"}, False),
    ("agreement, held out", {"first choice": "top1_agreement", "first five": "top5_agreement"}, True),
    ("edges, held out", {"AUROC": "auroc", "right at 0.5": "edge_accuracy"}, True),
)


@contextmanager
def surrogate_session(experiment: SurrogateExperiment) -> Iterator[None]:
    """Make as many devices as the mesh has: on a CPU one for each core that is asked for."""
    mesh = experiment.surrogate_mesh
    if mesh.num_devices != 1:
        with refused("surrogate_mesh: ", (RuntimeError, ValueError)):
            use_host_cores(mesh.num_devices)
            MeshPlacement.from_config(mesh)
    if not experiment.surrogate.compilation_cache:
        jax.config.update("jax_enable_compilation_cache", False)
    yield


def load_surrogate_task(experiment: SurrogateExperiment) -> SurrogateTask:
    """Make what a surrogate learns from and is measured on."""
    with refused():  # no task is small enough, or the rules do not fit the expert
        if experiment.surrogate.problem == "search":  # which is recorded once, and that takes a while
            with progress_bar("searches recorded") as show:
                return SearchExpertTask.load(experiment.search_expert, show)
        return make_task(experiment)


class SurrogateRun:
    """Trains a surrogate, and puts the course of the training into words, tables and a picture."""

    unit: ClassVar[str] = "step"

    def __init__(self, experiment: SurrogateExperiment):
        self.experiment = experiment
        self.task = load_surrogate_task(experiment)

    def announcement(self) -> list[str]:
        """Say what is learned from, and what is measured."""
        problem, task = self.experiment.surrogate.problem, self.experiment.task
        lines = [f"Learning from {_EXPERTS[problem]}: {_LEARNED[problem]}."]
        if isinstance(self.task, LookaheadTask):
            lines.append(
                f"Pairs of {escape(task.train_dataset)}, sides up to {task.max_side}; measured on those of "
                f"{escape(task.evaluation_dataset)}. [bold]The answer is visible.[/]{left_out(self.task.num_left_out)}"
            )
        return lines

    def prepare(self, console: Console) -> None:
        """Nothing is to be made before."""

    def train(self, *arguments: Any, **options: Any) -> SurrogateResult:
        """Train as :func:`jaxarc.surrogate.train_surrogate` does."""
        return train_surrogate(self.experiment, self.task, *arguments, **options)

    def live_parts(self, reports: Sequence[SurrogateReport]) -> list[str]:
        """Return what the live line says of the newest report."""
        (report,) = reports
        parts = []
        if report.examples_per_second is not None:
            parts.append(f"{report.examples_per_second:,.0f} examples/s")
        if report.total_loss is not None:
            parts.append(f"loss {report.total_loss:.3f}")
        return parts

    def measured(self, reports: Sequence[SurrogateReport]) -> str:
        """Return what was measured; nothing if nothing was."""
        return "" if reports[0].score is None else f"held out: {', '.join(measured_parts(reports[0]))}"

    def show(self, outcome: SurrogateResult, folder: RunFolder, console: Console) -> None:
        """Evaluate the surrogate, write down and print what was measured."""
        evaluation = evaluate_model(self.task, outcome.state.model, outcome.reports[-1].update)
        write_evaluation(folder, evaluation)
        show_evaluation(evaluation, folder, console)
        if isinstance(self.task, SearchExpertTask):
            weights = folder.path / "guidance.npz"
            self.task.guide(outcome.state.model).save(weights)
            console.print(f"For the search: jaxarc search TASK --guidance {escape(str(weights))}", soft_wrap=True)

    def draw(self, outcome: SurrogateResult, folder: RunFolder) -> None:
        """Draw the learning curves into the run folder."""
        # Matplotlib takes half a second to import; a mistyped command must not wait for it.
        from jaxarc.render.figures import Panel, draw_panels

        rows = [dataclasses.asdict(report) for report in outcome.reports]
        panels = []
        for label, fields, is_share in _PANELS:
            lines = {
                name: [(row["update"], row[field]) for row in rows if row[field] is not None]
                for name, field in fields.items()
            }
            if any(lines.values()):
                panels.append(Panel(label, {name: points for name, points in lines.items() if points}, is_share))
        surrogate = self.experiment.surrogate
        title = f"A surrogate of {_EXPERTS[surrogate.problem]}, seed {surrogate.seed}"
        draw_panels(panels, folder.learning_curve, title)

    def learned(self, last: SurrogateReport) -> str:
        """Say how much was learned from."""
        return f"learning from {last.examples:,} examples"

    def advice(self, folder: RunFolder) -> list[str]:
        """Name what to look at next."""
        return []


def show_evaluation(evaluation: SurrogateEvaluation, folder: RunFolder, console: Console) -> None:
    """Print what was measured, and draw the calibration into the run folder."""
    if (agreement := evaluation.agreement) is not None:
        console.print(_agreement(agreement), _calibration(agreement.calibration, "candidates", "by the expert"))
        _draw_calibration(agreement, folder, "mean probability by the expert")
    if (graphs := evaluation.graphs) is not None:
        console.print(_graphs(graphs), _calibration(graphs.calibration, "ordered pairs", "share of edges"))
        _draw_calibration(graphs, folder, "share of edges")
    if evaluation.policies:
        console.print(_policies(evaluation.policies))


def _agreement(agreement: Agreement) -> Table:
    table = number_table("agreement with the expert", f"{agreement.num_examples:,} held-out examples")
    table.add_row("KL(expert || surrogate), nats", f"{agreement.kl:.4f}")
    table.add_row("first choice is one that the expert likes best", percent(agreement.top1_agreement))
    for name, (count, share) in agreement.top1_by_group.items():
        table.add_row(f"  where only {name} is best, {count:,} of them", percent(share))
    table.add_row("such a one is among the first five", percent(agreement.top5_agreement))
    table.add_row("the expert's probability of the first ten", percent(agreement.top10_mass))
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


def _draw_calibration(measured: Agreement | GraphAccuracy, folder: RunFolder, expected: str) -> None:
    # Matplotlib takes half a second to import; a mistyped command must not wait for it.
    from jaxarc.render.figures import draw_calibration

    error = (measured if isinstance(measured, Agreement) else measured.overall).calibration_error
    draw_calibration(measured.calibration, folder.calibration, f"Calibration error {percent(error, 2)}", expected)


def evaluate_run(
    folder: RunFolder,
    experiment: SurrogateExperiment,
    overrides: Sequence[str],
    checkpoint: WhichCheckpoint,
    precision: Precision = "float32",
) -> None:
    """Evaluate a trained surrogate on held-out examples and pairs, print tables and write ``evaluation.json``.

    Its weights are cast to ``precision``. The experiment is that of the run with the overrides, which are written down.
    """
    record = chosen_checkpoint(folder, checkpoint)
    task = load_surrogate_task(experiment)
    model = cast_floats(load_model(folder, task, checkpoint), DTYPES[precision])
    with products_in(precision):
        evaluation = evaluate_surrogate(experiment, task, model, record.update)
    evaluation = dataclasses.replace(evaluation, precision=precision, overrides=tuple(overrides))
    write_evaluation(folder, evaluation)
    show_evaluation(evaluation, folder, Console())


def measured_parts(report: SurrogateReport) -> Iterator[str]:
    """Yield the measurements of a report, each as a few words."""
    if report.kl is not None:
        yield f"KL {report.kl:.3f}"
        yield f"top-1 {range_share([report.top1_agreement])}"
    if report.expected_shd is not None:
        yield f"expected SHD {report.expected_shd:.2f}"
    if report.auroc is not None:
        yield f"AUROC {report.auroc:.3f}"
