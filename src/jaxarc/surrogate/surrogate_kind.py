"""The kind of runs that train a surrogate; see :class:`jaxarc.runs.kind.Kind`."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import jax

from jaxarc.config.agent_training import Precision
from jaxarc.config.build import refused
from jaxarc.nn.layers import DTYPES, cast_floats, products_in
from jaxarc.parallel import use_host_cores
from jaxarc.runs import RunFolder, TrainResult
from jaxarc.runs.kind import Bar, SavedRun
from jaxarc.runs.presentation import CalibrationPlot, Part, Plot, Presentation, Table, percent, range_share
from jaxarc.surrogate.agreement import Agreement, CalibrationBin, GraphAccuracy
from jaxarc.surrogate.held_out import (
    PlayedPairs,
    SurrogateEvaluation,
    evaluate_model,
    evaluate_surrogate,
    load_model,
    write_evaluation,
)
from jaxarc.surrogate.mesh_placement import MeshPlacement
from jaxarc.surrogate.surrogate_experiment import SurrogateExperiment, make_task
from jaxarc.surrogate.surrogate_training import SurrogateTraining
from jaxarc.tasks.raw_task import TaskFormatError

_PLOTS: Final = (
    Plot("nats", {"loss, learned from": "total_loss", "KL to the expert, held out": "kl"}),
    Plot("agreement, held out", {"first choice": "top1_agreement", "first five": "top5_agreement"}, True),
    Plot("edges, held out", {"AUROC": "auroc", "right at 0.5": "edge_accuracy"}, True),
    Plot("answers, unseen rules", {"right in every cell": "solved"}, True),
)
_MEASURED: Final = (  # of a surrogate
    Part("KL {:.3f}", "kl"),
    Part("top-1 {}", "top1_agreement", range_share),
    Part("expected SHD {:.2f}", "expected_shd"),
    Part("AUROC {:.3f}", "auroc"),
    Part("solved {}", "solved", range_share),
)


@contextmanager
def session(experiment: SurrogateExperiment) -> Iterator[None]:
    """Make as many devices as the mesh has: on a CPU one for each core that is asked for."""
    mesh = experiment.surrogate_mesh
    if mesh.num_devices != 1:
        with refused("jaxarc train: surrogate_mesh: ", (RuntimeError, ValueError)):
            use_host_cores(mesh.num_devices)
            MeshPlacement.from_config(mesh)
    if not experiment.surrogate.compilation_cache:
        jax.config.update("jax_enable_compilation_cache", False)
    yield


def load(experiment: SurrogateExperiment) -> SurrogateTraining:
    """Make what a surrogate learns from and is measured on."""
    with refused("jaxarc train: ", besides=(TaskFormatError,)):
        return SurrogateTraining(experiment, make_task(experiment))


def prepare(training: SurrogateTraining, bar: Bar) -> None:
    """There is nothing that the loop would wait for."""


def presentation(training: SurrogateTraining, folder: RunFolder) -> Presentation:
    """Say what is learned from and measured, and how that goes."""
    experiment = training.experiment
    expert, learned, *_ = experiment.problem
    return Presentation(
        announcement=[f"Learning from {expert}: {learned}.", *training.task.about(experiment.task)],
        unit="step",
        num_updates=experiment.num_updates,
        live=(Part("{:,.0f} examples/s", "examples_per_second"), Part("loss {:.3f}", "total_loss")),
        measured=_MEASURED,
        before_measured="held out: ",
        title=f"A surrogate of {expert}, seed {experiment.surrogate.seed}",
        plots=_PLOTS,
        x="update",
        x_label="steps",
        learned="learning from {:,} examples",
        advice=(),
        score=_MEASURED,
    )


def results(
    training: SurrogateTraining, result: TrainResult, folder: RunFolder
) -> Iterator[str | Table | CalibrationPlot]:
    """Evaluate the surrogate, write down and yield what was measured."""
    model = training.placement.gather(result.state.model)
    evaluation = evaluate_model(training.task, model, result.reports[-1].update)
    write_evaluation(folder, evaluation)
    yield from _in_words(evaluation)


@dataclass(frozen=True)
class SavedSurrogate:
    """A surrogate in a checkpoint of its run, which may be measured on other data than the run's."""

    run: SavedRun

    def evaluate(
        self, training: SurrogateTraining, precision: Precision, overrides: Sequence[str]
    ) -> Iterator[str | Table | CalibrationPlot]:
        """Measure it on the held-out examples and pairs of a training, write down and return what was measured.

        Its weights are cast to ``precision``. The overrides, which made the training's experiment, are written down.
        """
        fresh = training.task.make_model(jax.random.key(0))
        model = cast_floats(load_model(self.run.checkpoint, fresh), DTYPES[precision])
        with products_in(precision):
            evaluation = evaluate_surrogate(training.task, model, self.run.checkpoint.record.update)
        evaluation = dataclasses.replace(evaluation, precision=precision, overrides=tuple(overrides))
        write_evaluation(RunFolder(self.run.path), evaluation)
        return _in_words(evaluation)


