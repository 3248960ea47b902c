"""Bring two avatars home at once: the second goes left where the first goes right."""

import jax.numpy as jnp

from jaxarc.games import MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    wall = board.solid("wall")
    sideways = action.number >= bits.LEFT
    other_way = jnp.where(sideways, bits.opposite(action.number), action.number)
    player = bits.walk(board["player"], wall, action.number)
    twin = bits.walk(board["twin"], wall, other_way)
    won = bits.some(player & board["home"]) & bits.some(twin & board["twin_home"])
    return board.set(player=player, twin=twin), LevelEvent(won=won)


LEVELS = read_levels("""
    5         9          10         10          14          17           18           20
    ########  #########  #########  ##########  ##########  ###########  ###########  ###########
    #.##.T.#  #.....#.#  #P......#  #...#.P..#  #........#  #P........#  #.P..#..#.#  ##.T.....H#
    #..#...#  #PHK..#.#  #..H.K..#  ##..H....#  #........#  #...K#....#  #.K##.....#  #.......#K#
    #......#  #..#...##  ###.##..#  #..T.....#  #.....T..#  #.##....###  #.........#  #.....#...#
    #.#K.P.#  #.......#  #.......#  ##K......#  #....#..P#  #..#....#.#  #.........#  #.........#
    #..#..H#  #....##.#  #.T..#..#  #........#  #.#..#...#  #.......###  ##...#.H..#  #........##
    ########  #T......#  #########  #.......##  #...H.#..#  #H..#.....#  ###..#....#  #.......#.#
              #########             ##########  ##..K#...#  #....#...T#  ##....#.#.#  #..#P#...##
                                                ##########  ###########  #....T.##.#  #..#..#.###
                                                                         ###########  ###########
""")

GAME = GridGame(
    name="twins",
    about="Bring both avatars home at the same time; the second goes left where the first goes right.",
    layers={
        "wall": Color.STEEL,
        "home": Color.RED,
        "twin_home": Color.GREEN,
        "player": Color.SKY,
        "twin": Color.PURPLE,
    },
    letters={"#": ("wall",), "P": ("player",), "T": ("twin",), "H": ("home",), "K": ("twin_home",)},
    actions=MOVES,
    rule=rule,
    levels=LEVELS,
    single=("player", "twin", "home", "twin_home"),
)
