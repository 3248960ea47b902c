"""The episodes that every measurement plays."""

from typing import Final

from jaxarc.constants import MAX_GRID_SIZE, NUM_GRID_OPERATIONS
from jaxarc.envs import EnvParams
from jaxarc.registration import make
from jaxarc.tasks import load_tasks

DATASET: Final = "arc-agi-1/training"
EPISODE_STEPS: Final = 100
MINI_SIDE: Final = 5  # the canvas of Mini-ARC


def play_params(
    selection_format: str,
    side: int = MAX_GRID_SIZE,
    history: bool = False,
    operations: tuple[int, ...] = tuple(range(NUM_GRID_OPERATIONS)),
) -> EnvParams:
    """Make the params of an episode of at most 100 steps on ARC-AGI-1 training tasks.

    Args:
        selection_format: point, bbox or mask.
        side: rows and columns of the canvas; below 30 only the tasks that fit are played.
        history: whether states remember the actions of their episode.
        operations: the ones that can be drawn, the 35 grid operations by default.
    """
    dataset = DATASET if side == MAX_GRID_SIZE else load_tasks(DATASET).select(max_side=side)
    _, params = make(
        dataset,
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
