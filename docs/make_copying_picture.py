"""Draw the sources from which a trained model of transitions copies each cell, for six actions on one grid.

Run ``python docs/make_copying_picture.py RUN`` with a run of ``jaxarc train surrogate=lookahead
surrogate.model=transition``. The grids are predictions, not the environment's.
"""

import sys
from pathlib import Path
from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxarc import constants as c
from jaxarc.cli.settings import read_any_experiment
from jaxarc.envs import BboxAction
from jaxarc.envs.structured_actions import get_operation_name
from jaxarc.render.svg import Drawing, captioned, draw_arrow, draw_grid, hstack, vstack
from jaxarc.runs import open_run_folder
from jaxarc.surrogate import TransitionModel
from jaxarc.surrogate.candidates import describe_boxes
from jaxarc.training.surrogates import SurrogateExperiment, make_tasks
from jaxarc.training.surrogates.evaluate import load_models

FILE: Final = Path(__file__).parent / "images" / "copying.svg"
SIDE: Final = 24
GRID: Final = np.array(
    [[8, 8, 8, 8, 8, 8], [8, 1, 2, 0, 0, 8], [8, 8, 8, 8, 0, 8], [3, 3, 0, 0, 0, 8], [4, 0, 3, 8, 8, 8]]
)
CLIPBOARD: Final = np.array([[6, 7], [7, 6]])
# In the order of the network's sources: the cell itself, the neighbors below, above, to the right and to the left, the
# mirrored places, the turned ones, clipboard, input, action's color, black, outside of the grid.
SYMBOLS: Final = ("", "↓", "↑", "→", "←", "↔", "↕", "↻", "↺", "c", "i", "●", "0", "–")
ACTIONS: Final = (
    (c.FLOOD_FILL + 5, (1, 3, 1, 3)),
    (c.MOVE_RIGHT, (3, 0, 4, 2)),
    (c.ROTATE_CLOCKWISE, (3, 0, 4, 1)),
    (c.FLIP_LEFT_RIGHT, (1, 1, 1, 4)),
    (c.PASTE, (3, 3, 3, 3)),
    (c.CLEAR, (3, 0, 4, 2)),
)


def main(run: str) -> None:
    folder = open_run_folder(Path(run))
    experiment = read_any_experiment([], folder.config)
    assert isinstance(experiment, SurrogateExperiment)
    model = load_models(folder, make_tasks(experiment))["transition"]
    drawings = [hstack(prediction(model, operation, box), 4) for operation, box in ACTIONS]
    rows = [hstack(drawings[first : first + 2], 30) for first in range(0, len(drawings), 2)]
    FILE.write_text(vstack(rows, 10, centered=False).to_svg("where a model of transitions copies each cell from"))


def prediction(model: TransitionModel, operation: int, box: tuple[int, int, int, int]) -> list[Drawing]:
    """Draw the grid with the box of an action, an arrow, and the predicted grid with the likeliest sources."""
    clipboard = np.full_like(GRID, c.PADDING)
    clipboard[:2, :2] = CLIPBOARD
    data = np.stack([GRID, GRID, GRID, clipboard], axis=-1).astype(np.float32)
    action = BboxAction(*(jnp.int32(number) for number in (operation, *box)))
    height, width = GRID.shape
    described = describe_boxes(action, jnp.bool_(True), (height, width))
    copied = eqx.filter_jit(model.network)(jnp.asarray(data), described).grid
    predicted = np.asarray(jnp.argmax(copied.logits(), axis=-1)) + c.PADDING
    sources = np.asarray(jnp.argmax(copied.shares, axis=-1))
    selection = np.zeros(GRID.shape, np.bool_)
    selection[box[0] : box[2] + 1, box[1] : box[3] + 1] = True
    before = captioned(draw_grid(GRID, selection, SIDE), get_operation_name(operation))
    return [before, draw_arrow(), captioned(with_symbols(draw_grid(predicted, None, SIDE), sources), "predicted")]


def with_symbols(drawing: Drawing, sources: np.ndarray) -> Drawing:
    """Write the symbol of each cell's source into a drawing of a grid."""
    margin = (drawing.width - sources.shape[1] * SIDE) / 2
    texts = [
        f"<text x='{margin + (column + 0.5) * SIDE}' y='{margin + (row + 0.72) * SIDE}' text-anchor='middle' "
        f"font-size='15' font-family='sans-serif' fill='#ffffff' stroke='#000000' stroke-width='2.5' "
        f"paint-order='stroke'>{SYMBOLS[source]}</text>"
        for (row, column), source in np.ndenumerate(sources)
        if SYMBOLS[source]
    ]
    return drawing._replace(body="\n".join([drawing.body, *texts]))


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    main(sys.argv[1])
