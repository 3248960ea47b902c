"""Push every crate onto a goal."""

from jaxarc.games import bits
from jaxarc.games.game import GREEN, MOVES, ORANGE, RED, STEEL, UNDO, YELLOW, Action, Board, GridGame, Level, LevelEvent


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    player, crates = bits.push(board["player"], board["crate"], board.solid("wall"), action.number)
    return board.set(player=player, crate=crates), LevelEvent(won=bits.same(crates, board["goal"]))


def view(board: Board) -> list[tuple[bits.Mask, int]]:
    crate, goal = board["crate"], board["goal"]
    return [(board["wall"], STEEL), (goal, RED), (crate, ORANGE), (crate & goal, GREEN), (board["player"], YELLOW)]


LEVELS = (
    Level(4, """
        ######
        #....#
        #.C.G#
        #....#
        #P...#
        ######
    """),
    Level(6, """
        #######
        #..#.##
        #.....#
        #.C..G#
        #..P..#
        #######
    """),
    Level(8, """
        ########
        #..G...#
        #..C.#.#
        #..P...#
        #.C#..##
        #...G..#
        ########
    """),
    Level(11, """
        ########
        #..#..##
        ##.P.C##
        #...#..#
        #GC..G.#
        #.#...##
        ########
    """),
    Level(16, """
        ########
        #......#
        #.#....#
        #.#C...#
        #P....G#
        ##.GC..#
        #.#..#.#
        ########
    """),
    Level(18, """
        #########
        #....P#.#
        #.C....##
        #.......#
        #...C...#
        #.G...G.#
        #..G..C.#
        #########
    """),
    Level(21, """
        ########
        #......#
        #..G..##
        #P#...##
        ##...#G#
        #..C.CC#
        #...G..#
        ########
    """),
    Level(25, """
        #########
        #.......#
        #.##..C.#
        #P......#
        ##.#....#
        #.#.C.#.#
        #.G.C..G#
        ##.#.G..#
        #########
    """),
)  # fmt: skip

GAME = GridGame(
    name="crates",
    about="Push every crate onto a goal; a crate in a corner stays there, and action 7 takes a push back.",
    layers={"wall": STEEL, "goal": RED, "crate": ORANGE, "player": YELLOW},
    letters={
        "#": ("wall",),
        "P": ("player",),
        "C": ("crate",),
        "G": ("goal",),
        "X": ("crate", "goal"),
        "O": ("player", "goal"),
    },
    actions=(*MOVES, UNDO),
    rule=rule,
    levels=LEVELS,
    single=("player",),
    needed=("crate",),
    undo=("player", "crate"),
    view=view,
)  # fmt: skip
