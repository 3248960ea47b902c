"""Training runs: the loop, its metrics, its checkpoints and its folder."""

from jaxarc.datasets.training_pairs import TrainingPairs, load_pairs
from jaxarc.training.agent_training import AgentResult, train
from jaxarc.training.checkpoint import CheckpointError, Checkpoints, DamagedCheckpointWarning, load_checkpoint
from jaxarc.training.experiment import Experiment
from jaxarc.training.log_writers import LogWriter, LogWriterError, numbers_of
from jaxarc.training.loop import Trainable, TrainingDivergedError, TrainResult
from jaxarc.training.metrics import Report, read_metrics
from jaxarc.training.run_folder import RunFolder, RunFolderError, create_run_folder, open_run_folder
from jaxarc.training.run_state import IncompatibleRunError, OtherVersionsWarning
from jaxarc.training.updates import TrainingState

__all__ = [
    "AgentResult",
    "CheckpointError",
    "Checkpoints",
    "DamagedCheckpointWarning",
    "Experiment",
    "IncompatibleRunError",
    "LogWriter",
    "LogWriterError",
    "OtherVersionsWarning",
    "Report",
    "RunFolder",
    "RunFolderError",
    "TrainResult",
    "Trainable",
    "TrainingDivergedError",
    "TrainingPairs",
    "TrainingState",
    "create_run_folder",
    "load_checkpoint",
    "load_pairs",
    "numbers_of",
    "open_run_folder",
    "read_metrics",
    "train",
]
