"""Find the way out of a maze, and see only what is near."""

from jaxarc.games import MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    player = bits.walk(board["player"], board.solid("wall"), action.number)
    return board.set(player=player), LevelEvent(won=bits.some(player & board["exit"]))


def view(board: Board) -> list[tuple[bits.Mask, int]]:
    player = board["player"]
    row = player | bits.left(player) | bits.right(player) | bits.left(player, 2) | bits.right(player, 2)
    near = row | bits.up(row) | bits.down(row) | bits.up(row, 2) | bits.down(row, 2)
    return [(board["wall"], Color.STEEL), (board["exit"], Color.GREEN), (player, Color.YELLOW), (~near, Color.BLACK)]


LEVELS = read_levels("""
    8        9          14         23             26             28           32             39
    #######  #########  #########  #############  #############  ###########  #############  ###############
    #.....#  #.#.....#  #.....#.#  #...#...#...#  #.#.P...#...#  #...G.....#  #........G#.#  #.#.....#.....#
    #####.#  #.###.#.#  #####G#.#  ###.#.#.###.#  #.#.#...#.#.#  #########.#  #.#####.#.#.#  #.###.#.#####.#
    #G..#P#  #..G..#.#  #...#.#.#  #..P..#...#.#  #...#.#...#.#  #...#...#.#  #.#.....#.#.#  #....P#.......#
    #.###.#  #######P#  #P###.#.#  #.#######.#G#  #####.#####.#  #.#.#.###.#  #.#.#####.#.#  #.#.#########.#
    #.....#  #.......#  #...#...#  #.......#.#.#  #...........#  #.#.P.#...#  #.#.#...#...#  #.#.#.#.....#.#
    #######  #########  #.#.##..#  #.#.##..#.#.#  #.###########  #.#####.###  #.#.#.#.###.#  #.#.#.#.#.###.#
                        #.#.....#  #.#...#.#.#.#  #...#.....#.#  #.........#  #.#.#.#...#.#  #.#.#...#.....#
                        #########  #.###.###.#.#  ###.#.###.#.#  ###########  #...#.###.#.#  #.#.#.#########
                                   #...#.......#  #.....#.G...#               #...#.#..P#.#  #.#.#.......#.#
                                   #############  #############               #####..####.#  #.#.#######.#.#
                                                                              #...........#  #...#.......G.#
                                                                              #############  ###############
""")

GAME = GridGame(
    name="fog",
    about="Find the exit of a maze; only cells at most two rows and two columns away can be seen.",
    layers={"wall": Color.STEEL, "exit": Color.GREEN, "player": Color.YELLOW},
    letters={"#": ("wall",), "P": ("player",), "G": ("exit",)},
    actions=MOVES,
    rule=rule,
    levels=LEVELS,
    single=("player", "exit"),
    view=view,
)
