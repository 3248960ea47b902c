"""How tasks and single steps are laid out as pictures, in SVG or in pixels alike; works without JAX."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Int8

from jaxarc.constants import PADDING
from jaxarc.render.palette import ARC_COLORS, Palette
from jaxarc.tasks.raw_task import RawTask

if TYPE_CHECKING:
    from jaxarc.types import JaxArcTask

CELL: Final = 12  # pixels
_IN_A_ROW: Final = 4  # pairs of a task


class Renderer(Protocol):
    """A module that draws: :mod:`jaxarc.render.svg` makes drawings, :mod:`jaxarc.render.pixels` images."""

    def draw_grid(
        self, grid: Any, selection: Any = None, cell_size: int = ..., show_numbers: bool = ..., palette: Palette = ...
    ) -> Any: ...

    def draw_difference(self, grid: Any, target: Any, cell_size: int = ..., palette: Palette = ...) -> Any: ...

    def draw_text(self, text: str, size: int = ...) -> Any: ...

    def draw_arrow(self, length: int = ...) -> Any: ...

    def hstack(self, drawings: Sequence[Any], gap: int = ...) -> Any: ...

    def vstack(self, drawings: Sequence[Any], gap: int = ..., centered: bool = ...) -> Any: ...

    def padded(self, drawing: Any, margin: int) -> Any: ...

    def captioned(self, drawing: Any, caption: str, size: int = ...) -> Any: ...


class Frame(NamedTuple):
    """One step of an episode as a picture shows it; all grids are of one canvas."""

    grid: Int8[np.ndarray, "H W"]  # -1 outside the active area
    target: Int8[np.ndarray, "H W"]
    caption: str
    selection: Bool[np.ndarray, "H W"] | None = None
    input: Int8[np.ndarray, "H W"] | None = None
    clipboard: Int8[np.ndarray, "H W"] | None = None  # -1 where the clipboard is empty


def draw_pairs(
    renderer: Renderer,
    named_pairs: Iterable[tuple[str, np.ndarray, np.ndarray]],
    title: str = "",
    cell_size: int = CELL,
    palette: Palette = ARC_COLORS,
) -> Any:
    """Draw pairs, each a name, an input and an output, below a title."""
    pairs = [
        renderer.captioned(
            renderer.hstack(
                [
                    renderer.draw_grid(active_area(source), None, cell_size, palette=palette),
                    renderer.draw_arrow(),
                    renderer.draw_grid(active_area(target), None, cell_size, palette=palette)
                    if (target != PADDING).any()
                    else renderer.draw_text("?", 20),  # an unknown answer
                ]
            ),
            name,
        )
        for name, source, target in named_pairs
    ]
    # A few pairs beside each other, then the next row: a task with 10 pairs does not become a ribbon.
    rows = [renderer.hstack(pairs[at : at + _IN_A_ROW], 24) for at in range(0, len(pairs), _IN_A_ROW)]
    return renderer.vstack([*([renderer.draw_text(title, 14)] if title else []), *rows], 14, centered=False)


def draw_frame(renderer: Renderer, frame: Frame, cell_size: int = CELL, palette: Palette = ARC_COLORS) -> Any:
    """Draw a frame: its input if it has one, working grid, target, difference, and the clipboard unless it is empty."""
    # Grid and target are cut to the same size, so that they and their difference can be compared cell by cell.
    height, width = extent_of([frame.grid, frame.target])
    cut = np.s_[:height, :width]
    draw = lambda grid, marked=None: renderer.draw_grid(grid, marked, cell_size, palette=palette)
    marked = None if frame.selection is None or not frame.selection[cut].any() else frame.selection[cut]
    captioned = lambda drawing, caption: renderer.captioned(drawing, caption, 13)
    parts = [captioned(draw(active_area(frame.input)), "input")] if frame.input is not None else []
    parts.append(captioned(draw(frame.grid[cut], marked), "working grid"))
    parts.append(captioned(draw(frame.target[cut]), "target"))
    difference = renderer.draw_difference(frame.grid[cut], frame.target[cut], cell_size, palette)
    parts.append(captioned(difference, "difference"))
    if frame.clipboard is not None and (frame.clipboard != PADDING).any():
        parts.append(captioned(draw(active_area(frame.clipboard)), "clipboard"))
    return renderer.vstack([renderer.hstack(parts, 14), renderer.draw_text(frame.caption, 14)], 6, centered=False)


def task_pairs(task: "JaxArcTask | RawTask") -> Iterator[tuple[str, Int8[np.ndarray, "H W"], Int8[np.ndarray, "H W"]]]:
    """Yield every pair of a task with its name, such as ``train 0``: name, input and output, padded as in the task."""
    if isinstance(task, RawTask):
        for split, raw_pairs in (("train", task.train), ("test", task.test)):
            yield from ((f"{split} {index}", *pair) for index, pair in enumerate(raw_pairs))
        return
    from jaxarc.types import JaxArcTask  # JAX, which a task in a file does without

    if not isinstance(task, JaxArcTask):
        raise TypeError(
            f"a RawTask or a JaxArcTask was expected, got {type(task).__name__}; see TaskSet.get_task_by_id"
        )
    # Slots behind the count are padding, so only the first ``count`` of each array are pairs.
    splits = (
        ("train", task.num_train_pairs, task.input_grids_examples, task.output_grids_examples),
        ("test", task.num_test_pairs, task.test_input_grids, task.true_test_output_grids),
    )
    for split, count, inputs, outputs in splits:
        for index in range(int(count)):
            yield f"{split} {index}", np.asarray(inputs[index]), np.asarray(outputs[index])


def active_area(grid: Int8[np.ndarray, "H W"]) -> Int8[np.ndarray, "h w"]:
    """Cut a grid, or a clipboard with holes, to the rows and columns that hold cells; an empty one keeps one cell."""
    height, width = extent_of([grid])
    return grid[:height, :width]


def extent_of(grids: Sequence[Int8[np.ndarray, "H W"]]) -> tuple[int, int]:
    """Return how many rows and columns hold all cells of some grids, 1 or more."""
    # The largest index with a cell, plus 1: cells in rows 0 and 2 need 3 rows. An empty grid keeps one.
    used = np.any([grid != PADDING for grid in grids], axis=0)
    rows = np.flatnonzero(used.any(axis=1))
    columns = np.flatnonzero(used.any(axis=0))
    return int(rows.max(initial=0)) + 1, int(columns.max(initial=0)) + 1
