"""One run of a surrogate: its experiment with all choices, its tasks, and its reports."""

import math
from dataclasses import dataclass, field
from typing import Final

from jaxarc.config import (
    CheckedConfig,
    CheckpointConfig,
    EditStepsConfig,
    GraphsConfig,
    JaxArcConfig,
    LoggingConfig,
    LookaheadConfig,
    ParentSetsConfig,
    StructuralModelConfig,
    SurrogateConfig,
    SurrogateMeshConfig,
    SurrogateNetworkConfig,
    SurrogateTrainingConfig,
    TaskConfig,
)
from jaxarc.config.surrogate import MAX_LISTED_VARIABLES
from jaxarc.experts import missing_for_lookahead
from jaxarc.training.surrogates.dynamics import TransitionDataset
from jaxarc.training.surrogates.edits import EditTask
from jaxarc.training.surrogates.graphs import GraphsTask
from jaxarc.training.surrogates.lookahead import LookaheadTask
from jaxarc.training.surrogates.task import ParentSetsTask, SurrogateTask

CANDIDATES: Final = "candidates"  # names of tasks
TRANSITION: Final = "transition"
EDGES: Final = "edges"
_ENCODERS: Final = {  # by problem
    "parent_sets": "samples",
    "graphs": "samples",
    "lookahead": "colors",
}


def _environment_for_lookahead() -> JaxArcConfig:
    """Return the default rules, with the actions and observations that the lookahead expert needs."""
    return JaxArcConfig().with_fields(selection_format="bbox", reveal_target=True, include_input=True)


