"""Shift rows and columns until the field looks like the template beside it."""

import jax
import jax.numpy as jnp

from jaxarc.games import CLICK, Action, Board, Color, GridGame, LevelEvent, bits, read_levels
from jaxarc.types import PRNGKey

ARROWS = {"up": bits.UP, "down": bits.DOWN, "left": bits.LEFT, "right": bits.RIGHT}
COLORS = ("red", "blue", "yellow")
ALL_ARROWS = 3  # a level with arrows on all four sides
OFFSET = 6  # columns from a cell of the template to its cell of the field


def shifted(board: Board, cell: bits.Mask) -> dict[str, bits.Mask]:
    """Return the colors after a click: the line before a clicked arrow moves by a cell, its last one to its start."""
    changes = {name: board[name] for name in COLORS}
    for arrow, direction in ARROWS.items():
        pressed = cell & board[arrow]
        line = bits.ray(pressed, board["field"], direction)
        first = bits.shift(pressed, direction) & line
        last = line & ~bits.shift(line, bits.opposite(direction))
        for name, mask in changes.items():
            moved = (bits.shift(mask & line, direction) & line) | bits.where(bits.some(mask & last), first)
            changes[name] = (mask & ~line) | moved
    return changes


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    after = board.set(**shifted(board, action.cell))
    wrong = jnp.zeros_like(board.inside)
    for name in COLORS:
        wrong |= (after[name] ^ bits.right(after[name] & after["template"], OFFSET)) & after["field"]
    return after, LevelEvent(won=~bits.some(wrong))


def generate(key: PRNGKey, difficulty: jax.Array) -> Board:
    """Color a template at random, and press 1 + difficulty arrows of other lines (all six at most).

    The opposite arrows solve it.
    """
    height, width = GAME.shape
    key_color, key_arrow = jax.random.split(key)
    board = GAME.board(ALL_ARROWS)
    template, field = board["template"], board["field"]
    colors = jax.random.randint(key_color, (height, width), 0, len(COLORS))
    masks = {name: bits.from_bool(colors == index) & template for index, name in enumerate(COLORS)}
    board = board.set(**{name: mask | (bits.right(mask, OFFSET) & field) for name, mask in masks.items()})
    arrows = bits.to_bool(board["right"] | board["down"], width).ravel()
    # Six arrows, two of which are never opposite, sort before all other cells, in random order.
    places = jnp.argsort(jnp.where(arrows, jax.random.uniform(key_arrow, arrows.shape), 2.0))

    def press(index: int, board: Board) -> Board:
        cell = bits.cell(places[index] // width, places[index] % width, height)
        return board.set(**shifted(board, bits.where(index <= difficulty, cell)))

    return jax.lax.fori_loop(0, len(LEVELS), press, board)


LEVELS = read_levels("""
    2           3           4           5           6           7            8            9
    ......vvv.  ......vvv.  ......vvv.  ......vvv.  ......vvv.  ......vvvv.  ......vvvv.  ...........
    RRR..>rrb.  RYY..>rbb.  YRY..>brb<  YYY..>bbr<  BBB..>yby.  BBBB.>rrbb.  RRRR.>brbb.  RRRR.>bbbb.
    BBB..>bbr.  YBR..>yby.  RBY..>byy<  RRR..>yyr<  RRR..>rbr.  BRRB.>rbrr.  BBBB.>rrrr.  RBBR.>rrrb.
    BRB..>brb.  RBB..>ryr.  RBB..>yrr<  RBB..>ryr<  YYY..>ryb.  RRRR.>rbrb.  BRRB.>rrbb.  BBBB.>rrbb.
    ..........  ..........  ......^^^.  ......^^^.  ..........  BRRB.>bbbr.  RRRR.>rbrr.  RBBR.>rbrr.
                                                                ...........  ...........  ......^^^^.
""")

GAME = GridGame(
    name="shifts",
    about="Make the field like the template; a click on an arrow shifts the row or column before it.",
    layers={"template": Color.BLACK, "field": Color.BLACK, **dict.fromkeys(ARROWS, Color.SILVER),
            "red": Color.RED, "blue": Color.BLUE, "yellow": Color.YELLOW},
    letters={"^": ("up",), "v": ("down",), "<": ("left",), ">": ("right",),
             "R": ("template", "red"), "B": ("template", "blue"), "Y": ("template", "yellow"),
             "r": ("field", "red"), "b": ("field", "blue"), "y": ("field", "yellow")},
    actions=(CLICK,),
    rule=rule,
    levels=LEVELS,
    generate=generate,
)  # fmt: skip
