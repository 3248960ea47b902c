"""Collect tokens of four colors in one order."""

import jax
import jax.numpy as jnp

from jaxarc.games import MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels
from jaxarc.types import PRNGKey

TOKENS = ("red", "yellow", "green", "blue")  # in their order


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    player = bits.walk(board["player"], board.solid("wall"), action.number)
    changes = {"player": player}
    earlier = jnp.zeros_like(player)
    lost = jnp.bool_(False)
    for name in TOKENS:
        lost |= bits.some(player & board[name]) & bits.some(earlier)
        earlier |= board[name]
        changes[name] = board[name] & ~player
    return board.set(**changes), LevelEvent(won=~bits.some(earlier & ~player) & ~lost, lost=lost)


def generate(key: PRNGKey, difficulty: jax.Array) -> Board:
    """Put up to four tokens of each color on cells of odd row and column, so that there is a way around each."""
    height, width = GAME.shape
    inside = jnp.full(height, (1 << width) - 1, jnp.uint32)
    columns = width // 2
    places = jax.random.permutation(key, (height // 2) * columns)
    cell = lambda place: bits.cell(1 + 2 * (place // columns), 1 + 2 * (place % columns), height)
    masks = [cell(places[index]) for index in range(len(LEVELS) + 2)]
    layers = {name: jnp.zeros_like(inside) for name in ("wall", *TOKENS)}
    for index, mask in enumerate(masks[1:]):
        name = TOKENS[index % len(TOKENS)]
        layers[name] |= bits.where(index < 2 + difficulty, mask)
    return Board({**layers, "player": masks[0]}, {}, inside)


LEVELS = read_levels("""
    5      6       9       10       17       24        30        43
    .#.2.  ....##  ..P...  #.P.1..  .....#.  #2...1..  ...#.#4.  23....###
    .....  .P.2..  ......  .#.....  ...##.#  ...#42..  ..##...#  .#.#.#.#.
    #...P  ....#.  ...2..  #..#..#  #.4#...  .3.....#  ....#...  ..P3###..
    ...1.  .#11..  .#1...  ...#.2.  P...2..  ........  3....3#.  1.##...#.
    .....  ......  ......  ....4.3  .31...#  ..1#.P..  ..12.##.  .........
                   ..3...  ..#....  ..#....  ...#...#  .....P.2  ....41.#.
                                    .##.1..  ..#.....  .##..1..  .#.4.#.#.
                                                       ........  .2#....#.
""")

GAME = GridGame(
    name="order",
    about="Collect all red tokens, then yellow, then green, then blue ones; a token out of turn loses.",
    layers={
        "wall": Color.STEEL,
        "red": Color.RED,
        "yellow": Color.YELLOW,
        "green": Color.GREEN,
        "blue": Color.BLUE,
        "player": Color.SILVER,
    },
    letters={"#": ("wall",), "P": ("player",), "1": ("red",), "2": ("yellow",), "3": ("green",), "4": ("blue",)},
    actions=MOVES,
    rule=rule,
    levels=LEVELS,
    single=("player",),
    needed=("red",),
    generate=generate,
)
