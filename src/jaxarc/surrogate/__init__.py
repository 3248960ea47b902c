"""Models that learn an expert's distribution over candidates, or the edges of causal graphs: data, steps and runs."""

from jaxarc.config import StructuralModelConfig, SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.nn.update import init_optimizer, make_surrogate_optimizer, surrogate_learning_rate
from jaxarc.surrogate.batch import GraphBatch, TrainingBatchJAX, from_static, to_static
from jaxarc.surrogate.candidate_features import CandidateSet, candidates_of
from jaxarc.surrogate.causal_graph import CausalGraph, acyclic_threshold, causal_graph
from jaxarc.surrogate.columns import to_arrays
from jaxarc.surrogate.edge_scorer import EdgeScorer, edge_probabilities
from jaxarc.surrogate.lookahead_task import LookaheadTask, SurrogateAgent
from jaxarc.surrogate.losses import edge_loss, kl_divergence_loss_jax
from jaxarc.surrogate.mesh_placement import MeshPlacement, place_weights
from jaxarc.surrogate.prefetcher import DataPrefetcher
from jaxarc.surrogate.rules_task import RulesTask, solver_of
from jaxarc.surrogate.scorers import CandidateScorer, CountingScorer, choose_box
from jaxarc.surrogate.structural_models import describe_samples, draw_graphs, draw_parent_sets
from jaxarc.surrogate.surrogate_experiment import SurrogateExperiment, SurrogateReport, make_task
from jaxarc.surrogate.surrogate_task import StructuralModelsTask, SurrogateTask
from jaxarc.surrogate.surrogate_training import SurrogateState, train_surrogate
from jaxarc.surrogate.train_step import (
    AdaptiveTrainStep,
    CompiledTrainStep,
    TrainStep,
    convert_metrics,
    create_adaptive_train_step,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
)
from jaxarc.surrogate.trunk import in_one_piece, over_stages

__all__ = [
    "AdaptiveTrainStep",
    "CandidateScorer",
    "CandidateSet",
    "CausalGraph",
    "CompiledTrainStep",
    "CountingScorer",
    "DataPrefetcher",
    "EdgeScorer",
    "GraphBatch",
    "LookaheadTask",
    "MeshPlacement",
    "RulesTask",
    "StructuralModelConfig",
    "StructuralModelsTask",
    "SurrogateAgent",
    "SurrogateExperiment",
    "SurrogateNetworkConfig",
    "SurrogateReport",
    "SurrogateState",
    "SurrogateTask",
    "SurrogateTrainingConfig",
    "TrainStep",
    "TrainingBatchJAX",
    "acyclic_threshold",
    "candidates_of",
    "causal_graph",
    "choose_box",
    "convert_metrics",
    "create_adaptive_train_step",
    "create_jax_surrogate_train_step",
    "create_surrogate_train_step",
    "describe_samples",
    "draw_graphs",
    "draw_parent_sets",
    "edge_loss",
    "edge_probabilities",
    "from_static",
    "in_one_piece",
    "init_optimizer",
    "kl_divergence_loss_jax",
    "make_surrogate_optimizer",
    "make_task",
    "over_stages",
    "place_weights",
    "solver_of",
    "surrogate_learning_rate",
    "to_arrays",
    "to_static",
    "train_surrogate",
]
