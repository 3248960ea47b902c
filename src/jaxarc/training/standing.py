"""Where a run stands: all that it needs to go on, in memory and in its folder."""

import statistics
from dataclasses import dataclass, field

from jaxarc.training.checkpoint import CheckpointRecord, load_checkpoint
from jaxarc.training.experiment import Experiment
from jaxarc.training.metrics import MetricsFile, Report
from jaxarc.training.resuming import require_same_choices, warn_of_other_versions
from jaxarc.training.run_folder import RunFolder, RunFolderError, library_versions
from jaxarc.training.updates import TrainingState


@dataclass(frozen=True)
class Standing:
    """What was learned so far, and what was told about it."""

    state: TrainingState  # leaves [K, ...]
    updates: int = 0
    reports: list[Report] = field(default_factory=list)  # K for each moment that was reported
    seconds: float = 0.0  # since learning began, when the checkpoint was written

    @property
    def evaluation_solve_rate(self) -> float | None:
        """Of this very state, mean over the seeds; None where it was not measured."""
        latest = [report.evaluation_solve_rate for report in self.reports if report.update == self.updates]
        rates = [rate for rate in latest if rate is not None]
        return statistics.fmean(rates) if rates else None


def require_unused(folder: RunFolder) -> None:
    """Raise where a run was begun in the folder.

    Raises:
        RunFolderError: there are metrics or checkpoints.
    """
    if folder.metrics.exists() or folder.checkpoints.updates():
        raise RunFolderError(f"{folder.path} holds a run already; resume it, or name another folder")


def save_standing(folder: RunFolder, experiment: Experiment, standing: Standing) -> None:
    """Write a checkpoint, if there is none of this update, and remove those that need not be kept."""
    MetricsFile(folder.metrics).flush()
    record = CheckpointRecord(
        update=standing.updates,
        num_lines=len(standing.reports),
        seconds=standing.seconds,
        evaluation_solve_rate=standing.evaluation_solve_rate,
        config=experiment.as_dict(),
        versions=library_versions(),
    )
    folder.checkpoints.save(standing.state, record)
    folder.checkpoints.keep(experiment.checkpoint.keep_last, experiment.checkpoint.keep_best)


def load_standing(folder: RunFolder, experiment: Experiment, like: TrainingState) -> Standing | None:
    """Go back to the newest checkpoint: what the folder tells of later updates is removed.

    Args:
        folder: of the run.
        experiment: its choices.
        like: what ``jax.eval_shape`` tells of its state.

    Returns:
        None where no checkpoint was written yet.

    Warns:
        DamagedCheckpointWarning, OtherVersionsWarning: see there.

    Raises:
        IncompatibleRunError: the run was started with other choices.
        CheckpointError: every checkpoint is damaged.
    """
    record = folder.checkpoints.newest()
    if record is None:
        folder.checkpoints.remove_after(0)
        MetricsFile(folder.metrics).cut(0)
        return None
    require_same_choices(record.config, experiment.as_dict())
    warn_of_other_versions(record.versions, library_versions())
    state = load_checkpoint(folder.checkpoints.at(record.update), like)
    folder.checkpoints.remove_after(record.update)
    reports = MetricsFile(folder.metrics).cut(record.num_lines)
    return Standing(state, record.update, reports, record.seconds)
