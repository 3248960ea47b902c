"""Hold gates open with what stands on the plates."""

from jaxarc.games import MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    is_open = ~bits.some(board["plate"] & ~(board["crate"] | board["player"]))
    blocked = board.solid("wall") | bits.where(~is_open, board["gate"])
    player, crates = bits.push(board["player"], board["crate"], blocked, action.number)
    return board.set(player=player, crate=crates), LevelEvent(won=bits.some(player & board["goal"]))


def view(board: Board) -> list[tuple[bits.Mask, int]]:
    is_open = ~bits.some(board["plate"] & ~(board["crate"] | board["player"]))
    shut = bits.where(~is_open, board["gate"])
    things = [("goal", Color.GREEN), ("plate", Color.ROSE), ("crate", Color.ORANGE), ("player", Color.YELLOW)]
    return [(board["wall"], Color.STEEL), (shut, Color.PURPLE), *((board[name], color) for name, color in things)]


LEVELS = read_levels("""
    6         8         10         15         20          24          28           28
    ########  ########  #########  #########  ##########  ##########  ###########  ###########
    #..P.#.#  #o..#..#  #.P...=.#  #....#..#  #.....##.#  #....##..#  #....o..#.#  #.....#.###
    #....=G#  #CP.##.#  #.C..o#G#  #P...#..#  #......#G#  #.o...=..#  #..C..#.###  #...#C..#.#
    #..C.#.#  #...=G.#  #.....#.#  #CC..=..#  ##C....#.#  #..CP.#..#  ##......#.#  #Co.....#.#
    #..o.#.#  #...#..#  #.....#.#  #....#..#  #o..P..=.#  #..#C.#G.#  #....#..=.#  #o.P....#G#
    ########  ########  #########  #oo.##.G#  #o.C...#.#  #.o...#..#  #.P..C..#.#  #.#.....#.#
                                   #########  ##########  ##########  #...#o..#G#  #.#.....=.#
                                                                      ###########  ###########
""")

GAME = GridGame(
    name="plates",
    about="Reach the goal; the gates are open while something stands on every plate.",
    layers={
        "wall": Color.STEEL,
        "gate": Color.PURPLE,
        "goal": Color.GREEN,
        "plate": Color.ROSE,
        "crate": Color.ORANGE,
        "player": Color.YELLOW,
    },
    letters={"#": ("wall",), "P": ("player",), "G": ("goal",), "C": ("crate",), "o": ("plate",), "=": ("gate",)},
    actions=MOVES,
    rule=rule,
    levels=LEVELS,
    single=("player", "goal"),
    needed=("plate", "gate"),
    view=view,
)
