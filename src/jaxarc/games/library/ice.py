"""Slide until something stops you, and stop on the goal."""

from jaxarc.games import MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    # A pit is no wall: who slides over it, falls.
    blocked = board.solid("rock")
    path = bits.ray(board["player"], ~blocked, action.number)
    player = bits.slide(board["player"], blocked, action.number)
    return board.set(player=player), LevelEvent(
        won=bits.some(player & board["goal"]), lost=bits.some(path & board["pit"])
    )


LEVELS = read_levels("""
    3        4         4          5            6           10            12              15
    .......  #.##..P.  .........  ...........  ..#.##....  #......#....  ..#..##.#.....  ......O#.#...
    ...#..#  #...#...  ....#....  #..........  ...P......  ....#.....#O  .#.#...#..#.P#  .......#....#
    .#G....  ........  .......P.  G##........  .....#...#  ...G....#...  .#..#........#  G.....###....
    P......  ..#....#  #.#......  ...#.......  O......#G.  ...#....#...  .........#....  #.....OO#..P#
    .......  ....#.#.  .#......#  #..........  ..#..O....  ...........#  #........O....  .....OO..#.#.
    ..#.#..  .....##.  G........  .....#.....  ..........  ...#.#......  ......#G......  ..O...#..#.O.
             .#G..#.#  #..#.....  .#....#....  .#........  .#......#...  ..#...###.....  ##....###....
                       ......#..  ..#P.O.....  ..........  .O.....OP...  O.#.........#.  .....#.....#.
                                  #..#..#....  .#..#.....  .........#..  ......####....  ....#......#.
                                  #.......#..              .#..##......  ..............  ......#..#...
                                                           ......#..O.#  .....#.#...#.#  .#...........
                                                                         .........#...#  .......#.....
                                                                         O..#......##..
""")

GAME = GridGame(
    name="ice",
    about="Slide until a rock stops you; come to rest on the goal, and cross no pit.",
    layers={"rock": Color.SKY, "pit": Color.BLUE, "goal": Color.RED, "player": Color.ORANGE},
    letters={"#": ("rock",), "O": ("pit",), "G": ("goal",), "P": ("player",)},
    actions=MOVES,
    rule=rule,
    levels=LEVELS,
    single=("player", "goal"),
)  # fmt: skip
