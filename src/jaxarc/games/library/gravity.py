"""Walk along floors, fall off their ends, and turn gravity over."""

import jax.numpy as jnp

from jaxarc.games import ACT, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    wall = board.solid("wall")
    is_up = jnp.where(action.number == ACT, 1 - board["is_up"], board["is_up"])
    falls_to = jnp.where(is_up == 1, bits.UP, bits.DOWN)
    stepped = bits.walk(board["player"], wall, action.number)
    path = stepped | bits.ray(stepped, ~wall, falls_to)
    player = bits.slide(stepped, wall, falls_to)
    lost = bits.some(path & board["spike"])
    return board.set(player=player, is_up=is_up), LevelEvent(won=bits.some(path & board["goal"]) & ~lost, lost=lost)


def view(board: Board) -> list[tuple[bits.Mask, int]]:
    things = [("wall", Color.STEEL), ("spike", Color.RED), ("goal", Color.GREEN)]
    masks = [(board[name], color) for name, color in things]
    falls_up = bits.where(board["is_up"] == 1, board["player"])
    return [*masks, (board["player"], Color.YELLOW), (falls_up, Color.SKY)]


LEVELS = read_levels("""
    3         4         5          6          7           8           10           13
    ########  ########  #########  #########  ##########  ##########  ###########  ###########
    ###.##.#  #...#..#  #xG....x#  #....#..#  #..#.#...#  ##..#...##  #x....#xx.#  ##........#
    #..G...#  #G.....#  #..##..##  #....#.G#  #.x....x.#  ##...#...#  #.#.....###  #.........#
    #P.....#  ##.....#  ##..###.#  #..#....#  #.#...#P.#  #..#.....#  #.....#...#  #...#xx#..#
    ##.....#  #..P...#  #.#.x...#  ##.....##  #..#...#.#  #G.......#  ##...##P..#  ###.x..#..#
    ########  ########  ##....P.#  #..P....#  #...#.G#.#  #..#....##  ##..#..#.x#  ##....#.x.#
                        #########  #########  #.#..#..##  #.##..P..#  #G...#.x.##  #......G..#
                                              ##########  ##########  #.##......#  #......#.P#
                                                                      ###########  ###########
""")

GAME = GridGame(
    name="gravity",
    about="Touch the goal; you walk left and right, fall until a floor holds you, and action 5 turns gravity over.",
    layers={"wall": Color.STEEL, "spike": Color.RED, "goal": Color.GREEN, "player": Color.YELLOW},
    letters={"#": ("wall",), "x": ("spike",), "G": ("goal",), "P": ("player",)},
    actions=(bits.LEFT, bits.RIGHT, ACT),
    rule=rule,
    levels=LEVELS,
    single=("player", "goal"),
    counters={"is_up": 0},
    view=view,
)
