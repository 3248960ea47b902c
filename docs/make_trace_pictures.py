"""Draw the pictures of ``docs/experts.md``: traces, grid by grid, and what a look ahead sees.

Run ``python docs/make_trace_pictures.py`` after a change to the painter or to looking ahead; a test compares the files
with what is made now.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np

import jaxarc
from jaxarc import constants as c
from jaxarc.datasets import load_tasks
from jaxarc.envs.structured_actions import BboxAction, get_operation_name
from jaxarc.experts import Pair
from jaxarc.experts.expert import Action, ActionFormat
from jaxarc.experts.host_canvas import HostCanvas
from jaxarc.experts.lookahead import look_ahead, soft_choice
from jaxarc.experts.painter import Painter
from jaxarc.files import write_whole
from jaxarc.render.svg import Drawing, captioned, draw_arrow, draw_grid, hstack, vstack

FOLDER: Final = Path(__file__).parent / "images" / "experts"
DATASET: Final = "arc-agi-1/training"
TRACES: Final[dict[str, tuple[str, ActionFormat]]] = {  # name of the picture: task, of which the first pair, and format
    "trace-bbox": ("4258a5f9", "bbox"),
    "trace-mask": ("4258a5f9", "mask"),
    "trace-point": ("a5313dff", "point"),
}
CELL: Final = 11  # pixels
IN_A_ROW: Final = 5
TEMPERATURE: Final = 0.02
CANDIDATES: Final = (  # of the first pair of the first task
    (c.FILL + 1, 0, 5, 2, 7),
    (c.FILL + 1, 3, 2, 5, 4),
    (c.FILL + 1, 1, 5, 1, 7),
    (c.FLOOD_FILL + 1, 0, 0, 0, 0),
    (c.FLIP_LEFT_RIGHT, 0, 0, 8, 8),
    (c.SUBMIT, 0, 0, 0, 0),
)


def make_pictures() -> dict[str, str]:
    """Draw all: file names and their SVG."""
    pictures = {f"{name}.svg": _trace(task_id, action_format) for name, (task_id, action_format) in TRACES.items()}
    return {**pictures, "lookahead.svg": _lookahead()}


def _trace(task_id: str, action_format: ActionFormat) -> str:
    """The input, the grid after each edit, and the output that the submit hands in."""
    pair = _first_pair(task_id)
    canvas, drawings = HostCanvas(pair.input), [captioned(draw_grid(pair.input, None, CELL), "input")]
    for action in Painter().solve(pair, action_format):
        canvas.apply(action, action_format)
        used = None if canvas.is_submitted else _selected(action, action_format, canvas.grid.shape)
        drawn = captioned(draw_grid(canvas.grid, used, CELL), get_operation_name(action[0]))
        drawings.append(hstack([draw_arrow(), drawn]))
    rows = [hstack(drawings[start : start + IN_A_ROW], 10) for start in range(0, len(drawings), IN_A_ROW)]
    return vstack(rows, gap=10, centered=False).to_svg(
        f"The painter solves task {task_id} with {action_format} actions"
    )


def _selected(action: Action, action_format: ActionFormat, shape: tuple[int, ...]) -> np.ndarray:
    """The cells that an action names, as far as they are on the grid."""
    named = np.zeros((c.MAX_GRID_SIZE, c.MAX_GRID_SIZE), bool)
    if action_format == "bbox":
        _, top, left, bottom, right = action
        named[top : bottom + 1, left : right + 1] = True
    else:
        named[list(action[1::2]), list(action[2::2])] = True
    return named[: shape[0], : shape[1]]


def _lookahead() -> str:
    """Some candidates on an input: the grid after each, its similarity, and its share."""
    task_id, _ = TRACES["trace-bbox"]
    env, params = jaxarc.make(DATASET, selection_format="bbox", history_enabled=False)
    state, _ = env.reset(jax.random.key(0), params, _place_of(task_id), 0)
    actions = BboxAction(*jnp.array(CANDIDATES, jnp.int32).T)
    scores = jax.jit(look_ahead)(state, actions, params)
    shares = soft_choice(scores.score, scores.is_valid, TEMPERATURE)
    told = zip(CANDIDATES, scores.similarity.tolist(), shares.tolist(), strict=True)
    drawings = [_candidate(_first_pair(task_id), *one) for one in told]
    return hstack(drawings, 14).to_svg(f"Six candidate actions on the input of task {task_id}")


def _place_of(task_id: str) -> int:
    """Place of a task in its data set."""
    return [task.task_id for task in load_tasks(DATASET)].index(task_id)


def _candidate(pair: Pair, action: Action, similarity: float, share: float) -> Drawing:
    canvas = HostCanvas(pair.input)
    canvas.apply(action, "bbox")
    drawn = draw_grid(canvas.grid, _selected(action, "bbox", canvas.grid.shape), CELL)
    named = captioned(drawn, get_operation_name(action[0]))
    return captioned(captioned(named, f"similarity {similarity:.3f}"), f"share {share:.2f}")


def _first_pair(task_id: str) -> Pair:
    return Pair(*(np.asarray(grid, np.int8) for grid in load_tasks(DATASET).raw_task(task_id).train[0]))


def main() -> None:
    pictures: Sequence[tuple[str, str]] = list(make_pictures().items())
    for name, svg in pictures:
        write_whole(FOLDER / name, svg.encode())
    print(f"{len(pictures)} pictures, {sum(len(svg) for _, svg in pictures):,} bytes, in {FOLDER}")


if __name__ == "__main__":
    main()
