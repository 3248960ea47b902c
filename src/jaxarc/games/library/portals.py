"""Reach the goal through portals that belong together in pairs."""

import jax.numpy as jnp

from jaxarc.games import bits
from jaxarc.games.game import (
    BLUE,
    GREEN,
    MOVES,
    ORANGE,
    PURPLE,
    STEEL,
    YELLOW,
    Action,
    Board,
    GridGame,
    Level,
    LevelEvent,
)


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    start = board["player"]
    player = bits.walk(start, board.solid("wall"), action.number)
    moved = ~bits.same(player, start)
    for color in ("blue", "orange", "purple"):
        pair = board[color]
        player = jnp.where(moved & bits.some(player & pair), pair & ~player, player)
    return board.set(player=player), LevelEvent(won=bits.some(player & board["goal"]))


LEVELS = (
    Level(5, """
        ########
        #.P.#b.#
        #..b#..#
        #...#.G#
        #...#..#
        ########
    """),
    Level(5, """
        ########
        #.b.#..#
        #..G#.P#
        #...#..#
        #...#b.#
        ########
    """),
    Level(8, """
        #########
        #P...#.o#
        #...b#G.#
        #########
        #...o#..#
        #..b.#..#
        #########
    """),
    Level(8, """
        ###########
        #..b.#....#
        #P...#..o.#
        #....#..b.#
        ######...p#
        #.p.o######
        #....#....#
        #G...#....#
        ###########
    """),
    Level(9, """
        ##########
        #...b#..o#
        #.P..#G..#
        ######...#
        #..b.#####
        #o...#...#
        #....#...#
        ##########
    """),
    Level(9, """
        ##########
        #...b#..o#
        #.P..#G..#
        ######...#
        #..b.#####
        #o...#...#
        #....#...#
        ##########
    """),
    Level(9, """
        ###########
        #...p#...b#
        #..p.#....#
        #....#....#
        #....#P...#
        ###########
        #o.G.#....#
        #b...#o...#
        ###########
    """),
    Level(10, """
        ##########
        #op.#o...#
        #..P#..b.#
        #####....#
        #G..######
        #...#.p..#
        #..b#....#
        ##########
    """),
)  # fmt: skip

GAME = GridGame(
    name="portals",
    about="Reach the goal; who steps on a portal stands on the other one of its color.",
    layers={"wall": STEEL, "goal": GREEN, "blue": BLUE, "orange": ORANGE, "purple": PURPLE, "player": YELLOW},
    letters={"#": ("wall",), "P": ("player",), "G": ("goal",), "b": ("blue",), "o": ("orange",), "p": ("purple",)},
    actions=MOVES,
    rule=rule,
    levels=LEVELS,
    single=("player", "goal"),
)
