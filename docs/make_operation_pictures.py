"""Draw the pictures of ``docs/operations.md`` by playing every operation in the real environment.

Run ``python docs/make_operation_pictures.py`` after a change to an operation; a test compares the files with what the
environment does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from jaxarc.config import JaxArcConfig
from jaxarc.envs import ArcEnvState, BboxAction, MaskAction, PointAction, arc_reset, arc_step
from jaxarc.envs.structured_actions import get_operation_name
from jaxarc.files import write_whole
from jaxarc.render.svg import Drawing, captioned, draw_arrow, draw_grid, draw_text, hstack, vstack
from jaxarc.tasks import create_task
from jaxarc.types import Info, JaxArcTask

FOLDER = Path(__file__).parent / "images" / "operations"
HEIGHT, WIDTH = 6, 7  # the canvas of every picture
Cells = Sequence[tuple[int, int]]
WHOLE_IF_EMPTY = (*range(20, 28), 31)

TRAIN = JaxArcConfig().with_fields(
    max_grid_height=HEIGHT,
    max_grid_width=WIDTH,
    max_submissions=9,
    allow_demo_switching=True,
    allow_test_switching=True,
    demo_selection="first",
    invalid_action_policy="noop",
)
TEST = TRAIN.with_fields(mode="test")

MOTIF = [[0, 0, 0, 0, 0, 0], [0, 1, 2, 0, 0, 0], [0, 1, 3, 3, 0, 0], [0, 0, 0, 0, 0, 4], [5, 0, 0, 0, 4, 4]]
SHAPE = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]  # the cells of the motif that are not black and stand together
MAZE = [[8, 8, 8, 8, 8, 8], [8, 0, 0, 0, 0, 8], [8, 8, 8, 8, 0, 8], [0, 0, 0, 8, 0, 8], [8, 0, 8, 8, 0, 0]]
PALE = [[6, 6, 6, 6, 6, 6], [6, 1, 0, 6, 6, 6], [6, 2, 2, 6, 6, 6], [6, 6, 6, 6, 6, 6], [6, 6, 6, 6, 6, 6]]


@dataclass(frozen=True)
class Step:
    """An operation on a set of cells."""

    operation: int
    cells: Cells = ()

    def selection(self) -> np.ndarray:
        mask = np.zeros((HEIGHT, WIDTH), bool)
        for cell in self.cells:
            mask[cell] = True
        return mask


@dataclass(frozen=True)
class Played:
    """A state, the action taken on it, and what came of it."""

    before: ArcEnvState
    step: Step
    after: ArcEnvState
    reward: float
    info: Info


def box(r1: int, c1: int, r2: int, c2: int) -> Cells:
    """List the cells of a rectangle, corners included."""
    return [(row, column) for row in range(r1, r2 + 1) for column in range(c1, c2 + 1)]


def pairs_from(grid: Sequence[Sequence[int]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Three pairs: the grid and two small ones; each target is the input with its top-left cell red."""
    inputs = [np.array(grid), np.array([[0, 5, 5], [0, 5, 0], [0, 0, 0]]), np.array([[3, 0, 3, 0], [0, 3, 0, 3]])]
    targets = [other.copy() for other in inputs]
    for target in targets:
        target[0, 0] = 2
    return list(zip(inputs, targets, strict=True))


def task_from(grid: Sequence[Sequence[int]]) -> JaxArcTask:
    """Build a task whose demonstrations and tests are :func:`pairs_from` the grid."""
    return create_task(pairs_from(grid), pairs_from(grid), (HEIGHT, WIDTH))


def play(grid: Sequence[Sequence[int]], *steps: Step, config: JaxArcConfig = TRAIN) -> Played:
    """Start on the grid, take the steps, and return the last one."""
    state, _ = arc_reset(jax.random.key(0), config, task_from(grid))
    played = None
    for step in steps:
        action = MaskAction(step.operation, step.selection())
        after, _, reward, _, info = arc_step(state, action, config)
        played = Played(state, step, after, float(reward), info)
        state = after
    assert played is not None
    return played


def draw(state: ArcEnvState, selection: np.ndarray | None, caption: str, cell_size: int = 20) -> Drawing:
    """Draw the canvas of a state."""
    return captioned(draw_grid(np.asarray(state.working_grid), selection, cell_size, show_numbers=True), caption)