@dataclass(frozen=True)
class SurrogateExperiment(CheckedConfig):
    """Everything that a run depends on; equal experiments give equal results on equal machines."""

    environment: JaxArcConfig = field(default_factory=_environment_for_lookahead)
    surrogate: SurrogateConfig = field(default_factory=SurrogateConfig)
    surrogate_network: SurrogateNetworkConfig = field(default_factory=SurrogateNetworkConfig)
    surrogate_training: SurrogateTrainingConfig = field(default_factory=SurrogateTrainingConfig)
    structural_models: StructuralModelConfig = field(default_factory=StructuralModelConfig)
    parent_sets: ParentSetsConfig = field(default_factory=ParentSetsConfig)
    graphs: GraphsConfig = field(default_factory=GraphsConfig)
    lookahead: LookaheadConfig = field(default_factory=LookaheadConfig)
    edit_steps: EditStepsConfig = field(default_factory=EditStepsConfig)
    surrogate_mesh: SurrogateMeshConfig = field(default_factory=SurrogateMeshConfig)
    task: TaskConfig = field(default_factory=TaskConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the one seed of the run."""
        return (self.surrogate.seed,)

    @property
    def num_updates(self) -> int:
        """Return the number of train steps of the whole run."""
        return self.surrogate_training.num_steps

    def validate(self) -> list[str]:
        problem = self.surrogate.problem
        encoder = self.surrogate_network.encoder
        problems = []
        if encoder != _ENCODERS[problem]:
            problems.append(
                f"surrogate_network.encoder must be {_ENCODERS[problem]!r} for surrogate.problem={problem}, "
                f"got {encoder!r}"
            )
        # Structural models have no environment, so there are no steps to predict.
        if problem != "lookahead" and self.surrogate.model != "candidates":
            problems.append(
                f"surrogate.model must be 'candidates' for surrogate.problem={problem}, which takes no steps; "
                f"got {self.surrogate.model!r}"
            )
        problems += self._check_structural_models()
        mesh = self.surrogate_mesh
        has_layers = problem != "lookahead" or (
            self.lookahead.scorer == "attention" and self.surrogate.model == "candidates"
        )
        if not has_layers and max(mesh.model_devices, mesh.stages) > 1:
            problems.append(
                "surrogate_mesh.model_devices and stages need lookahead.scorer='attention' and "
                "surrogate.model='candidates': the other models have no matrices or layers that are worth splitting; "
                f"got {mesh.model_devices} and {mesh.stages}"
            )
        num_steps, num_states = self.edit_steps.num_examples, self.lookahead.num_examples
        if problem == "lookahead" and self.lookahead.scorer == "network" and num_steps % num_states:
            problems.append(
                "edit_steps.num_examples must be a multiple of lookahead.num_examples for lookahead.scorer='network', "
                f"got {num_steps} and {num_states}"
            )
        if problem == "lookahead":
            problems += missing_for_lookahead(self.environment)
            if self.environment.action.selection_format != "bbox":
                problems.append(
                    "surrogate.problem=lookahead needs action.selection_format='bbox', "
                    f"got {self.environment.action.selection_format!r}"
                )
            problems += self.task.too_large_for(self.environment.grid_shape)
        return problems + self._check_splits()

    def _check_structural_models(self) -> list[str]:
        """Say which structural models the problem cannot take."""
        problem = self.surrogate.problem
        models = self.structural_models
        problems = []
        if problem == "parent_sets" and models.num_variables > MAX_LISTED_VARIABLES:
            problems.append(
                f"structural_models.num_variables must be at most {MAX_LISTED_VARIABLES} for surrogate=parent_sets, "
                f"which lists all graphs, got {models.num_variables}; use surrogate=graphs"
            )
        if problem == "parent_sets" and models.mechanism != "linear":
            problems.append(
                "structural_models.mechanism must be 'linear' for surrogate=parent_sets, whose posterior is exact, "
                f"got {models.mechanism!r}; use surrogate=graphs"
            )
        if problem == "graphs" and models.num_samples == 1:
            problems.append("structural_models.num_samples must be at least 2 for surrogate=graphs, got 1")
        return problems

    def _check_splits(self) -> list[str]:
        """Say which batches, or layers, cannot be cut into equal parts."""
        mesh = self.surrogate_mesh
        network = self.surrogate_network
        steps = self.surrogate_training.accumulation_steps
        factors = {
            "surrogate_training.accumulation_steps": steps,
            "surrogate_mesh.data_devices": mesh.data_devices,
            "surrogate_mesh.parts": mesh.parts if mesh.stages > 1 else 1,
        }
        # 2 steps on 4 devices without stages: a batch must be a multiple of 8, and the message names the two factors.
        divisor = math.prod(factors.values())
        named = " * ".join(name for name, n in factors.items() if n > 1)
        problems = [
            f"a batch must be a multiple of {named}={divisor} examples, got {name}={size}"
            for name, size in self._batch_sizes().items()
            if size % divisor
        ]
        if mesh.stages > 1 and network.num_layers % (mesh.stages * (network.remat_every or 1)):
            problems.append(
                "surrogate_network.num_layers must be a multiple of surrogate_mesh.stages times remat_every (or 1), "
                f"got {network.num_layers}, {mesh.stages} and {network.remat_every}"
            )
        return problems

    def _batch_sizes(self) -> dict[str, int]:
        """Return the examples in a batch of each model that learns, by what says so."""
        sizes = {}
        if self.surrogate.model != "transition" and self.surrogate.problem == "lookahead":
            sizes["lookahead.num_examples"] = self.lookahead.num_examples
        if self.surrogate.model != "transition" and self.surrogate.problem == "parent_sets":
            count = self.parent_sets.models_per_batch * self.structural_models.num_variables
            sizes["parent_sets.models_per_batch * structural_models.num_variables"] = count
        if self.surrogate.problem == "graphs":
            sizes["graphs.models_per_batch"] = self.graphs.models_per_batch
        if self.surrogate.model != "candidates":
            sizes["edit_steps.num_examples"] = self.edit_steps.num_examples
        return sizes


@dataclass(frozen=True)
class SurrogateReport:
    """Metrics of a surrogate after some steps; None where a model is not trained or was not evaluated."""

    update: int  # steps so far
    examples: int  # learned from so far
    seconds: float  # of learning, without compilation, measuring and saving
    seed: int = 0
    examples_per_second: float | None = None
    total_loss: float | None = None  # of the candidates' model: mean over the steps since the last report, in nats
    batch_top1_agreement: float | None = None  # on training batches, weighted as the loss is
    gradient_norm: float | None = None  # before it is clipped
    transition_total_loss: float | None = None  # of the model of steps: nats a cell, and the reward's squared error
    transition_exact_grids: float | None = None  # share of next grids right in every cell, in training batches
    transition_gradient_norm: float | None = None
    kl: float | None = None  # on held-out examples: KL(expert || surrogate), in nats
    top1_agreement: float | None = None  # on them: share whose first choice is one that the expert likes best
    top5_agreement: float | None = None
    regret: float | None = None  # on them: score of the expert's best minus score of the first choice
    calibration_error: float | None = None
    exact_grid_accuracy: float | None = None  # on held-out steps: share of next grids right in every cell
    cell_accuracy: float | None = None  # on them: share of cells
    exact_clipboard_accuracy: float | None = None  # on them: share of next clipboards right in every cell
    kept_grid_accuracy: float | None = None  # on them: share that is right when the grid is kept
    reward_error: float | None = None  # on them: mean absolute error
    auroc: float | None = None  # on held-out structural models: of their edges, mean over models
    expected_shd: float | None = None  # on them: structural Hamming distance
    edge_accuracy: float | None = None  # on them: share of ordered pairs right at the threshold 0.5

    @property
    def samples(self) -> int:
        """Examples so far, by the name that reports of all kinds share."""
        return self.examples

    @property
    def score(self) -> float | None:
        """Return -KL, or without a model of candidates the accuracy or AUROC; the higher the better."""
        if self.kl is not None:
            return -self.kl
        return self.auroc if self.exact_grid_accuracy is None else self.exact_grid_accuracy


def make_tasks(experiment: SurrogateExperiment) -> dict[str, SurrogateTask]:
    """Make the tasks that ``surrogate.model`` names, with their held-out examples.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        ValueError: no task is small enough.
    """
    tasks = dict[str, SurrogateTask]()
    network = experiment.surrogate_network
    rules = experiment.environment
    if experiment.surrogate.problem == "graphs":
        tasks[EDGES] = GraphsTask(experiment.graphs, experiment.structural_models, network)
    elif experiment.surrogate.model in ("candidates", "both"):
        if experiment.surrogate.problem == "parent_sets":
            tasks[CANDIDATES] = ParentSetsTask(experiment.parent_sets, experiment.structural_models, network)
        else:
            lookahead = LookaheadTask.load(experiment.task, rules, experiment.lookahead, network)
            predicts = experiment.lookahead.scorer == "network"
            tasks[CANDIDATES] = EditTask(lookahead, experiment.edit_steps) if predicts else lookahead
    if experiment.surrogate.model in ("transition", "both"):
        tasks[TRANSITION] = TransitionDataset.load(experiment.task, rules, experiment.edit_steps, network)
    return tasks
