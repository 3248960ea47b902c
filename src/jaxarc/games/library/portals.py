"""Reach the goal through portals that belong together in pairs."""

import jax.numpy as jnp

from jaxarc.games import MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    start = board["player"]
    player = bits.walk(start, board.solid("wall"), action.number)
    moved = ~bits.same(player, start)
    for color in ("blue", "orange", "purple"):
        pair = board[color]
        player = jnp.where(moved & bits.some(player & pair), pair & ~player, player)
    return board.set(player=player), LevelEvent(won=bits.some(player & board["goal"]))


LEVELS = read_levels("""
    5         5         8          8            9           9            9            10
    ########  ########  #########  ###########  ##########  ###########  ###########  ##########
    #.P.#b.#  #.b.#..#  #P...#.o#  #..b.#....#  #...b#..o#  #P..o#...b#  #...p#...b#  #op.#o...#
    #..b#..#  #..G#.P#  #...b#G.#  #P...#..o.#  #.P..#G..#  #....#.o..#  #..p.#....#  #..P#..b.#
    #...#.G#  #...#..#  #########  #....#..b.#  ######...#  #....#....#  #....#....#  #####....#
    #...#..#  #...#b.#  #...o#..#  ######...p#  #..b.#####  ######....#  #....#P...#  #G..######
    ########  ########  #..b.#..#  #.p.o######  #o...#...#  #p.G.######  ###########  #...#.p..#
                        #########  #....#....#  #....#...#  #....#p...#  #o.G.#....#  #..b#....#
                                   #G...#....#  ##########  #....#b...#  #b...#o...#  ##########
                                   ###########              ###########  ###########
""")

GAME = GridGame(
    name="portals",
    about="Reach the goal; who steps on a portal stands on the other one of its color.",
    layers={
        "wall": Color.STEEL,
        "goal": Color.GREEN,
        "blue": Color.BLUE,
        "orange": Color.ORANGE,
        "purple": Color.PURPLE,
        "player": Color.YELLOW,
    },
    letters={"#": ("wall",), "P": ("player",), "G": ("goal",), "b": ("blue",), "o": ("orange",), "p": ("purple",)},
    actions=MOVES,
    rule=rule,
    levels=LEVELS,
    single=("player", "goal"),
)
