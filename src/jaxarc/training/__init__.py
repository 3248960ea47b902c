"""Training runs: the loop, its metrics, its checkpoints and its folder."""

from jaxarc.training.checkpoint import CheckpointError, load_checkpoint, read_config, save_checkpoint
from jaxarc.training.experiment import Experiment
from jaxarc.training.loop import Outcome, TrainingDivergedError, train
from jaxarc.training.metrics import Report, read_metrics
from jaxarc.training.pairs import TrainingPairs, load_pairs
from jaxarc.training.run_folder import RunFolder, create_run_folder
from jaxarc.training.updates import TrainingState

__all__ = [
    "CheckpointError",
    "Experiment",
    "Outcome",
    "Report",
    "RunFolder",
    "TrainingDivergedError",
    "TrainingPairs",
    "TrainingState",
    "create_run_folder",
    "load_checkpoint",
    "load_pairs",
    "read_config",
    "read_metrics",
    "save_checkpoint",
    "train",
]
