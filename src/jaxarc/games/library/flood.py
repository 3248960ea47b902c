"""Give the whole grid one color: the corner's region takes the color that is clicked."""

import jax
import jax.numpy as jnp

from jaxarc.games import CLICK, Action, Board, Color, GridGame, LevelEvent, bits, read_levels
from jaxarc.types import PRNGKey

COLORS = ("red", "yellow", "green", "blue")


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    corner = bits.cell(jnp.int32(0), jnp.int32(0), board.inside.shape[0])
    own = jnp.zeros_like(corner)
    for name in COLORS:
        own |= bits.where(bits.some(board[name] & corner), board[name])
    region = bits.flood(corner, own)
    is_new = bits.some(action.cell & ~own)
    changes = {}
    for name in COLORS:
        chosen = bits.some(board[name] & action.cell)
        recolored = (board[name] & ~region) | bits.where(chosen, region)
        changes[name] = jnp.where(is_new, recolored, board[name])
    won = jnp.bool_(False)
    for name in COLORS:
        won |= bits.same(changes[name], board.inside)
    return board.set(**changes), LevelEvent(won=won)


def generate(key: PRNGKey, difficulty: jax.Array) -> Board:
    """Color a square at random whose side grows with the difficulty; every one can be solved."""
    height, width = GAME.shape
    side = jnp.minimum(3 + difficulty // 2, min(height, width))
    row = jnp.left_shift(jnp.uint32(1), side.astype(jnp.uint32)) - 1
    inside = jnp.where(jnp.arange(height) < side, row, jnp.uint32(0))
    colors = jax.random.randint(key, (height, width), 0, len(COLORS))
    # Two corners differ, so that no level is solved at its start.
    colors = colors.at[0, 1].set((colors[0, 0] + 1) % len(COLORS))
    return Board({name: bits.from_bool(colors == i) & inside for i, name in enumerate(COLORS)}, {}, inside)


LEVELS = read_levels("""
    3/6  4/7   4/7   5/8    6/9    8/11    8/11    10/13
    gyy  yrrg  ryyr  ggyrb  ybbbg  yygyyy  bybyby  rbgyrbg
    gry  rrrr  byrr  brrgb  bbyyr  ggbryr  grrggb  yyryrbb
    yyg  gggy  brgr  rgygr  gggry  brrybg  ggrryg  gggrbgg
         ggyg  yrgg  ygrrr  gybgb  bybggr  rygyyg  ggybyry
                     ygggr  rrrry  ybgrbb  ggbgbg  bgbrbyr
                                   rbgbyg  yrgrrb  gyygbry
                                                   ygybrby
""")

GAME = GridGame(
    name="flood",
    about="Make the grid one color; the region of the top-left corner takes the color that you click.",
    layers={"red": Color.RED, "yellow": Color.YELLOW, "green": Color.GREEN, "blue": Color.BLUE},
    letters={"r": ("red",), "y": ("yellow",), "g": ("green",), "b": ("blue",)},
    actions=(CLICK,),
    rule=rule,
    levels=LEVELS,
    generate=generate,
)
