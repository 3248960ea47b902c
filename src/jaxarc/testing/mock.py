"""A small task and the config that plays it."""

from typing import Any

from jaxarc.config import JaxArcConfig
from jaxarc.tasks import create_mock_task

__all__ = ["create_mock_task", "create_test_config"]


def create_test_config(
    max_episode_steps: int = 100, selection_format: str = "point", grid_shape: tuple[int, int] = (30, 30), **fields: Any
) -> JaxArcConfig:
    """Make a config for examples and tests, by default one that plays ``create_mock_task()``.

    Args:
        max_episode_steps: steps after which an episode is truncated.
        selection_format: ``"point"``, ``"bbox"`` or ``"mask"``.
        grid_shape: rows and columns of the canvas, (H, W); ``create_mock_task(H, W)`` fits it.
        **fields: other config fields by their own name, whichever topic they belong to.

    Raises:
        ConfigValidationError: a field is unknown or breaks a rule.
    """
    height, width = grid_shape
    return JaxArcConfig().with_fields(
        max_episode_steps=max_episode_steps,
        selection_format=selection_format,
        max_grid_height=height,
        max_grid_width=width,
        **fields,
    )
