"""Reach the goal past guards that walk to and fro."""

import jax.numpy as jnp

from jaxarc.games import ACT, MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels

WAYS = (("up", "down", bits.up, bits.down), ("left", "right", bits.left, bits.right))


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    wall = board.solid("wall")
    player = bits.walk(board["player"], wall, action.number)
    guards = jnp.zeros_like(wall)
    crossed = jnp.bool_(False)
    changes = {"player": player}
    for one, other, move, back in WAYS:
        # A guard before a wall turns around and stays for this action.
        forth, along = board[one], board[other]
        ahead, behind = move(forth) & ~wall, back(along) & ~wall
        changes[one] = ahead | (along & ~move(behind))
        changes[other] = behind | (forth & ~back(ahead))
        # Player and guard may not change places, either.
        crossed |= bits.some(move(board["player"]) & player & along & move(behind))
        crossed |= bits.some(back(board["player"]) & player & forth & back(ahead))
        guards |= changes[one] | changes[other]
    caught = bits.some(player & guards) | crossed
    return board.set(**changes), LevelEvent(won=bits.some(player & board["goal"]) & ~caught, lost=caught)


LEVELS = read_levels("""
    5         6          8          8           8            8             9            10
    ########  #########  #########  ##########  ###########  ############  ###########  ##########
    #...#..#  #...P..^#  #..P#..<#  #....#.#.#  #..#.....^#  #....P.#...#  #...^..#P.#  #....^...#
    #.G....#  #.#v..#.#  #.......#  #.>#..#..#  #....v.G.^#  ##.^....<.^#  #.........#  #..>.....#
    #....>P#  #....#G.#  ###v.##.#  #^>##....#  #.....#...#  #...#..v.<.#  #.........#  #..^..>..#
    ##.....#  #..##...#  #....^..#  #.P.#...G#  #..>..##.##  #G.......#.#  #^.^...v..#  #........#
    ########  #########  ##....G.#  #....^#..#  ##.#......#  #.v.......<#  #......<..#  #P......G#
                         #########  ##########  ##.>.P...v#  #..........#  #.#<G.....#  #.^..#...#
                                                #.#.....^.#  #........<.#  ###########  ##########
                                                ###########  ############
""")

GAME = GridGame(
    name="patrol",
    about="Reach the goal and meet no guard; guards walk to and fro, and action 5 waits.",
    layers={"wall": Color.STEEL, "goal": Color.GREEN, "up": Color.RED, "down": Color.RED, "left": Color.MAROON,
            "right": Color.MAROON, "player": Color.YELLOW},
    letters={"#": ("wall",), "P": ("player",), "G": ("goal",), "^": ("up",), "v": ("down",), "<": ("left",),
             ">": ("right",)},
    actions=(*MOVES, ACT),
    rule=rule,
    levels=LEVELS,
    single=("player", "goal"),
)  # fmt: skip
