"""Push every crate onto a goal."""

from jaxarc.games import MOVES, UNDO, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    player, crates = bits.push(board["player"], board["crate"], board.solid("wall"), action.number)
    return board.set(player=player, crate=crates), LevelEvent(won=bits.same(crates, board["goal"]))


def view(board: Board) -> list[tuple[bits.Mask, int]]:
    crate, goal = board["crate"], board["goal"]
    return [
        (board["wall"], Color.STEEL),
        (goal, Color.RED),
        (crate, Color.ORANGE),
        (crate & goal, Color.GREEN),
        (board["player"], Color.YELLOW),
    ]


LEVELS = read_levels("""
    4       6        8         11        16        18         21        25
    ######  #######  ########  ########  ########  #########  ########  #########
    #....#  #..#.##  #..G...#  #..#..##  #......#  #....P#.#  #......#  #.......#
    #.C.G#  #.....#  #..C.#.#  ##.P.C##  #.#....#  #.C....##  #..G..##  #.##..C.#
    #....#  #.C..G#  #..P...#  #...#..#  #.#C...#  #.......#  #P#...##  #P......#
    #P...#  #..P..#  #.C#..##  #GC..G.#  #P....G#  #...C...#  ##...#G#  ##.#....#
    ######  #######  #...G..#  #.#...##  ##.GC..#  #.G...G.#  #..C.CC#  #.#.C.#.#
                     ########  ########  #.#..#.#  #..G..C.#  #...G..#  #.G.C..G#
                                         ########  #########  ########  ##.#.G..#
                                                                        #########
""")

GAME = GridGame(
    name="crates",
    about="Push every crate onto a goal; a crate in a corner stays there, and action 7 takes a push back.",
    layers={"wall": Color.STEEL, "goal": Color.RED, "crate": Color.ORANGE, "player": Color.YELLOW},
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