saved = SavedSurrogate


def _in_words(evaluation: SurrogateEvaluation) -> Iterator[Table | CalibrationPlot]:
    """Yield tables and the calibration of what was measured."""
    if (agreement := evaluation.agreement) is not None:
        yield _agreement(agreement)
        yield from _calibration(agreement.calibration, agreement.calibration_error, "candidates", "by the expert")
    if (graphs := evaluation.graphs) is not None:
        yield _graphs(graphs)
        error = graphs.overall.calibration_error
        yield from _calibration(graphs.calibration, error, "ordered pairs", "share of edges")
    if evaluation.rules is not None:
        rows = [(name, f"{count:,}", percent(share)) for name, (share, count) in evaluation.rules.by_set.items()]
        yield Table(("rules that are not learned from", "tasks", "solved, one attempt"), rows)
    if evaluation.policies:
        yield _policies(evaluation.policies)


def _agreement(agreement: Agreement) -> Table:
    rows = [
        ("KL(expert || surrogate), nats", f"{agreement.kl:.4f}"),
        ("first choice is one that the expert likes best", percent(agreement.top1_agreement)),
    ]
    for name, (count, share) in agreement.top1_by_group.items():
        rows.append((f"  where only {name} is best, {count:,} of them", percent(share)))
    rows.append(("such a one is among the first five", percent(agreement.top5_agreement)))
    rows.append(("the expert's probability of the first ten", percent(agreement.top10_mass)))
    if agreement.regret is not None:
        rows.append(("regret: worth lost by the first choice", percent(agreement.regret, 2)))
    rows.append(("calibration error", percent(agreement.calibration_error, 2)))
    return Table(("agreement with the expert", f"{agreement.num_examples:,} held-out examples"), rows)


def _graphs(accuracy: GraphAccuracy) -> Table:
    rows = []
    for name, each in {"all": accuracy.overall, **accuracy.by_samples}.items():
        auroc = "-" if each.auroc is None else f"{each.auroc:.4f}"
        shares = percent(each.edge_accuracy), percent(each.calibration_error, 2)
        rows.append((name, f"{each.num_models:,}", auroc, f"{each.expected_shd:.3f}", *shares))
    headers = ("held out", "models", "AUROC", "expected SHD", "right at 0.5", "calibration error")
    return Table(headers, rows, keeps_names=True)  # in 80 columns their words would be cut first


def _calibration(
    bins: Sequence[CalibrationBin], error: float, what: str, expected: str
) -> Iterator[Table | CalibrationPlot]:
    rows = [(f"{each.size:,}", f"{each.predicted:.4f}", f"{each.expected:.4f}") for each in bins]
    yield Table((what, "probability by the surrogate", expected), rows, num_words=0)
    label = f"mean probability {expected}" if expected == "by the expert" else expected
    yield CalibrationPlot(bins, f"Calibration error {percent(error, 2)}", label)


def _policies(policies: Mapping[str, PlayedPairs]) -> Table:
    rows = [
        (name, percent(each.solved), "-" if each.mean_steps is None else f"{each.mean_steps:,.1f}")
        for name, each in policies.items()
    ]
    return Table(("held-out pairs, answer visible", "solved", "actions"), rows)
