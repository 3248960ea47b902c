"""Switch every lamp off; a click switches a lamp and its neighbors."""

import jax
import jax.numpy as jnp

from jaxarc.games import CLICK, Action, Board, Color, GridGame, LevelEvent, bits, read_levels
from jaxarc.types import PRNGKey


def press(on: bits.Mask, lamps: bits.Mask, cell: bits.Mask) -> bits.Mask:
    """Switch a clicked lamp and the lamps beside it; a cell without a lamp does nothing."""
    cell = cell & lamps
    return on ^ ((cell | bits.neighbors(cell)) & lamps)


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    on = press(board["on"], board["lamp"], action.cell)
    return board.set(on=on), LevelEvent(won=~bits.some(on))


def generate(key: PRNGKey, difficulty: jax.Array) -> Board:
    """Press 2 + difficulty random cells of a whole field, all lamps off before; a press undoes itself."""
    height, width = GAME.shape
    inside = jnp.full(height, (1 << width) - 1, jnp.uint32)
    # Distinct cells, or two presses would cancel out.
    cells = jax.random.permutation(key, height * width)

    def pressed(index: int, on: bits.Mask) -> bits.Mask:
        cell = bits.cell(cells[index] // width, cells[index] % width, height)
        return press(on, inside, bits.where(index < 2 + difficulty, cell))

    on = jax.lax.fori_loop(0, 2 + len(LEVELS), pressed, jnp.zeros_like(inside))
    return Board({"lamp": inside, "on": on}, {}, inside)


LEVELS = read_levels("""
    2    3    3     3     4     4      5      5
    LLL  LLX  LLXX  LXLX  LXXX  LLLLL  ..XX.  ..XLX
    XLX  LXL  XXLL  XX.X  XXLL  LXLLL  .XXLX  XL.LX
    XLX  XLL  XXXX  LXXX  LLLL  LXXLX  XXXLL  XXLLL
              XLLL  .XX.  LLXX  XLLXL  XLLX.  LXX.L
                                XLLXL  XL.LL  LLLLL
""")

GAME = GridGame(
    name="lamps",
    about="Switch every lamp off; a click switches a lamp and the lamps beside it.",
    layers={"lamp": Color.MAROON, "on": Color.YELLOW},
    letters={"L": ("lamp",), "X": ("lamp", "on")},
    actions=(CLICK,),
    rule=rule,
    levels=LEVELS,
    needed=("on",),
    background=Color.STEEL,
    generate=generate,
)  # fmt: skip
