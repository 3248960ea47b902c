"""One run of a surrogate: its experiment with all choices, its tasks, and its reports."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from jaxarc.config import (
    CheckedConfig,
    CheckpointConfig,
    GraphsConfig,
    JaxArcConfig,
    LoggingConfig,
    LookaheadConfig,
    ParentSetsConfig,
    RulesConfig,
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
from jaxarc.surrogate.rules_task import RulesTask
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
    rules: RulesConfig = field(default_factory=RulesConfig)
    surrogate_mesh: SurrogateMeshConfig = field(default_factory=SurrogateMeshConfig)
    task: TaskConfig = field(default_factory=TaskConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)

    @property
    def kind(self) -> str:
        """Return the name in ``jaxarc.runs.kind.KINDS``."""
        return "surrogate"

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the one seed of the run."""
        return (self.surrogate.seed,)

    @property
    def num_updates(self) -> int:
        """Return the number of train steps of the whole run."""
        return self.surrogate_training.num_steps

    @property
    def problem(self) -> "_Problem":
        """What ``surrogate.problem`` names."""
        return _PROBLEMS[self.surrogate.problem]

    def validate(self) -> list[str]:
        return self.problem.check(self) + self._check_splits()

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
        name = self.problem.batch
        size = math.prod(operator.attrgetter(field)(self) for field in name.split(" * "))
        if size % divisor:
            problems.append(f"a batch must be a multiple of {named}={divisor} examples, got {name}={size}")
        if mesh.stages > 1 and network.num_layers % (mesh.stages * (network.remat_every or 1)):
            problems.append(
                "surrogate_network.num_layers must be a multiple of surrogate_mesh.stages times remat_every (or 1), "
                f"got {network.num_layers}, {mesh.stages} and {network.remat_every}"
            )
        return problems


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
    solved: float | None = None  # of rules that are not learned from: share of right answers, mean over the sets

    @property
    def samples(self) -> int:
        """Examples so far, by the name that reports of all kinds share."""
        return self.examples

    @property
    def score(self) -> float | None:
        """Return -KL, AUROC, or the share of right answers; the higher the better."""
        return (
            next((one for one in (self.auroc, self.solved) if one is not None), None) if self.kl is None else -self.kl
        )


def make_task(experiment: SurrogateExperiment) -> SurrogateTask:
    """Make the task that ``surrogate.problem`` names, with its held-out examples.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        ValueError: no task is small enough.
    """
    return experiment.problem.load(experiment)


class _Problem(NamedTuple):
    """What ``surrogate.problem`` names."""

    expert: str
    learned: str
    load: Callable[[SurrogateExperiment], SurrogateTask]
    check: Callable[[SurrogateExperiment], list[str]]  # what it cannot take
    batch: str  # the fields whose product is the number of examples in a batch


def _check_parent_sets(experiment: SurrogateExperiment) -> list[str]:
    models = experiment.structural_models
    problems = []
    if models.num_variables > MAX_LISTED_VARIABLES:
        problems.append(
            f"structural_models.num_variables must be at most {MAX_LISTED_VARIABLES} for surrogate=parent_sets, "
            f"which lists all graphs, got {models.num_variables}; use surrogate=graphs"
        )
    if models.mechanism != "linear":
        problems.append(
            "structural_models.mechanism must be 'linear' for surrogate=parent_sets, whose posterior is exact, "
            f"got {models.mechanism!r}; use surrogate=graphs"
        )
    return problems


def _check_graphs(experiment: SurrogateExperiment) -> list[str]:
    too_few = experiment.structural_models.num_samples == 1
    return ["structural_models.num_samples must be at least 2 for surrogate=graphs, got 1"] if too_few else []


def _check_no_layers(experiment: SurrogateExperiment) -> list[str]:
    mesh = experiment.surrogate_mesh
    if max(mesh.model_devices, mesh.stages) == 1:
        return []
    return [
        f"surrogate_mesh.model_devices and stages must be 1 for surrogate={experiment.surrogate.problem}, whose scorer "
        f"has no layers to split, got {mesh.model_devices} and {mesh.stages}; use data_devices"
    ]


def _check_lookahead(experiment: SurrogateExperiment) -> list[str]:
    rules = experiment.environment
    problems = _check_no_layers(experiment) + missing_for_lookahead(rules)
    if rules.action.selection_format != "bbox":
        problems.append(
            f"surrogate.problem=lookahead needs action.selection_format='bbox', got {rules.action.selection_format!r}"
        )
    return problems + experiment.task.too_large_for(rules.grid_shape)


_PROBLEMS: Final = {
    "parent_sets": _Problem(
        "the exact posterior over parent sets of linear structural models",
        "what the expert thinks of candidates",
        lambda of: StructuralModelsTask("parent_sets", of.parent_sets, of.structural_models, of.surrogate_network),
        _check_parent_sets,
        "parent_sets.models_per_batch * structural_models.num_variables",
    ),
    "graphs": _Problem(
        "the graphs of drawn structural models",
        "how likely each edge is",
        lambda of: StructuralModelsTask("edges", of.graphs, of.structural_models, of.surrogate_network),
        _check_graphs,
        "graphs.models_per_batch",
    ),
    "lookahead": _Problem(
        "the expert that looks one edit ahead",
        "what the expert thinks of candidates",
        lambda of: LookaheadTask.load(of.task, of.environment, of.lookahead),
        _check_lookahead,
        "lookahead.num_examples",
    ),
    "rules": _Problem(
        "tasks of drawn rules",
        "their answers",
        lambda of: RulesTask.load(of.rules),
        _check_no_layers,
        "rules.puzzles_per_batch",
    ),
}
