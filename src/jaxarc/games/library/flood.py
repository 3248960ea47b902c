"""Give the whole grid one color: the corner's region takes the color that is clicked."""

import jax
import jax.numpy as jnp

from jaxarc.games import bits
from jaxarc.games.game import BLUE, CLICK, GREEN, RED, YELLOW, Action, Board, GridGame, Level, LevelEvent
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


LEVELS = (
    Level(3, """
        gyy
        gry
        yyg
    """, budget=6),
    Level(4, """
        yrrg
        rrrr
        gggy
        ggyg
    """, budget=7),
    Level(4, """
        ryyr
        byrr
        brgr
        yrgg
    """, budget=7),
    Level(5, """
        ggyrb
        brrgb
        rgygr
        ygrrr
        ygggr
    """, budget=8),
    Level(6, """
        ybbbg
        bbyyr
        gggry
        gybgb
        rrrry
    """, budget=9),
    Level(8, """
        yygyyy
        ggbryr
        brrybg
        bybggr
        ybgrbb
        rbgbyg
    """, budget=11),
    Level(8, """
        bybyby
        grrggb
        ggrryg
        rygyyg
        ggbgbg
        yrgrrb
    """, budget=11),
    Level(10, """
        rbgyrbg
        yyryrbb
        gggrbgg
        ggybyry
        bgbrbyr
        gyygbry
        ygybrby
    """, budget=13),
)  # fmt: skip

GAME = GridGame(
    name="flood",
    about="Make the grid one color; the region of the top-left corner takes the color that you click.",
    layers={"red": RED, "yellow": YELLOW, "green": GREEN, "blue": BLUE},
    letters={"r": ("red",), "y": ("yellow",), "g": ("green",), "b": ("blue",)},
    actions=(CLICK,),
    rule=rule,
    levels=LEVELS,
    generate=generate,
)
