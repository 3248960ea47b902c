"""Collect every gem on a grid whose edges meet."""

import jax
import jax.numpy as jnp

from jaxarc.games import MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels
from jaxarc.types import PRNGKey


def move(player: bits.Mask, wall: bits.Mask, inside: bits.Mask, direction: bits.Direction) -> bits.Mask:
    """Walk by one cell, around the edge if need be; stay before a wall."""
    ahead = bits.wrap(player, inside, direction) & ~wall
    return jnp.where(bits.some(ahead), ahead, player)


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    player = move(board["player"], board["wall"], board.inside, action.number)
    gems = board["gem"] & ~player
    return board.set(player=player, gem=gems), LevelEvent(won=~bits.some(gems))


def generate(key: PRNGKey, difficulty: jax.Array) -> Board:
    """Walk at random, drop 1 + difficulty gems on the way, and put walls where the walk never was."""
    height, width = GAME.shape
    key_start, key_wall, key_walk = jax.random.split(key, 3)
    inside = jnp.full(height, (1 << width) - 1, jnp.uint32)
    start = jax.random.randint(key_start, (2,), 0, jnp.array([height, width]))
    player = bits.cell(start[0], start[1], height)
    length = 6
    directions = jnp.repeat(jax.random.randint(key_walk, (2 * len(LEVELS),), 1, 5), length)

    def walked(carry: tuple[bits.Mask, bits.Mask, bits.Mask], at: tuple[jax.Array, jax.Array]):
        here, seen, gems = carry
        index, direction = at
        here = bits.wrap(here, inside, direction)
        drops = (index % (2 * length) == 2 * length - 1) & (index // (2 * length) <= difficulty)
        return (here, seen | here, gems | bits.where(drops, here & ~player)), None

    empty = jnp.zeros_like(inside)
    (_, seen, gems), _ = jax.lax.scan(walked, (player, player, empty), (jnp.arange(len(directions)), directions))
    # A walk that only came back to its start has dropped nothing: its first neighbor is free then.
    spare = bits.wrap(player, inside, bits.RIGHT)
    gems = jnp.where(bits.some(gems), gems, spare)
    wall = bits.from_bool(jax.random.bernoulli(key_wall, 0.4, (height, width))) & ~seen & ~gems & inside
    return Board({"wall": wall, "gem": gems, "player": player}, {}, inside)


LEVELS = read_levels("""
    2       5        6        8         13        15         20          24
    ......  .###.#.  .##....  ...*.P.*  .#....#.  ##.#.#.##  .......#..  #.*..#...
    ......  #......  ....#..  .##..#..  .#..#*.*  #....#P.*  ....*#.##.  ##*....#.
    ......  #.#*...  ...##.#  .......*  .#..###.  #.#.#...#  .....##...  .#.#..#P.
    ..*...  .#.#*.#  ..##...  ..#..#..  ..#.P.##  .....##*.  ###*#..##.  #..##.###
    .#.P..  ..#...P  #.##.#P  .###.#..  .#.###..  .###.....  .#.####*..  #.#.#*.#.
            ##...#.  ..*.###  ##.##..#  ..#*..##  *........  #......#..  ##..*##.#
                              .##..###  ........  .#....###  ##.#......  ....##...
                                                  ....##.*#  .P.#.###..  #....#.*.
                                                             #.#**###.#
""")

GAME = GridGame(
    name="torus",
    about="Collect every gem; who leaves the grid on one side enters it on the opposite one.",
    layers={"wall": Color.STEEL, "gem": Color.PINK, "player": Color.YELLOW},
    letters={"#": ("wall",), "P": ("player",), "*": ("gem",)},
    actions=MOVES,
    rule=rule,
    levels=LEVELS,
    single=("player",),
    needed=("gem",),
    generate=generate,
)
