"""One run of a surrogate: its experiment with all choices, its tasks, and its reports."""

import math
from dataclasses import dataclass, field

from jaxarc.config import (
    CheckedConfig,
    CheckpointConfig,
    GraphsConfig,
    JaxArcConfig,
    LoggingConfig,
    LookaheadConfig,
    ParentSetsConfig,
    SearchExpertConfig,
    StructuralModelConfig,
    SurrogateConfig,
    SurrogateMeshConfig,
    SurrogateNetworkConfig,
    SurrogateTrainingConfig,
    TaskConfig,
)
from jaxarc.config.surrogate import MAX_LISTED_VARIABLES
from jaxarc.experts import missing_for_lookahead
from jaxarc.surrogate.lookahead_task import LookaheadTask
from jaxarc.surrogate.search_task import SearchExpertTask
from jaxarc.surrogate.surrogate_task import StructuralModelsTask, SurrogateTask


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
    search_expert: SearchExpertConfig = field(default_factory=SearchExpertConfig)
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
        problems = []
        problems += self._check_structural_models()
        mesh = self.surrogate_mesh
        if problem in ("lookahead", "search") and max(mesh.model_devices, mesh.stages) > 1:
            problems.append(
                f"surrogate_mesh.model_devices and stages must be 1 for surrogate={problem}, whose scorer has no "
                f"layers to split, got {mesh.model_devices} and {mesh.stages}; use data_devices"
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
        problems = []
        name, size = self._batch_size()
        if size % divisor:
            problems.append(f"a batch must be a multiple of {named}={divisor} examples, got {name}={size}")
        if mesh.stages > 1 and network.num_layers % (mesh.stages * (network.remat_every or 1)):
            problems.append(
                "surrogate_network.num_layers must be a multiple of surrogate_mesh.stages times remat_every (or 1), "
                f"got {network.num_layers}, {mesh.stages} and {network.remat_every}"
            )
        return problems

    def _batch_size(self) -> tuple[str, int]:
        """Return the examples in a batch, behind the name of what says so."""
        match self.surrogate.problem:
            case "lookahead":
                return "lookahead.num_examples", self.lookahead.num_examples
            case "search":
                return "search_expert.num_examples", self.search_expert.num_examples
            case "graphs":
                return "graphs.models_per_batch", self.graphs.models_per_batch
            case _:
                count = self.parent_sets.models_per_batch * self.structural_models.num_variables
                return "parent_sets.models_per_batch * structural_models.num_variables", count


@dataclass(frozen=True)
class SurrogateReport:
    """Metrics of a surrogate after some steps; None where it was not evaluated."""

    update: int  # steps so far
    examples: int  # learned from so far
    seconds: float  # of learning, without compilation, measuring and saving
    seed: int = 0
    examples_per_second: float | None = None
    total_loss: float | None = None  # mean over the steps since the last report, in nats
    batch_top1_agreement: float | None = None  # on training batches, weighted as the loss is
    gradient_norm: float | None = None  # before it is clipped
    kl: float | None = None  # on held-out examples: KL(expert || surrogate), in nats
    top1_agreement: float | None = None  # on them: share whose first choice is one that the expert likes best
    top5_agreement: float | None = None
    top10_mass: float | None = None  # on them: the expert's probability of the surrogate's first ten candidates
    regret: float | None = None  # on them: score of the expert's best minus score of the first choice
    calibration_error: float | None = None
    auroc: float | None = None  # on held-out structural models: of their edges, mean over models
    expected_shd: float | None = None  # on them: structural Hamming distance
    edge_accuracy: float | None = None  # on them: share of ordered pairs right at the threshold 0.5

    @property
    def samples(self) -> int:
        """Examples so far, by the name that reports of all kinds share."""
        return self.examples

    @property
    def score(self) -> float | None:
        """Return -KL or AUROC; the higher the better."""
        return self.auroc if self.kl is None else -self.kl


def make_task(experiment: SurrogateExperiment) -> SurrogateTask:
    """Make the task that ``surrogate.problem`` names, with its held-out examples.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        ValueError: no task is small enough.
    """
    network = experiment.surrogate_network
    match experiment.surrogate.problem:
        case "lookahead":
            return LookaheadTask.load(experiment.task, experiment.environment, experiment.lookahead)
        case "search":
            return SearchExpertTask.load(experiment.search_expert)
        case "graphs":
            return StructuralModelsTask("edges", experiment.graphs, experiment.structural_models, network)
        case _:
            return StructuralModelsTask("parent_sets", experiment.parent_sets, experiment.structural_models, network)
