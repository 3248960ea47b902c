"""The state of a run: save it, resume it, and compare it between runs and between processes."""

import statistics
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import jax

from jaxarc.config import ConfigValidationError
from jaxarc.config.build import spell
from jaxarc.files import code_digest
from jaxarc.parallel import allgather_text, digest, is_primary, require_same
from jaxarc.runs.checkpoint import Checkpoint, CheckpointRecord, read_checkpoint
from jaxarc.runs.folder import MetricsFile, RunConfig, RunFolder, RunFolderError, RunReport, library_versions

State: TypeAlias = Any
"""A pytree of arrays."""

_FIXED: Final = ("parallel.over",)  # of the topics below: it says which environments make a minibatch
_MOST_LISTED: Final = 20  # differences
_WITHOUT_EFFECT: Final = (
    *("logging.", "checkpoint.", "parallel.", "surrogate_mesh.", "training.compilation_cache"),
    *("surrogate.compilation_cache", "surrogate.buffer_size"),
)
_FREE: Final = (*_WITHOUT_EFFECT, "training.max_seconds", "training.stop_at_solve_rate", "surrogate.max_seconds")


@dataclass(frozen=True)
class RunState:
    """The state of what is trained, its reports and its clock."""

    state: State
    updates: int = 0
    reports: list[Any] = field(default_factory=list)  # K for each moment that was reported
    seconds: float = 0.0  # since learning began, when the checkpoint was written

    @property
    def score(self) -> float | None:
        """Of this very state, mean over the seeds; None where it was not measured."""
        # The reports of earlier updates do not count: after a report without an evaluation the score is None.
        latest = [report.score for report in self.reports if report.update == self.updates]
        scores = [score for score in latest if score is not None]
        return statistics.fmean(scores) if scores else None


def require_unused(folder: RunFolder) -> None:
    """Raise where a run was begun in the folder."""
    if folder.metrics.exists() or folder.checkpoints.updates():
        raise RunFolderError(f"{folder.path} holds a run already; resume it, or name another folder")


def save_run_state(folder: RunFolder, experiment: RunConfig, run_state: RunState, kind: type[RunReport]) -> None:
    """Write a checkpoint, if there is none of this update, and remove those that need not be kept."""
    if is_primary():
        MetricsFile(folder.metrics, kind).flush()
    # The metrics are on the disk before the checkpoint names their number of lines; a crash in between leaves lines too
    # many, which the next start cuts off, and never lines too few.
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


def load_run_state(folder: RunFolder, experiment: RunConfig, like: State, kind: type[RunReport]) -> RunState | None:
    """Go back to the newest checkpoint, and remove the later checkpoints and metrics from the folder.

    Each process reads all of it, however many wrote it.

    Args:
        folder: of the run.
        experiment: its choices.
        like: its state, or the shapes and dtypes of it from ``jax.eval_shape``.
        kind: of its reports.

    Returns:
        None where no checkpoint was written yet.

    Warns:
        DamagedCheckpointWarning, OtherVersionsWarning: see there.

    Raises:
        IncompatibleRunError: the run was started with other choices.
        CheckpointError: every checkpoint is damaged.
    """
    checkpoint = _newest(folder)
    metrics = MetricsFile(folder.metrics, kind)
    if checkpoint is None:
        folder.checkpoints.remove_after(0)
        if is_primary():
            metrics.cut(0)
        return None
    record = checkpoint.record
    require_same_choices(record.config, experiment.as_dict())
    if is_primary():
        warn_of_other_versions(record.versions, library_versions())
    # A run killed at update 50 with its newest checkpoint at 40 goes back to 40: later lines and checkpoints are
    # removed, and the updates 41 .. 50 are made again.
    state = checkpoint.load(like)
    folder.checkpoints.remove_after(record.update)
    reports = metrics.cut(record.num_lines) if is_primary() else metrics.head(record.num_lines)
    return RunState(state, record.update, reports, record.seconds)


