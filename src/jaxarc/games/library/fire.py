"""Get out before the fire does."""

from jaxarc.games import MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    wall = board.solid("wall")
    player = bits.walk(board["player"], wall | board["fire"], action.number)
    # The fire grows with every second action, to all sides.
    clock = board["clock"] + 1
    grown = bits.neighbors(board["fire"]) & ~wall
    fire = board["fire"] | bits.where(clock % 2 == 0, grown)
    out = bits.some(player & board["exit"])
    burned = bits.some(player & fire) & ~out
    return board.set(player=player, fire=fire, clock=clock % 2), LevelEvent(won=out, lost=burned)


LEVELS = read_levels("""
    4         5         6          7          9           9            10           11
    ########  ########  #########  #########  ##########  ###########  ###########  ##########
    #f....##  #...P..#  #..P....#  #....f.f#  #...P.#..#  #.........#  #.......Pf#  #......#.#
    #......#  #......#  #.#.#.#.#  ##..P#..#  ####..f..#  #..#...f..#  #..#......#  #......#f#
    ##....G#  #f#....#  #.##....#  #.......#  #G#...#.f#  #.#...#P..#  #.#...#...#  #G...#..##
    ##.P#.##  ##....G#  #...#.G.#  ##..#...#  #..#.....#  #G..#....##  #...#....##  #....#..##
    ####...#  #.#....#  #....#..#  #..##..##  ##...#...#  #.....#.###  #.G...#.###  #..#.#.#f#
    ########  ########  ##.....f#  #.#G..#.#  #........#  #......f.##  #........##  #....#...#
                        #########  #########  #........#  ##........#  ##...f....#  #...#.P.##
                                              ##########  #.##.#.f.##  #.##.#..f##  ##########
                                                          ###########  ###########
""")

GAME = GridGame(
    name="fire",
    about="Reach the exit; the fire grows to all sides with every second action.",
    layers={"wall": Color.STEEL, "exit": Color.GREEN, "fire": Color.ORANGE, "player": Color.YELLOW},
    letters={"#": ("wall",), "P": ("player",), "G": ("exit",), "f": ("fire",)},
    actions=MOVES,
    rule=rule,
    levels=LEVELS,
    single=("player", "exit"),
    needed=("fire",),
    counters={"clock": 0},
)
