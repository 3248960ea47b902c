"""Open doors with keys of their color, and reach the goal."""

from jaxarc.games import MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


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


LEVELS = read_levels("""
    7         9          12         14          25          27           27            29
    ########  #########  #########  ##########  ##########  ###########  ############  ############
    #..#...#  #G..#...#  #...R...#  #..b#...b#  #....B.b.#  #G...B....#  #...#...#..#  #.b.#...#.r#
    #..#...#  #...R..P#  #...#...#  #...#..P.#  #....#..b#  #....#....#  #...#...#.P#  #...#...#..#
    ##P###.#  ###R##r##  #G..##.##  ###B#....#  #....#B###  ##B######.#  #...#.b.R.r#  #...#..rR..#
    #..RG..#  #...#...#  #R###...#  #...#B####  #B####..b#  #....#..r.#  #.b.R...#..#  #...R...#..#
    #r.#...#  #..r#...#  #...#Prr#  #...#....#  #....#...#  #....#P...#  ##B######B##  ##B######B##
    ########  #########  #...#...#  #..GR.r..#  #....#...#  ###B###R###  #...#..B.r.#  #G..#..BP..#
                         #########  ##########  #G...#P..#  #....#...b#  #.b.#..#...#  #...#..#.b.#
                                                ##########  #b.b.#....#  #G..#..#...#  #...#.b#...#
                                                            ###########  ############  ############
""")

GAME = GridGame(
    name="keys",
    about="Open doors with keys of their color, one key a door, and reach the goal.",
    layers={
        "wall": Color.STEEL,
        "goal": Color.GREEN,
        "red_door": Color.MAROON,
        "blue_door": Color.PURPLE,
        "red_key": Color.RED,
        "blue_key": Color.BLUE,
        "player": Color.YELLOW,
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
