"""Step on every cell exactly once."""

from jaxarc.games import MOVES, UNDO, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    player = bits.walk(board["player"], board.solid("wall", "trail"), action.number)
    trail = board["trail"] | (board["player"] & ~player)
    return board.set(player=player, trail=trail), LevelEvent(
        won=bits.same(trail | player | board["wall"], board.inside)
    )


LEVELS = read_levels("""
    9     13    16     16     21     21     25      25
    ##..  #...  ....#  ...##  .P..#  .....  #.....  .....#
    ...P  #...  .....  ....#  .....  .....  #.....  ...#..
    ....  P...  #..#.  .....  .....  .....  .P...#  ...##.
          ....  P....  .P...  #....  .....  .#....  ......
                              #....  ##.P#  ......  ...P..
""")

GAME = GridGame(
    name="path",
    about="Step on every cell once; no cell carries you twice, and action 7 takes a step back.",
    layers={"wall": Color.STEEL, "trail": Color.ORANGE, "player": Color.YELLOW},
    letters={"#": ("wall",), "P": ("player",), "+": ("trail",)},
    actions=(*MOVES, UNDO),
    rule=rule,
    levels=LEVELS,
    single=("player",),
    undo=("player", "trail"),
)
