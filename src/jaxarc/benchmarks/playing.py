"""The episodes that every measurement plays."""

from typing import Final

from jaxarc.config import AugmentationConfig
from jaxarc.constants import MAX_GRID_SIZE, NUM_GRID_OPERATIONS
from jaxarc.envs import EnvParams
from jaxarc.registration import make

DATASET: Final = "arc-agi-1/training"
EPISODE_STEPS: Final = 100
NO_AUGMENTATION: Final = AugmentationConfig()
MINI_SIDE: Final = 5  # the canvas of Mini-ARC


def play_params(
    selection_format: str,
    side: int = MAX_GRID_SIZE,
    history: bool = False,
    operations: tuple[int, ...] = tuple(range(NUM_GRID_OPERATIONS)),
    dataset: str = DATASET,
    augmentation: AugmentationConfig = NO_AUGMENTATION,
) -> EnvParams:
    """Make the params of an episode of at most 100 steps, by default on ARC-AGI-1 training tasks.

    Args:
        selection_format: point, bbox or mask.
        side: rows and columns of the canvas; below 30 only the tasks that fit are played.
        history: whether states remember the actions of their episode.
        operations: the ones that can be drawn, the 35 grid operations by default.
        dataset: what is played; a name.
        augmentation: how tasks are changed, by default not at all.
    """
    _, params = make(
        dataset,
        too_large="skip",
        augmentation=augmentation,
        selection_format=selection_format,
        max_grid_height=side,
        max_grid_width=side,
        max_episode_steps=EPISODE_STEPS,
        invalid_action_policy="noop",
        allowed_operations=operations,
        history_enabled=history,
        max_history_length=EPISODE_STEPS,
    )
    return params
