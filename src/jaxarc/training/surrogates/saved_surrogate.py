"""Take the models of a surrogate out of a run folder, without the rest of their training."""

from collections.abc import Mapping

import equinox as eqx
import jax

from jaxarc.surrogate.train_step import Model
from jaxarc.training.checkpoint import load_checkpoint
from jaxarc.training.run_folder import RunFolder
from jaxarc.training.saved_agent import WhichCheckpoint, chosen_checkpoint
from jaxarc.training.surrogates.lesson import Lesson


def load_models(folder: RunFolder, lessons: Mapping[str, Lesson], which: WhichCheckpoint = "best") -> dict[str, Model]:
    """Load the model of each lesson.

    Args:
        folder: of the run.
        lessons: of its experiment.
        which: the checkpoint that agrees best with the expert, or the newest.

    Warns:
        DamagedCheckpointWarning: the checkpoint is damaged, and another one is used.

    Raises:
        CheckpointError: the folder has no checkpoint that can be used.
    """
    record, models = chosen_checkpoint(folder, which), {}
    for name, lesson in lessons.items():
        fresh = lesson.make_model(jax.random.key(0))
        arrays, rest = eqx.partition(fresh, eqx.is_array)
        saved = load_checkpoint(folder.checkpoints.at(record.update), arrays, within=f"models.{name}")
        models[name] = eqx.combine(saved, rest)
    return models
