"""Tasks, states and episodes as pictures: in SVG, in pixels, and as GIFs, all by one layout."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final

import numpy as np
from jaxtyping import Int8
from PIL import Image

from jaxarc.constants import PADDING
from jaxarc.envs.state import ArcEnvState
from jaxarc.render import pixels, svg
from jaxarc.render.actions import acts_on_cells, describe_operation, selection_of
from jaxarc.render.layout import CELL, Frame, Renderer, draw_frame, draw_pairs, task_pairs
from jaxarc.render.palette import ARC_COLORS, Palette
from jaxarc.render.replay_page import ReplayEpisode, ReplayTask
from jaxarc.tasks.raw_task import RawTask
from jaxarc.types import JaxArcTask

_BORDER: Final = 12  # pixels around the frames of a GIF, and around the steps of an episode
_SIDE: Final = 200  # pixels of the longest side of a grid in a picture of an episode
_LEAST_CELL: Final = 5  # pixels of a cell's side, however large the grid is


def task_svg(task: JaxArcTask | RawTask, title: str = "", cell_size: int = CELL, palette: Palette = ARC_COLORS) -> str:
    """Draw all pairs of a task, demonstrations first, as a whole SVG file."""
    return draw_task(svg, task, title, cell_size, palette).to_svg(title or "a task")


def task_image(
    task: JaxArcTask | RawTask, title: str = "", cell_size: int = CELL, palette: Palette = ARC_COLORS
) -> Image.Image:
    """Draw all pairs of a task in pixels; ``image.save("task.png")`` writes them."""
    return draw_task(pixels, task, title, cell_size, palette)


def state_svg(state: ArcEnvState, cell_size: int = CELL, palette: Palette = ARC_COLORS) -> str:
    """Draw a state as a whole SVG file: its grid with the selection, the target, the difference, the clipboard.

    In the guide API, where a state carries its task, the input stands in front.

    Raises:
        ValueError: the state is a batch of states.
    """
    frame = frame_of_state(state)
    return draw_frame(svg, frame, cell_size, palette).to_svg(frame.caption)


def state_image(state: ArcEnvState, cell_size: int = CELL, palette: Palette = ARC_COLORS) -> Image.Image:
    """Draw a state in pixels; see :func:`state_svg`."""
    return draw_frame(pixels, frame_of_state(state), cell_size, palette)


def frame_of_state(state: ArcEnvState) -> Frame:
    """Return the frame of a state.

    Raises:
        ValueError: the state is a batch of states.
    """
    if not isinstance(state, ArcEnvState):
        raise TypeError(f"a state of the environment was expected, got {type(state).__name__}; see arc_reset")
    if state.similarity_score.ndim:
        raise ValueError(
            f"{state.similarity_score.size} states are drawn one by one; take one with "
            "jax.tree.map(lambda leaf: leaf[0], states)"
        )
    # Each of these waits for the device; a picture is drawn on the host anyway.
    step = int(state.step_count)
    percent = 100 * float(state.similarity_score)
    ending = ""
    if bool(state.is_solved):
        ending = ", solved"
    elif bool(state.done):
        ending = ", ended"
    return Frame(
        grid=np.asarray(state.working_grid),
        target=np.asarray(state.target_grid),
        caption=f"step {step}, similarity {percent:.1f} %{ending}",
        selection=np.asarray(state.selected),
        input=_input_of(state),
        clipboard=np.asarray(state.clipboard),
    )


def draw_task(
    renderer: Renderer,
    task: JaxArcTask | RawTask,
    title: str = "",
    cell_size: int = CELL,
    palette: Palette = ARC_COLORS,
) -> Any:
    """Draw all pairs of a task, demonstrations first, below its title."""
    return draw_pairs(renderer, task_pairs(task), title, cell_size, palette)


def animate(
    frames: Sequence[Frame],
    cell_size: int = 16,
    frame_ms: int = 400,
    last_ms: int = 1600,
    palette: Palette = ARC_COLORS,
) -> bytes:
    """Draw an episode as a GIF that repeats: working grid, target and difference beside each other.

    Args:
        frames: one for each step, the start included.
        cell_size: pixels of a cell's side.
        frame_ms: milliseconds that a step is shown.
        last_ms: milliseconds that the last step is shown.
        palette: the ten colors.

    Raises:
        ValueError: there is no frame.
    """
    images = [draw_frame(pixels, frame, cell_size, palette) for frame in frames]
    return join_frames(images, [frame_ms] * (len(images) - 1) + [last_ms])


def join_frames(images: Sequence[Image.Image], durations_ms: Sequence[int]) -> bytes:
    """Put images into one GIF, each at the top left of a white ground as large as the largest image.

    Raises:
        ValueError: there is no image, or the number of durations differs.
    """
    if not images or len(images) != len(durations_ms):
        raise ValueError(
            f"an animation has images and a duration for each, got {len(images)} and {len(durations_ms)}; bring both"
        )
    width = max(image.width for image in images) + 2 * _BORDER
    height = max(image.height for image in images) + 2 * _BORDER
    frames = []
    for image in images:
        frame = Image.new("RGB", (width, height), pixels.GROUND)
        frame.paste(image, (_BORDER, _BORDER))
        frames.append(frame)
    file = BytesIO()
    frames[0].save(
        file, "GIF", save_all=True, append_images=frames[1:], duration=list(durations_ms), loop=0, optimize=True
    )
    return file.getvalue()


def episodes_gif(
    played: Sequence[tuple[ReplayTask, ReplayEpisode]],
    frame_ms: int = 350,
    last_ms: int = 1500,
    palette: Palette = ARC_COLORS,
) -> bytes:
    """Draw episodes one after the other as a GIF that repeats.

    Args:
        played: episodes, each with its task.
        frame_ms: milliseconds that a step is shown.
        last_ms: milliseconds that the last step of an episode is shown.
        palette: the ten colors.

    Raises:
        ValueError: there is no episode.
    """
    images = []
    durations = []
    for task, episode in played:
        images += _drawn(pixels, task, episode, palette)
        durations += [frame_ms] * len(episode.actions) + [last_ms]
    return join_frames(images, durations)


def draw_episodes(
    renderer: Renderer, played: Sequence[tuple[ReplayTask, ReplayEpisode]], palette: Palette = ARC_COLORS
) -> Any:
    """Draw all steps of some episodes, one below the other, with :mod:`jaxarc.render.svg` or ``pixels``."""
    rows = [row for task, episode in played for row in _drawn(renderer, task, episode, palette)]
    return renderer.padded(renderer.vstack(rows, 16, centered=False), _BORDER)


def episode_frames(task: ReplayTask, episode: ReplayEpisode) -> list[Frame]:
    """Return the frames of an episode: the start, then one after each step."""
    return [_frame(task, episode, step) for step in range(len(episode.actions) + 1)]


def _drawn(renderer: Renderer, task: ReplayTask, episode: ReplayEpisode, palette: Palette) -> list[Any]:
    # The longest side of all grids: the most cells in a column or a row.
    used = np.concatenate([episode.grids, episode.target[None]]) != PADDING
    longest = max(int(used.sum(axis=axis).max()) for axis in (1, 2))
    cell_size = max(_LEAST_CELL, _SIDE // longest)
    return [draw_frame(renderer, frame, cell_size, palette) for frame in episode_frames(task, episode)]


def _frame(task: ReplayTask, episode: ReplayEpisode, step: int) -> Frame:
    words = "start"
    selection = None
    if step:
        action = episode.actions[step - 1]
        words = describe_operation(action[0]) + (" (refused)" if episode.invalid[step - 1] else "")
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


def _input_of(state: ArcEnvState) -> Int8[np.ndarray, "H W"] | None:
    """Find the input of the current pair by its target, because a state does not hold it; None if two pairs fit."""
    if state.task_data is None:
        return None
    target = np.asarray(state.target_grid)
    # Two pairs with the same answer leave it open which input is meant, and then none is drawn.
    inputs = [source for _, source, output in task_pairs(state.task_data) if np.array_equal(output, target)]
    return inputs[0] if len(inputs) == 1 else None