def before_and_after(played: Played, before: str = "before", after: str = "after") -> list[Drawing]:
    """Draw the grid with the selection that is used, an arrow, and the grid with the selection that is kept."""
    if not played.step.cells and played.step.operation in WHOLE_IF_EMPTY:
        before += ", nothing selected"
    first = draw(played.before, played.step.selection(), before)
    return [first, draw_arrow(), draw(played.after, np.asarray(played.after.selected), after)]


def clipboard_of(state: ArcEnvState) -> Drawing:
    """Draw the clipboard of a state."""
    return captioned(draw_grid(np.asarray(state.clipboard), cell_size=12, show_numbers=True), "clipboard")


def make_pictures() -> dict[str, str]:
    """Return every picture as SVG, by file name."""
    return {name: drawing.to_svg(title) for name, title, drawing in _pictures()}


def _pictures() -> Iterator[tuple[str, str, Drawing]]:
    yield "words.svg", "the words: canvas, active area, padding, selection, box", _words()
    yield "coordinates.svg", "the three kinds of action on a canvas", _coordinates()
    for first, name, grid, cells in (
        (0, "fill", MOTIF, [(1, 1), (1, 2), (2, 3)]),
        (10, "flood_fill", MAZE, [(1, 1)]),
    ):
        title = f"operations {first} to {first + 9}: {name.replace('_', ' ')}"
        yield f"{first:02d}_{name}.svg", title, _color_family(first, grid, cells)
    for operation, rows in _single_pictures().items():
        name = get_operation_name(operation)
        file = f"{operation}_{name.replace(' ', '_').replace('-', '_')}.svg"
        yield file, f"operation {operation}: {name}", vstack([hstack(row) for row in rows], 10, centered=False)
    yield "similarity.svg", "similarity of three grids with one target", _similarity()
    yield "start_grids.svg", "the four start grids", _start_grids()


def _color_family(first: int, grid: Sequence[Sequence[int]], cells: Cells) -> Drawing:
    """One grid before, and after each of the ten colors."""
    plays = [play(grid, Step(first + color, cells)) for color in range(10)]
    start = draw(plays[0].before, plays[0].step.selection(), "before")
    afters = [draw(p.after, np.asarray(p.after.selected), f"{p.step.operation}", cell_size=16) for p in plays]
    return hstack([start, draw_arrow(), vstack([hstack(afters[:5]), hstack(afters[5:])])])


def _single_pictures() -> dict[int, list[list[Drawing]]]:
    """Rows of drawings by operation id, 20..41."""
    one = lambda operation, cells=(), grid=MOTIF: before_and_after(play(grid, Step(operation, cells)))
    return {
        20: [one(20, SHAPE)],
        21: [one(21, SHAPE), one(21)],
        22: [one(22, SHAPE)],
        23: [one(23, SHAPE), one(23, [(3, 5), (4, 4), (4, 5)])],
        24: [one(24, box(1, 1, 2, 3)), one(24, box(0, 1, 2, 3)), one(24, box(3, 0, 4, 5))],
        25: [one(25, box(1, 1, 2, 3)), one(25, box(0, 1, 2, 3))],
        26: [one(26, box(1, 1, 2, 3)), one(26)],
        27: [one(27, box(1, 1, 2, 3)), one(27)],
        28: [_with_clipboards(play(PALE, Step(28, [(1, 1), (1, 2), (2, 2)])))],
        29: [
            _with_clipboards(play(PALE, Step(28, [(1, 1), (1, 2), (2, 2)]), Step(29, [(2, 3)]))),
            _with_clipboards(play(PALE, Step(28, box(1, 1, 2, 2)), Step(29, [(4, 5)]))),
        ],
        30: [_with_clipboards(play(PALE, Step(30, [(1, 1), (2, 1), (2, 2)])))],
        31: [one(31, SHAPE), one(31)],
        32: [before_and_after(play(MOTIF, Step(33, [(2, 3)]), Step(7, box(0, 0, 1, 1)), Step(32)))],
        33: [one(33, [(2, 4)]), one(33, [(5, 6)]), one(33, [(5, 1), (3, 3)])],
        34: [
            _submit(play(MOTIF, Step(2, [(0, 0)]), Step(34))),
            _submit(play(MOTIF, Step(34))),
        ],
        35: [_switch(play(MOTIF, Step(35)))],
        36: [_switch(play(MOTIF, Step(36)))],
        37: [_switch(play(MOTIF, Step(37), config=TEST))],
        38: [_switch(play(MOTIF, Step(38), config=TEST))],
        39: [_with_clipboards(play(MOTIF, Step(30, SHAPE), Step(33, [(5, 4)]), Step(39)))],
        40: [_switch(play(MOTIF, Step(2, [(0, 0)]), Step(34), Step(40)))],
        41: [_switch(play(MOTIF, Step(37), Step(41), config=TEST))],
    }


