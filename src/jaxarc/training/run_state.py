"""Where a run stands: all that it needs to go on, in memory and in its folder."""

import statistics
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from jaxarc.parallel import allgather_text, is_primary
from jaxarc.training.checkpoint import CheckpointRecord, check_checkpoint, load_checkpoint
from jaxarc.training.metrics import Kind, MetricsFile
from jaxarc.training.resuming import require_same_choices, warn_of_other_versions
from jaxarc.training.run_choices import RunChoices
from jaxarc.training.run_folder import RunFolder, RunFolderError, library_versions

State = TypeVar("State")
"""A pytree of arrays."""


@dataclass(frozen=True)
class RunState(Generic[State, Kind]):
    """What was learned so far, and what was told about it."""

    state: State
    updates: int = 0
    reports: list[Kind] = field(default_factory=list)  # K for each moment that was reported
    seconds: float = 0.0  # since learning began, when the checkpoint was written

    @property
    def score(self) -> float | None:
        """Of this very state, mean over the seeds; None where it was not measured."""
        latest = [report.score for report in self.reports if report.update == self.updates]
        scores = [score for score in latest if score is not None]
        return statistics.fmean(scores) if scores else None


def require_unused(folder: RunFolder) -> None:
    """Raise where a run was begun in the folder.

    Raises:
        RunFolderError: there are metrics or checkpoints.
    """
    if folder.metrics.exists() or folder.checkpoints.updates():
        raise RunFolderError(f"{folder.path} holds a run already; resume it, or name another folder")


def save_run_state(
    folder: RunFolder, experiment: RunChoices, run_state: RunState[State, Kind], kind: type[Kind]
) -> None:
    """Write a checkpoint, if there is none of this update, and remove those that need not be kept."""
    if is_primary():
        MetricsFile(folder.metrics, kind).flush()
    record = CheckpointRecord(
        update=run_state.updates,
        num_lines=len(run_state.reports),
        seconds=run_state.seconds,
        score=run_state.score,
        config=experiment.as_dict(),
        versions=library_versions(),
    )
    folder.checkpoints.save(run_state.state, record)
    folder.checkpoints.keep(experiment.checkpoint.keep_last, experiment.checkpoint.keep_best)


def load_run_state(
    folder: RunFolder, experiment: RunChoices, like: State, kind: type[Kind]
) -> RunState[State, Kind] | None:
    """Go back to the newest checkpoint: what the folder tells of later updates is removed.

    Each process reads all of it, however many wrote it.

    Args:
        folder: of the run.
        experiment: its choices.
        like: what ``jax.eval_shape`` tells of its state.
        kind: of its reports.

    Returns:
        None where no checkpoint was written yet.

    Warns:
        DamagedCheckpointWarning, OtherVersionsWarning: see there.

    Raises:
        IncompatibleRunError: the run was started with other choices.
        CheckpointError: every checkpoint is damaged.
    """
    record, metrics = _newest(folder), MetricsFile(folder.metrics, kind)
    if record is None:
        folder.checkpoints.remove_after(0)
        if is_primary():
            metrics.cut(0)
        return None
    require_same_choices(record.config, experiment.as_dict())
    if is_primary():
        warn_of_other_versions(record.versions, library_versions())
    state = load_checkpoint(folder.checkpoints.at(record.update), like)
    folder.checkpoints.remove_after(record.update)
    reports = metrics.cut(record.num_lines) if is_primary() else metrics.head(record.num_lines)
    return RunState(state, record.update, reports, record.seconds)


def _newest(folder: RunFolder) -> CheckpointRecord | None:
    """Return the record of the checkpoint that process 0 finds the newest sound one."""
    record = folder.checkpoints.newest() if is_primary() else None
    told = allgather_text("" if record is None else str(record.update))[0]
    return record if is_primary() or not told else check_checkpoint(folder.checkpoints.at(int(told)))
