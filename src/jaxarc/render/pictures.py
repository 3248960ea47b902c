"""Tasks, states and episodes as pictures: in SVG, in pixels, and as GIFs, all by one layout."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any, Final, NamedTuple, Protocol

import jax
import numpy as np
from jax.core import Tracer
from PIL import Image

from jaxarc.constants import FLOOD_FILL, MOVE_UP, PADDING
from jaxarc.envs.operations import get_operation_name
from jaxarc.envs.state import ArcEnvState
from jaxarc.render import pixels, svg
from jaxarc.render.palette import ARC_COLORS, COLOR_NAMES, Palette
from jaxarc.render.replay_page import ReplayEpisode, ReplayTask, acts_on_cells, selection_of
from jaxarc.types import JaxArcTask

_CELL: Final = 12  # pixels
_IN_A_ROW: Final = 4  # pairs of a task


class Renderer(Protocol):
    """What draws: the module :mod:`jaxarc.render.svg` or :mod:`jaxarc.render.pixels`."""

    def draw_grid(
        self, grid: Any, selection: Any = None, cell_size: int = ..., show_numbers: bool = ..., palette: Palette = ...
    ) -> Any: ...

    def draw_difference(self, grid: Any, target: Any, cell_size: int = ..., palette: Palette = ...) -> Any: ...

    def draw_text(self, text: str, size: int = ...) -> Any: ...

    def draw_arrow(self, length: int = ...) -> Any: ...

    def hstack(self, drawings: Sequence[Any], gap: int = ...) -> Any: ...

    def vstack(self, drawings: Sequence[Any], gap: int = ..., centered: bool = ...) -> Any: ...

    def captioned(self, drawing: Any, caption: str, size: int = ...) -> Any: ...


class Frame(NamedTuple):
    """What is to be seen of an episode at a step; grids are of one canvas."""

    grid: np.ndarray  # int8[H, W], -1 outside the active area
    target: np.ndarray
    caption: str
    selection: np.ndarray | None = None  # bool[H, W]
    input: np.ndarray | None = None
    clipboard: np.ndarray | None = None  # -1 where nothing is held


def task_svg(task: JaxArcTask, title: str = "", cell_size: int = _CELL, palette: Palette = ARC_COLORS) -> str:
    """Draw all pairs of a task, demonstrations first, as a whole SVG file."""
    return draw_task(svg, task, title, cell_size, palette).to_svg(title or "a task")


def task_image(task: JaxArcTask, title: str = "", cell_size: int = _CELL, palette: Palette = ARC_COLORS) -> Image.Image:
    """Draw all pairs of a task in pixels; ``image.save("task.png")`` writes them."""
    return draw_task(pixels, task, title, cell_size, palette)


def state_svg(state: ArcEnvState, cell_size: int = _CELL, palette: Palette = ARC_COLORS) -> str:
    """Draw a state as a whole SVG file: its grid with the selection, the target, the difference, the clipboard.

    In the guide API, where a state carries its task, the input stands in front.

    Raises:
        ValueError: it is a batch of states.
    """
    frame = frame_of_state(state)
    return draw_frame(svg, frame, cell_size, palette).to_svg(frame.caption)


def state_image(state: ArcEnvState, cell_size: int = _CELL, palette: Palette = ARC_COLORS) -> Image.Image:
    """Draw a state in pixels; see :func:`state_svg`."""
    return draw_frame(pixels, frame_of_state(state), cell_size, palette)


def frame_of_state(state: ArcEnvState) -> Frame:
    """Take from a state what is to be seen of it.

    Raises:
        ValueError: it is a batch of states.
    """
    if not isinstance(state, ArcEnvState):
        raise TypeError(f"a state of the environment was expected, got {type(state).__name__}; see arc_reset")
    if state.similarity_score.ndim:
        raise ValueError(
            f"{state.similarity_score.size} states are drawn one by one; take one with "
            "jax.tree.map(lambda leaf: leaf[0], states)"
        )
    step, share = int(state.step_count), 100 * float(state.similarity_score)
    ending = ", solved" if bool(state.is_solved) else ", ended" if bool(state.done) else ""
    return Frame(
        grid=np.asarray(state.working_grid),
        target=np.asarray(state.target_grid),
        caption=f"step {step}, similarity {share:.1f} %{ending}",
        selection=np.asarray(state.selected),
        input=_input_of(state),
        clipboard=np.asarray(state.clipboard),
    )


def draw_task(
    renderer: Renderer, task: JaxArcTask, title: str = "", cell_size: int = _CELL, palette: Palette = ARC_COLORS
) -> Any:
    """Draw all pairs of a task, demonstrations first, below its title."""
    pairs = [
        renderer.captioned(
            renderer.hstack(
                [
                    renderer.draw_grid(_active(source), None, cell_size, palette=palette),
                    renderer.draw_arrow(),
                    renderer.draw_grid(_active(target), None, cell_size, palette=palette),
                ]
            ),
            name,
        )
        for name, source, target in task_pairs(task)
    ]
    rows = [renderer.hstack(pairs[at : at + _IN_A_ROW], 24) for at in range(0, len(pairs), _IN_A_ROW)]
    return renderer.vstack([*([renderer.draw_text(title, 14)] if title else []), *rows], 14, centered=False)


def draw_frame(renderer: Renderer, frame: Frame, cell_size: int = _CELL, palette: Palette = ARC_COLORS) -> Any:
    """Draw a frame: the input if there is one, the working grid, the target, the difference, and what is held."""
    height, width = _extent([frame.grid, frame.target])
    cut = np.s_[:height, :width]
    draw = lambda grid, marked=None: renderer.draw_grid(grid, marked, cell_size, palette=palette)
    marked = None if frame.selection is None or not frame.selection[cut].any() else frame.selection[cut]
    parts = [renderer.captioned(draw(_active(frame.input)), "input")] if frame.input is not None else []
    parts.append(renderer.captioned(draw(frame.grid[cut], marked), "working grid"))
    parts.append(renderer.captioned(draw(frame.target[cut]), "target"))
    difference = renderer.draw_difference(frame.grid[cut], frame.target[cut], cell_size, palette)
    parts.append(renderer.captioned(difference, "difference"))
    if frame.clipboard is not None and (frame.clipboard != PADDING).any():
        parts.append(renderer.captioned(draw(_active(frame.clipboard)), "clipboard"))
    return renderer.vstack([renderer.hstack(parts, 14), renderer.draw_text(frame.caption)], 6, centered=False)


def picture_of(thing: object) -> str | None:
    """Return the SVG that a notebook shows of a task or a state, None for what cannot be drawn."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(thing)):
        return None
    if isinstance(thing, JaxArcTask):
        return task_svg(thing)
    if isinstance(thing, ArcEnvState) and not thing.similarity_score.ndim:
        return state_svg(thing)
    return None


