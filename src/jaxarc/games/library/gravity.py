"""Walk along floors, fall off their ends, and turn gravity over."""

import jax.numpy as jnp

from jaxarc.games import bits
from jaxarc.games.game import ACT, GREEN, RED, SKY, STEEL, YELLOW, Action, Board, GridGame, Level, LevelEvent


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
    things = [("wall", STEEL), ("spike", RED), ("goal", GREEN)]
    masks = [(board[name], color) for name, color in things]
    falls_up = bits.where(board["is_up"] == 1, board["player"])
    return [*masks, (board["player"], YELLOW), (falls_up, SKY)]


LEVELS = (
    Level(3, """
        ########
        ###.##.#
        #..G...#
        #P.....#
        ##.....#
        ########
    """),
    Level(4, """
        ########
        #...#..#
        #G.....#
        ##.....#
        #..P...#
        ########
    """),
    Level(5, """
        #########
        #xG....x#
        #..##..##
        ##..###.#
        #.#.x...#
        ##....P.#
        #########
    """),
    Level(6, """
        #########
        #....#..#
        #....#.G#
        #..#....#
        ##.....##
        #..P....#
        #########
    """),
    Level(7, """
        ##########
        #..#.#...#
        #.x....x.#
        #.#...#P.#
        #..#...#.#
        #...#.G#.#
        #.#..#..##
        ##########
    """),
    Level(8, """
        ##########
        ##..#...##
        ##...#...#
        #..#.....#
        #G.......#
        #..#....##
        #.##..P..#
        ##########
    """),
    Level(10, """
        ###########
        #x....#xx.#
        #.#.....###
        #.....#...#
        ##...##P..#
        ##..#..#.x#
        #G...#.x.##
        #.##......#
        ###########
    """),
    Level(13, """
        ###########
        ##........#
        #.........#
        #...#xx#..#
        ###.x..#..#
        ##....#.x.#
        #......G..#
        #......#.P#
        ###########
    """),
)  # fmt: skip

GAME = GridGame(
    name="gravity",
    about="Touch the goal; you walk left and right, fall until a floor holds you, and action 5 turns gravity over.",
    layers={"wall": STEEL, "spike": RED, "goal": GREEN, "player": YELLOW},
    letters={"#": ("wall",), "x": ("spike",), "G": ("goal",), "P": ("player",)},
    actions=(bits.LEFT, bits.RIGHT, ACT),
    rule=rule,
    levels=LEVELS,
    single=("player", "goal"),
    counters={"is_up": 0},
    view=view,
)
