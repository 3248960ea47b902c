"""Cross water on planks, of which there are few."""

from jaxarc.games import CLICK, MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    beside = bits.neighbors(board["player"])
    laid = bits.where(board["planks"] > 0, action.cell & board["water"] & beside)
    water = board["water"] & ~laid
    player = bits.walk(board["player"], board.solid("wall") | water, action.number)
    found = board["pile"] & player
    changes = {"player": player, "water": water, "bridge": board["bridge"] | laid, "pile": board["pile"] & ~found}
    planks = board["planks"] + bits.count(found) - bits.count(laid)
    return board.set(planks=planks, **changes), LevelEvent(won=bits.some(player & board["goal"]))


def view(board: Board) -> list[tuple[bits.Mask, int]]:
    things = [
        ("wall", Color.STEEL),
        ("water", Color.BLUE),
        ("bridge", Color.ORANGE),
        ("pile", Color.MAROON),
        ("goal", Color.GREEN),
        ("player", Color.YELLOW),
    ]
    carrying = bits.where(board["planks"] > 0, board["player"])
    return [*((board[name], color) for name, color in things), (carrying, Color.WHITE)]


LEVELS = read_levels("""
    5      11       13       16       18         20          21        26
    ~~~~~  .~~....  G...#..  ....~~.  ..p.P..#.  .#.P...~~.  p~.p....  .p.~~~.pG.
    Pp.~G  .~~...p  ....~~~  ..p..~~  ..p......  .p..p.~~~~  .~~.....  ~~~~~~.#..
    ~~~~~  ~~~~P..  ~~~~~~~  Pp.~~~~  .#.#.p...  ~~~~~~~~~~  p~.P~~~#  p~~~~~~~~~
           ~~~~~~~  ~~~~...  ~~~~~~.  ~~~~~~~~~  ~~~~~~..~G  .~.~~~~~  ..~~~~.~~.
           .~~~.~#  ...Ppp.  ~.~#.~G  ~~~~~~~~~  ~..~~..#~.  ~~~~~~~~  ..~~~.....
           .~~p.G.  .......  .....~~  ~~~~~~~~~  ~~~~~.p#~~  ~~~~...#  ...~~.....
                                      ~G..~~~.~  ~~~~~~~~~~  .~.G....  p#..~~#...
                                                 p~...~..~.            #P.p.~~...
""")

GAME = GridGame(
    name="bridges",
    about="Reach the goal; you pick planks up, and a click lays one on the water beside you.",
    layers={
        "wall": Color.STEEL,
        "water": Color.BLUE,
        "bridge": Color.ORANGE,
        "pile": Color.MAROON,
        "goal": Color.GREEN,
        "player": Color.YELLOW,
    },
    letters={"#": ("wall",), "~": ("water",), "p": ("pile",), "G": ("goal",), "P": ("player",)},
    actions=(*MOVES, CLICK),
    rule=rule,
    levels=LEVELS,
    single=("player", "goal"),
    needed=("pile",),
    counters={"planks": 0},
    view=view,
)