def _with_clipboards(played: Played) -> list[Drawing]:
    before, arrow, after = before_and_after(played)
    return [before, clipboard_of(played.before), arrow, after, clipboard_of(played.after)]


def _submit(played: Played) -> list[Drawing]:
    success, reward = bool(played.info["success"]), played.reward
    end = captioned(
        draw_text(f"{'solved' if success else 'not solved'}, reward {reward:+.2f}"),
        f"similarity {float(played.info['similarity']):.3g}",
    )
    target = captioned(draw_grid(np.asarray(played.before.target_grid), cell_size=12, show_numbers=True), "target")
    return [draw(played.before, None, "submitted"), target, draw_arrow(), end]


def _switch(played: Played) -> list[Drawing]:
    def name(state: ArcEnvState) -> str:
        pair = int(state.pair_index)
        return f"pair {pair}" + (" (solved)" if int(state.solved_pairs) >> pair & 1 else "")

    first, last = draw(played.before, None, name(played.before)), draw(played.after, None, name(played.after))
    return [first, draw_arrow(), last]


def _words() -> Drawing:
    played = play(MOTIF, Step(34, SHAPE))
    grid = draw_grid(np.asarray(played.before.working_grid), played.step.selection(), 26, show_numbers=True)
    lines = [
        f"canvas: {HEIGHT} rows, {WIDTH} columns, H x W",
        "solid line: the active area, 5 x 6",
        "gray: padding, -1",
        "dashed line: the selection, 5 cells",
        "its box: rows 1–2, columns 1–3",
    ]
    return hstack([grid, vstack([draw_text(line) for line in lines], centered=False)], gap=16)


def _coordinates() -> Drawing:
    nothing = np.full((HEIGHT, WIDTH), -1)
    nothing[:5, :6] = 0
    mask = Step(0, [(0, 5), (2, 2), (3, 2), (3, 3)]).selection()
    actions = {
        "point: row 1, column 4": PointAction(0, 1, 4),
        "box: rows 1–3, columns 2–4": BboxAction(0, 3, 4, 1, 2),
        "mask: any cells": MaskAction(0, mask),
    }
    shown = [
        captioned(draw_grid(nothing, np.asarray(action.to_selection_mask((HEIGHT, WIDTH)))), text)
        for text, action in actions.items()
    ]
    return hstack(shown, gap=16)


def _similarity() -> Drawing:
    """A target, and three grids with their similarity to it."""
    smaller = play(MOTIF, Step(33, [(2, 4)]))
    equal = play(MOTIF, Step(2, [(0, 0)]))
    nearly = play(MOTIF, Step(7, SHAPE))
    target = captioned(draw_grid(np.asarray(equal.after.target_grid), None, 14, show_numbers=True), "target")
    shown = [
        draw(played.after, None, f"{float(played.info['similarity']):.3f}", cell_size=14)
        for played in (equal, nearly, smaller)
    ]
    return hstack([target, *shown], gap=14)


def _start_grids() -> Drawing:
    shown = []
    for start in ("input", "empty", "random", "partial"):
        config = TRAIN.with_fields(start_grid=start, start_height=4, start_width=3, partial_probability=1.0)
        state, _ = arc_reset(jax.random.key(3), config, _halves())
        shown.append(draw(state, None, start, cell_size=14))
    target = captioned(draw_grid(np.asarray(state.target_grid), None, 14, show_numbers=True), "target")
    return hstack([*shown, target], gap=14)


def _halves() -> JaxArcTask:
    """A task whose target is the input turned and recolored."""
    source = np.array(MOTIF)
    target = np.array([[9, 9, 9, 9], [9, 8, 8, 9], [9, 8, 8, 9], [9, 9, 9, 9]])
    return create_task([(source, target)], [(source, target)], (HEIGHT, WIDTH))


def main() -> None:
    pictures = make_pictures()
    for name, svg in pictures.items():
        write_whole(FOLDER / name, svg.encode())
    print(f"{len(pictures)} pictures, {sum(map(len, pictures.values())):,} bytes, in {FOLDER}")


if __name__ == "__main__":
    main()
