"""Tasks, states and episodes as pictures: in SVG, in pixels, as GIFs and as contact sheets, all by one layout."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from io import BytesIO
from typing import Any, Final

import numpy as np
from jaxtyping import Int8
from PIL import Image

from jaxarc.constants import PADDING
from jaxarc.envs.state import ArcEnvState
from jaxarc.render import pixels, svg
from jaxarc.render.actions import acts_on_cells, describe_operation, selection_of
from jaxarc.render.layout import CELL, Frame, Renderer, active_area, draw_frame, draw_pairs, task_pairs
from jaxarc.render.palette import ARC_COLORS, Palette
from jaxarc.render.replay_page import ReplayEpisode, ReplayPage, ReplayTask
from jaxarc.tasks.raw_task import RawTask
from jaxarc.types import JaxArcTask

_BORDER: Final = 12  # pixels around the frames of a GIF, and around the steps of an episode
_SIDE: Final = 200  # pixels of the longest side of a grid in a picture of an episode or of a state
_TILE_SIDE: Final = 78  # the same in a sheet of several
_STATES_IN_A_ROW: Final = 4
_SMALLEST_CELL: Final = 3  # pixels
_LARGEST_CELL: Final = 36


def task_svg(task: JaxArcTask | RawTask, title: str = "", cell_size: int = CELL, palette: Palette = ARC_COLORS) -> str:
    """Draw all pairs of a task, demonstrations first, as a whole SVG file."""
    return draw_pairs(svg, task_pairs(task), title, cell_size, palette).to_svg(title or "a task")


def task_image(
    task: JaxArcTask | RawTask, title: str = "", cell_size: int = CELL, palette: Palette = ARC_COLORS
) -> Image.Image:
    """Draw all pairs of a task in pixels; ``image.save("task.png")`` writes them."""
    return draw_pairs(pixels, task_pairs(task), title, cell_size, palette)


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
    """Return the frame of a state."""
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
    """Put images into one GIF, each at the top left of a white ground as large as the largest image."""
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


def episodes_file(
    kind: str,
    played: Iterable[tuple[ReplayTask, ReplayEpisode]],
    title: str,
    about: Mapping[str, str] | None = None,
    palette: Palette = ARC_COLORS,
) -> bytes:
    """Return a page (``.html``), an animation (``.gif``), or a picture of all steps (``.svg``, ``.png``) of episodes.

    A page takes one episode after the other, and lets its reader choose the palette.
    """
    if kind == ".html":
        page = ReplayPage(title, about)
        for task, episode in played:
            page.add(task, episode)
        return page.to_html().encode()
    if kind == ".gif":
        return episodes_gif(list(played), palette=palette)
    if kind == ".svg":
        return draw_episodes(svg, list(played), palette).to_svg(title).encode()
    return pixels.to_png(draw_episodes(pixels, list(played), palette))


def episode_frames(task: ReplayTask, episode: ReplayEpisode) -> list[Frame]:
    """Return the frames of an episode: the start, then one after each step."""
    return [_frame(task, episode, step) for step in range(len(episode.actions) + 1)]


def _drawn(renderer: Renderer, task: ReplayTask, episode: ReplayEpisode, palette: Palette) -> list[Any]:
    cell_size = _cell_size_for([*episode.grids, episode.target], _SIDE, largest=_SIDE)
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


def sheet_svg(task: JaxArcTask | RawTask, title: str) -> str:
    """Draw all pairs of a task, in cells as large as four pairs in a row allow."""
    named_pairs = list(task_pairs(task))
    cell = _cell_size_for((grid for pair in named_pairs for grid in pair[1:]), _TILE_SIDE)
    return draw_pairs(svg, named_pairs, title, cell).to_svg(title or "a task")


def frame_svg(frame: Frame) -> str:
    """Draw a frame, in cells as large as the width of a notebook allows."""
    return draw_frame(svg, frame, _cell_size_for([frame.grid, frame.target], _SIDE)).to_svg(frame.caption)


def frames_svg(frames: Sequence[Frame], title: str) -> str:
    """Draw the working grid and the target of each frame, with its index and caption, below a title."""
    tiles = [
        svg.captioned(_side_by_side(frame.grid, frame.target), f"{index}: {frame.caption}")
        for index, frame in enumerate(frames)
    ]
    rows = [svg.hstack(tiles[at : at + _STATES_IN_A_ROW], 24) for at in range(0, len(tiles), _STATES_IN_A_ROW)]
    return svg.vstack([svg.draw_text(title, 14), *rows], 14, centered=False).to_svg(title)


def tasks_html(title: str, tasks: Iterable[tuple[str, np.ndarray, np.ndarray]]) -> str:
    """Return HTML with the input and the output of one pair of each task above the task's name.

    The tiles flow, so the sheet is as wide as the page that holds it.
    """
    tiles = [svg.captioned(_side_by_side(source, target), name).to_svg(name) for name, source, target in tasks]
    style = "display:flex;flex-wrap:wrap;gap:8px;align-items:end"
    return f"<p><code>{escape(title)}</code></p><div style='{style}'>{''.join(tiles)}</div>"


def _side_by_side(source: Int8[np.ndarray, "H W"], target: Int8[np.ndarray, "H W"]) -> svg.Drawing:
    cell = _cell_size_for([source, target], _TILE_SIDE)
    left, right = (svg.draw_grid(active_area(grid), None, cell) for grid in (source, target))
    return svg.hstack([left, svg.draw_arrow(20), right], 4)


def _cell_size_for(grids: Iterable[Int8[np.ndarray, "..."]], side: int, largest: int = _LARGEST_CELL) -> int:
    """Return the size of a cell at which the longest side of some grids takes about ``side`` pixels."""
    # The padding of a canvas is not drawn, so it does not count: a 3x3 task on 30x30 gets large cells. An unknown
    # answer has no cells at all.
    longest = max(int((grid != PADDING).sum(axis=axis).max(initial=0)) for grid in grids for axis in (0, 1))
    return min(max(side // max(longest, 1), _SMALLEST_CELL), largest)
