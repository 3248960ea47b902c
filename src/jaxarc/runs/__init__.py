"""Runs of whatever is trained: the loop, its metrics, its checkpoints and its folder."""

from jaxarc.files import locate_run
from jaxarc.runs.checkpoint import CheckpointError, Checkpoints, DamagedCheckpointWarning, load_checkpoint
from jaxarc.runs.folder import RunFolder, RunFolderError, create_run_folder, open_run_folder, read_reports
from jaxarc.runs.loop import Trainable, TrainingDivergedError, TrainResult
from jaxarc.runs.run_state import IncompatibleRunError, OtherVersionsWarning
from jaxarc.runs.writers import LogWriter, LogWriterError, numbers_of

__all__ = [
    "CheckpointError",
    "Checkpoints",
    "DamagedCheckpointWarning",
    "IncompatibleRunError",
    "LogWriter",
    "LogWriterError",
    "OtherVersionsWarning",
    "RunFolder",
    "RunFolderError",
    "TrainResult",
    "Trainable",
    "TrainingDivergedError",
    "create_run_folder",
    "load_checkpoint",
    "locate_run",
    "numbers_of",
    "open_run_folder",
    "read_reports",
]
