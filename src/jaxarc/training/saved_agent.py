"""Take an agent out of a run folder, without the rest of its training."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from jaxarc.agents import EditPolicy
from jaxarc.agents.answers.learning import Imagination
from jaxarc.agents.imagining_policy import ImaginingPolicy, practice_config
from jaxarc.config import build
from jaxarc.training.checkpoint import CheckpointError, load_checkpoint
from jaxarc.training.experiment import Experiment
from jaxarc.training.run_folder import RunFolder

WhichCheckpoint = Literal["best", "last"]

_EDITOR, _PREDICTOR = "learner.policy", "imagination.predictor"  # where they are in a training state


def load_agent(
    folder: RunFolder, which: WhichCheckpoint, seed: int | None = None
) -> tuple[EditPolicy | ImaginingPolicy, Experiment]:
    """Load the policy of one seed, and the experiment that it learned by.

    Args:
        folder: of the run.
        which: the checkpoint with the highest evaluation solve rate, mean over the seeds, or the newest.
        seed: of the agent; None for the run's first.

    Warns:
        DamagedCheckpointWarning: the checkpoint is damaged, and another one is used.

    Raises:
        CheckpointError: the folder has no checkpoint that can be used, or the run has no such seed.
        ConfigValidationError: the checkpoint's config is not one of this version.
    """
    checkpoints = folder.checkpoints
    record = checkpoints.best() if which == "best" else checkpoints.newest()
    if record is None:
        raise CheckpointError(f"there is no checkpoint in {checkpoints.path}; name the folder of a run of jaxarc train")
    experiment = build(Experiment, record.config)
    seeds = experiment.training.seeds
    if seed is not None and seed not in seeds:
        raise CheckpointError(f"the run {folder.path} has no seed {seed}; it has {', '.join(map(str, seeds))}")
    parts = {
        place: load_checkpoint(checkpoints.at(record.update), like, within=place)
        for place, like in _parts_of_policy(experiment).items()
    }
    mine = jax.tree.map(lambda leaf: leaf[0 if seed is None else seeds.index(seed)], parts)
    editor = mine[_EDITOR]
    return (ImaginingPolicy(mine[_PREDICTOR], editor) if _PREDICTOR in mine else editor), experiment


def _parts_of_policy(experiment: Experiment) -> dict[str, Any]:
    """Describe what the policies of all seeds are made of, by its place in a training state."""
    recipe, rules = experiment.recipe, experiment.environment
    imagines = recipe.answer.source == "imagined"

    def make(key: Key[Array, ""]) -> dict[str, Any]:
        practice = practice_config(rules) if imagines else rules
        editor = {_EDITOR: EditPolicy.create(key, practice, recipe.network)}
        return editor | ({_PREDICTOR: Imagination.create(key, recipe).predictor} if imagines else {})

    keys = jnp.stack([jax.random.key(seed) for seed in experiment.training.seeds])
    return jax.eval_shape(jax.vmap(make), keys)