def _newest(folder: RunFolder) -> Checkpoint | None:
    """Return the checkpoint that process 0 finds the newest sound one."""
    checkpoint = folder.checkpoints.newest() if is_primary() else None
    # Process 0 chooses, and the others check the same folder: without that, a disk that is slow to show files could let
    # two processes resume from different updates.
    newest = allgather_text("" if checkpoint is None else str(checkpoint.record.update))[0]
    return checkpoint if is_primary() or not newest else read_checkpoint(folder.checkpoints.at(int(newest)))


class IncompatibleRunError(ConfigValidationError):
    """A run cannot go on with choices that would change what it computes."""


class OtherVersionsWarning(UserWarning):
    """A run goes on with other library versions, which may round otherwise."""


def require_same_choices(saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Compare two experiments, as nested dictionaries, in all that the results depend on.

    Raises:
        IncompatibleRunError: they differ; the message lists each field with both values.
    """
    # Fields of the free topics may change; ``_FIXED`` names the exception among them. A field that
    # only one side has counts as different.
    old = dict(fields_of(saved))
    new = dict(fields_of(wanted))
    names = [name for name in {**old, **new} if name in _FIXED or not name.startswith(_FREE)]
    missing = "no such field"
    differ = [
        f"{name} is {spell(old.get(name, missing))} in the run, but {spell(new.get(name, missing))} now"
        for name in names
        if old.get(name, missing) != new.get(name, missing)
    ]
    if differ:
        more = f"; and {len(differ) - _MOST_LISTED} more" if len(differ) > _MOST_LISTED else ""
        raise IncompatibleRunError(
            f"the run cannot be resumed with other choices: {'; '.join(differ[:_MOST_LISTED])}{more}. Leave them out, "
            f"or start a new run; {_say_what_may_change(new)}"
        )


def warn_of_other_versions(saved: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Name the libraries whose version is not that of the saved run."""
    differ = [
        f"{name} {saved.get(name)} -> {now.get(name)}" for name in {**saved, **now} if saved.get(name) != now.get(name)
    ]
    if differ:
        warnings.warn(
            f"the run goes on with other versions: {', '.join(differ)}; its numbers may differ from those of one that "
            "was not interrupted",
            OtherVersionsWarning,
            stacklevel=2,
        )


def _say_what_may_change(fields: Mapping[str, Any]) -> str:
    """Name what a run of this kind may change: those of the topics that it has."""
    free = [free + "*" * free.endswith(".") for free in _FREE if any(name.startswith(free) for name in fields)]
    fixed = [name for name in _FIXED if name in fields]
    return f"what may change: {', '.join(free)}{''.join(f'; but not {name}' for name in fixed)}"


def by_topic(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Put the topics of the rules beside the others: ``{"environment": {"action": a}, "agent": b}`` has two topics."""
    rules = experiment.get("environment", {})
    return {**rules, **{name: topic for name, topic in experiment.items() if name != "environment"}}


def fields_of(experiment: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name each value as the command line does, such as ``action.allowed_operations``."""
    for topic, fields in by_topic(experiment).items():
        for name, value in fields.items():
            yield f"{topic}.{name}", list(value) if isinstance(value, tuple) else value


def changes_results(name: str) -> bool:
    """Whether runs that differ in a field, named as by :func:`fields_of`, learn differently up to their ends."""
    return name in _FIXED or not name.startswith(_WITHOUT_EFFECT)


def require_same_run(experiment: RunConfig) -> None:
    """Compare choices, versions and code between the processes.

    Raises:
        ProcessMismatchError: they differ; names each field with two of its values.
    """
    if jax.process_count() == 1:
        return
    versions = {f"the version of {name}": version for name, version in library_versions().items()}
    require_same({**dict(fields_of(experiment.as_dict())), **versions, "the code of jaxarc": code_digest()})


def require_same_start(train: Any, evaluation: Any, state: Any) -> None:
    """Compare the bits of the tasks that are learned from and evaluated, and of the state that learning starts from.

    Raises:
        ProcessMismatchError: a machine has other data, or its processor rounds differently.
    """
    if jax.process_count() == 1:
        return
    parts = {"the training tasks": train, "the evaluation tasks": evaluation, "the first state": state}
    require_same({f"the hash of {name}": digest(part) for name, part in parts.items()})
