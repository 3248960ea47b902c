"""Models that learn an expert's distribution over candidates, and what an action does, in compiled steps."""

from jaxarc.config.surrogate import StructuralModelConfig, SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.nn.optimizers import init_optimizer, make_surrogate_optimizer, surrogate_learning_rate
from jaxarc.surrogate.adaptive_step import AdaptiveTrainStep, create_adaptive_train_step
from jaxarc.surrogate.batch import TrainingBatchJAX
from jaxarc.surrogate.candidates import CandidateSet, candidates_of
from jaxarc.surrogate.choice import choose_box
from jaxarc.surrogate.counting_scorer import CountingScorer
from jaxarc.surrogate.labels import from_static, to_static
from jaxarc.surrogate.losses import kl_divergence_loss_jax, transition_loss
from jaxarc.surrogate.mesh_step import MeshTrainStep, create_mesh_train_step
from jaxarc.surrogate.metrics import convert_metrics
from jaxarc.surrogate.parent_batches import draw_parent_sets, parent_set_batches
from jaxarc.surrogate.pipelined_trunk import in_one_piece, over_stages
from jaxarc.surrogate.placement import place_weights
from jaxarc.surrogate.prefetcher import DataPrefetcher
from jaxarc.surrogate.scorer import CandidateScorer
from jaxarc.surrogate.train_step import (
    CompiledTrainStep,
    TrainStep,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
)
from jaxarc.surrogate.transition_model import Transition, TransitionModel
from jaxarc.surrogate.transition_step import TransitionBatch, create_transition_train_step

__all__ = [
    "AdaptiveTrainStep",
    "CandidateScorer",
    "CandidateSet",
    "CompiledTrainStep",
    "CountingScorer",
    "DataPrefetcher",
    "MeshTrainStep",
    "StructuralModelConfig",
    "SurrogateNetworkConfig",
    "SurrogateTrainingConfig",
    "TrainStep",
    "TrainingBatchJAX",
    "Transition",
    "TransitionBatch",
    "TransitionModel",
    "candidates_of",
    "choose_box",
    "convert_metrics",
    "create_adaptive_train_step",
    "create_jax_surrogate_train_step",
    "create_mesh_train_step",
    "create_surrogate_train_step",
    "create_transition_train_step",
    "draw_parent_sets",
    "from_static",
    "in_one_piece",
    "init_optimizer",
    "kl_divergence_loss_jax",
    "make_surrogate_optimizer",
    "over_stages",
    "parent_set_batches",
    "place_weights",
    "surrogate_learning_rate",
    "to_static",
    "transition_loss",
]
