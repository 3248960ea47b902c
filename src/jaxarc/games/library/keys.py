"""Open doors with keys of their color, and reach the goal."""

from jaxarc.games import bits
from jaxarc.games.game import (
    BLUE,
    GREEN,
    MAROON,
    MOVES,
    PURPLE,
    RED,
    STEEL,
    YELLOW,
    Action,
    Board,
    GridGame,
    Level,
    LevelEvent,
)


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    blocked = board.solid("wall")
    for color in ("red", "blue"):
        blocked = blocked | bits.where(board[color] == 0, board[f"{color}_door"])
    player = bits.walk(board["player"], blocked, action.number)
    changes = {"player": player}
    for color in ("red", "blue"):
        key, door = board[f"{color}_key"], board[f"{color}_door"]
        changes[color] = board[color] + bits.count(key & player) - bits.count(door & player)
        changes[f"{color}_key"] = key & ~player
        changes[f"{color}_door"] = door & ~player
    return board.set(**changes), LevelEvent(won=bits.some(player & board["goal"]))


LEVELS = (
    Level(7, """
        ########
        #..#...#
        #..#...#
        ##P###.#
        #..RG..#
        #r.#...#
        ########
    """),
    Level(9, """
        #########
        #G..#...#
        #...R..P#
        ###R##r##
        #...#...#
        #..r#...#
        #########
    """),
    Level(12, """
        #########
        #...R...#
        #...#...#
        #G..##.##
        #R###...#
        #...#Prr#
        #...#...#
        #########
    """),
    Level(14, """
        ##########
        #..b#...b#
        #...#..P.#
        ###B#....#
        #...#B####
        #...#....#
        #..GR.r..#
        ##########
    """),
    Level(25, """
        ##########
        #....B.b.#
        #....#..b#
        #....#B###
        #B####..b#
        #....#...#
        #....#...#
        #G...#P..#
        ##########
    """),
    Level(27, """
        ###########
        #G...B....#
        #....#....#
        ##B######.#
        #....#..r.#
        #....#P...#
        ###B###R###
        #....#...b#
        #b.b.#....#
        ###########
    """),
    Level(27, """
        ###########
        #G...B....#
        #....#....#
        ##B######.#
        #....#..r.#
        #....#P...#
        ###B###R###
        #....#...b#
        #b.b.#....#
        ###########
    """),
    Level(29, """
        ############
        #.b.#...#.r#
        #...#...#..#
        #...#..rR..#
        #...R...#..#
        ##B######B##
        #G..#..BP..#
        #...#..#.b.#
        #...#.b#...#
        ############
    """),
)  # fmt: skip

GAME = GridGame(
    name="keys",
    about="Open doors with keys of their color, one key a door, and reach the goal.",
    layers={
        "wall": STEEL,
        "goal": GREEN,
        "red_door": MAROON,
        "blue_door": PURPLE,
        "red_key": RED,
        "blue_key": BLUE,
        "player": YELLOW,
    },
    letters={
        "#": ("wall",),
        "P": ("player",),
        "G": ("goal",),
        "r": ("red_key",),
        "b": ("blue_key",),
        "R": ("red_door",),
        "B": ("blue_door",),
    },
    actions=MOVES,
    rule=rule,
    levels=LEVELS,
    single=("player", "goal"),
    counters={"red": 0, "blue": 0},
)
