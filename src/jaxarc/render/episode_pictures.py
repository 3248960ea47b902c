"""Episodes as pictures: moving in a GIF, or every step below the one before in SVG and in pixels."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from jaxarc.constants import FLOOD_FILL, MOVE_UP, PADDING
from jaxarc.envs.operations import get_operation_name
from jaxarc.render import pixels
from jaxarc.render.animation import join_frames
from jaxarc.render.expected_grids import acts_on_cells, selection_of
from jaxarc.render.packed_episode import ReplayEpisode, ReplayTask
from jaxarc.render.palette import ARC_COLORS, COLOR_NAMES, Palette
from jaxarc.render.pictures import Frame, Renderer, draw_frame

_SIDE: Final = 150  # pixels of the longest side of a grid
_LEAST_CELL: Final = 5  # pixels


def episodes_gif(
    played: Sequence[tuple[ReplayTask, ReplayEpisode]],
    frame_ms: int = 350,
    last_ms: int = 1500,
    palette: Palette = ARC_COLORS,
) -> bytes:
    """Draw episodes one after the other as a GIF that repeats.

    Args:
        played: the episodes, and the tasks that they are of.
        frame_ms: milliseconds that a step is shown.
        last_ms: milliseconds that the last one of an episode is.
        palette: the ten colors.

    Raises:
        ValueError: there is no episode.
    """
    images, durations = [], []
    for task, episode in played:
        images += _drawn(pixels, task, episode, palette)
        durations += [frame_ms] * len(episode.actions) + [last_ms]
    return join_frames(images, durations)


def draw_episodes(
    renderer: Renderer, played: Sequence[tuple[ReplayTask, ReplayEpisode]], palette: Palette = ARC_COLORS
) -> Any:
    """Draw every step of some episodes below the one before, with :mod:`jaxarc.render.svg` or ``pixels``."""
    rows = [row for task, episode in played for row in _drawn(renderer, task, episode, palette)]
    return renderer.vstack(rows, 16, centered=False)


def episode_frames(task: ReplayTask, episode: ReplayEpisode) -> list[Frame]:
    """Return what is to be seen after each step, the start first."""
    return [_frame(task, episode, step) for step in range(len(episode.actions) + 1)]


def _drawn(renderer: Renderer, task: ReplayTask, episode: ReplayEpisode, palette: Palette) -> list[Any]:
    used = np.concatenate([episode.grids, episode.target[None]]) != PADDING
    cell_size = max(_LEAST_CELL, _SIDE // max(int(used.sum(axis=axis).max()) for axis in (1, 2)))
    return [draw_frame(renderer, frame, cell_size, palette) for frame in episode_frames(task, episode)]


def _frame(task: ReplayTask, episode: ReplayEpisode, step: int) -> Frame:
    words, selection = "start", None
    if step:
        action = episode.actions[step - 1]
        words = _name(action[0]) + (" (refused)" if episode.invalid[step - 1] else "")
        if acts_on_cells(action[0]):
            height, width = episode.target.shape
            selection = selection_of(action, episode.selection_format, (height, width))
    ending = ", solved" if episode.is_solved and step == len(episode.actions) else ""
    return Frame(
        grid=episode.grids[step],
        target=episode.target,
        caption=f"task {task.task_id}, step {step} of {len(episode.actions)}: {words}{ending}",
        selection=selection,
        input=episode.grids[0],
        clipboard=episode.clipboards[step],
    )


def _name(operation: int) -> str:
    if operation < MOVE_UP:
        verb = "fill" if operation < FLOOD_FILL else "flood fill"
        return f"{verb} {COLOR_NAMES[operation % FLOOD_FILL]}"
    return get_operation_name(operation)