def task_pairs(task: JaxArcTask) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield every pair with a name such as ``train 0``, padded as it is.

    Raises:
        TypeError: it is no padded task.
    """
    if not isinstance(task, JaxArcTask):
        raise TypeError(f"a JaxArcTask was expected, got {type(task).__name__}; see TaskSet.get_task_by_id")
    splits = (
        ("train", task.num_train_pairs, task.input_grids_examples, task.output_grids_examples),
        ("test", task.num_test_pairs, task.test_input_grids, task.true_test_output_grids),
    )
    for split, count, inputs, outputs in splits:
        for index in range(int(count)):
            yield f"{split} {index}", np.asarray(inputs[index]), np.asarray(outputs[index])


def _input_of(state: ArcEnvState) -> np.ndarray | None:
    """Find the pair that is played by its target; the state does not say whether it is a demonstration or a test."""
    if state.task_data is None:
        return None
    target = np.asarray(state.target_grid)
    sources = [source for _, source, goal in task_pairs(state.task_data) if np.array_equal(goal, target)]
    return sources[0] if len(sources) == 1 else None


def _active(grid: np.ndarray) -> np.ndarray:
    height, width = _extent([grid])
    return grid[:height, :width]


def _extent(grids: Sequence[np.ndarray]) -> tuple[int, int]:
    """Rows and columns that hold every cell of some grids, at least 1."""
    used = np.any([grid != PADDING for grid in grids], axis=0)
    last = lambda line: int(np.flatnonzero(line).max(initial=0)) + 1
    return last(used.any(axis=1)), last(used.any(axis=0))


_BORDER: Final = 12  # pixels


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
        last_ms: milliseconds that the last one is.
        palette: the ten colors.

    Raises:
        ValueError: there is no frame.
    """
    images = [draw_frame(pixels, frame, cell_size, palette) for frame in frames]
    return join_frames(images, [frame_ms] * (len(images) - 1) + [last_ms])


def join_frames(images: Sequence[Image.Image], durations_ms: Sequence[int]) -> bytes:
    """Put images into one GIF, each in the top left of a ground that holds the largest.

    Raises:
        ValueError: there is no image, or not a duration for each.
    """
    if not images or len(images) != len(durations_ms):
        raise ValueError(
            f"an animation has images and a duration for each, got {len(images)} and {len(durations_ms)}; bring both"
        )
    size = max(image.width for image in images) + 2 * _BORDER, max(image.height for image in images) + 2 * _BORDER
    frames = []
    for image in images:
        frame = Image.new("RGB", size, pixels.GROUND)
        frame.paste(image, (_BORDER, _BORDER))
        frames.append(frame)
    file = BytesIO()
    frames[0].save(
        file, "GIF", save_all=True, append_images=frames[1:], duration=list(durations_ms), loop=0, optimize=True
    )
    return file.getvalue()


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
