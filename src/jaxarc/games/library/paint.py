"""Paint exactly the marked cells."""

import jax.numpy as jnp

from jaxarc.games import ACT, MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    player = bits.walk(board["player"], board.solid("wall"), action.number)
    pen = jnp.where(action.number == ACT, 1 - board["pen"], board["pen"])
    paint = board["paint"] | bits.where(pen == 1, player)
    return board.set(player=player, pen=pen, paint=paint), LevelEvent(won=bits.same(paint, board["mark"]))


def view(board: Board) -> list[tuple[bits.Mask, int]]:
    paint, mark, player = board["paint"], board["mark"], board["player"]
    painting = bits.where(board["pen"] == 1, player)
    return [(board["wall"], Color.STEEL), (mark, Color.MAROON), (paint, Color.RED), (paint & mark, Color.GREEN),
            (player, Color.SILVER), (painting, Color.WHITE)]  # fmt: skip


LEVELS = read_levels("""
    3      5       7       7       7        8        9        10
    #####  ######  ######  ######  #######  #######  #######  #######
    #P.m#  #mm..#  #..m.#  ##mm##  #mm...#  #.mm.##  #...P.#  #P.mmm#
    #####  #m...#  ##.m.#  #.#Pm#  #m#...#  #.mm..#  #..m#.#  #.#m.m#
           #.P..#  #Pm..#  #..###  ##...##  #.Pm.##  ###mmm#  #...mm#
           ######  ######  ######  #..P#.#  #.mm..#  #..mmm#  #.....#
                                   #######  #######  #######  #######
""")

GAME = GridGame(
    name="paint",
    about="Paint the marked cells and no others; action 5 puts the pen down and lifts it, and paint stays.",
    layers={"wall": Color.STEEL, "mark": Color.MAROON, "paint": Color.RED, "player": Color.SILVER},
    letters={"#": ("wall",), "P": ("player",), "m": ("mark",)},
    actions=(*MOVES, ACT),
    rule=rule,
    levels=LEVELS,
    single=("player",),
    needed=("mark",),
    counters={"pen": 0},
    view=view,
)
