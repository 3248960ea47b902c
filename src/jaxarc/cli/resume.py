"""``jaxarc train --resume``: from a run folder to the experiment that goes on in it."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from jaxarc.cli.settings import AnyExperiment, read_any_experiment
from jaxarc.config import ConfigValidationError
from jaxarc.training import RunFolder
from jaxarc.training.run_state import require_same_choices


def resumed_experiment(folder: RunFolder, overrides: Sequence[str]) -> AnyExperiment:
    """Read the choices of a run, and change those that its results do not depend on.

    Raises:
        ConfigValidationError: an override is not of a single field.
        IncompatibleRunError: an override would change what is computed.
    """
    groups = [override for override in overrides if "." not in override.partition("=")[0]]
    if groups:
        raise ConfigValidationError(
            f"jaxarc train: {groups[0]!r} does not go with --resume, since a run keeps its choices; leave it out, or "
            "write topic.field=value, such as training.max_seconds=60"
        )
    saved, wished = read_any_experiment([], folder.config), read_any_experiment(overrides, folder.config)
    require_same_choices(saved.as_dict(), wished.as_dict())
    return wished


def tell_if_finished(folder: RunFolder, experiment: AnyExperiment, console: Console) -> bool:
    """Return whether there is nothing left to learn or to write, and say so."""
    newest = folder.checkpoints.newest()
    is_finished = newest is not None and newest.update >= experiment.num_updates and folder.learning_curve.exists()
    if is_finished:
        line = f"{escape(str(folder.path))} is finished: all {experiment.num_updates} updates are learned."
        console.print(line, highlight=False, soft_wrap=True)
    return is_finished
