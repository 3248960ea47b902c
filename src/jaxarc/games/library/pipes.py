"""Turn pieces of pipe until water reaches every drain."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxarc.games import CLICK, Action, Board, Color, GridGame, LevelEvent, bits, read_levels
from jaxarc.types import PRNGKey

TILE = 3  # side of a piece: its middle is the hub, and an arm leads to each side that is open
CLOCKWISE = (bits.UP, bits.RIGHT, bits.DOWN, bits.LEFT)


def turn(pipe: bits.Mask, hubs: bits.Mask, turns: tuple[int, ...] = CLOCKWISE) -> bits.Mask:
    """Turn the pieces of some hubs by a quarter.

    .o.      .o.
    .+o  ->  .+.    the arm above goes to the right, the right one down
    ...      .o.    and so on
    """
    turned = pipe & ~bits.neighbors(hubs)
    for before, after in zip(turns, (*turns[1:], turns[0]), strict=True):
        open_hubs = hubs & bits.shift(pipe, bits.opposite(before))
        turned |= bits.shift(open_hubs, after)
    return turned


def flow(source: bits.Mask, pipe: bits.Mask, hubs: bits.Mask) -> bits.Mask:
    """Return the cells of pipe that water from the source reaches.

    Water goes from hub to hub where two arms meet, so a round looks at one row of three, and moves by a whole piece.
    """
    hub, middle = hubs[1::TILE], pipe[1::TILE]
    below = hub & pipe[2::TILE] & bits.up(hub & pipe[::TILE])  # an arm down, and one up on the piece beneath
    beside = hub & bits.left(middle) & bits.left(middle, 2) & bits.left(hub, TILE)

    def spread(reached: bits.Mask) -> bits.Mask:
        right = bits.right(reached & beside, TILE) | (bits.left(reached, TILE) & beside)
        return reached | right | bits.down(reached & below) | (bits.up(reached) & below)

    first = source[1::TILE]
    reached, _ = jax.lax.while_loop(
        lambda both: (both[0] != both[1]).any(), lambda both: (spread(both[0]), both[0]), (spread(first), first)
    )
    return pipe & jnp.repeat(reached | bits.left(reached) | bits.right(reached), TILE)


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    row = action.cell | bits.left(action.cell) | bits.right(action.cell)
    pipe = turn(board["pipe"], (row | bits.up(row) | bits.down(row)) & board["hub"])
    wet = flow(board["source"], pipe, board["hub"])
    return board.set(pipe=pipe, wet=wet), LevelEvent(won=~bits.some(board["drain"] & ~wet))


def generate(key: PRNGKey, difficulty: jax.Array) -> Board:
    """Lay a pipe along a random walk, and turn 1 + difficulty pieces of it back: as many clicks solve it."""
    height, width = GAME.shape
    rows, columns = height // TILE, width // TILE
    key_start, key_walk, key_turn = jax.random.split(key, 3)
    inside = jnp.full(height, (1 << width) - 1, jnp.uint32)
    start = jax.random.randint(key_start, (2,), 0, jnp.array([rows, columns])) * TILE + 1
    source = bits.cell(start[0], start[1], height)
    hub_rows = jnp.where(jnp.arange(height) % TILE == 1, jnp.uint32(0o22222222222), 0)
    hubs = hub_rows & inside

    def walked(carry: tuple[bits.Mask, bits.Mask], at: tuple[jax.Array, jax.Array]) -> Any:
        here, pipe = carry
        index, direction = at
        there = bits.where(index < 5 + difficulty, bits.shift(here, direction, TILE) & hubs)
        went = bits.some(there)
        arms = bits.shift(here, direction) | bits.shift(here, direction, 2)
        return (jnp.where(went, there, here), pipe | there | bits.where(went, arms)), None

    steps = jnp.arange(5 + len(LEVELS))
    (end, pipe), _ = jax.lax.scan(walked, (source, source), (steps, jax.random.randint(key_walk, steps.shape, 1, 5)))
    # A walk that came back to its start drains at the piece beside it, which it passed.
    beside = source
    for direction in CLOCKWISE:
        passed = bits.shift(source, direction) & pipe
        beside = jnp.where(bits.some(passed), bits.shift(source, direction, TILE), beside)
    drain = jnp.where(bits.same(end, source), beside, end)
    hubs = hubs & pipe
    places = jax.random.uniform(key_turn, (height, width))
    places = jnp.argsort(jnp.where(bits.to_bool(hubs, width), places, 2.0).ravel())

    def turned(index: int, pipe: bits.Mask) -> bits.Mask:
        hub = bits.cell(places[index] // width, places[index] % width, height) & hubs
        return turn(pipe, bits.where(index <= difficulty, hub), CLOCKWISE[::-1])

    pipe = jax.lax.fori_loop(0, len(LEVELS), turned, pipe)
    return Board({"hub": hubs, "pipe": pipe, "wet": source, "source": source, "drain": drain}, {}, inside)


LEVELS = read_levels("""
    1       2          3          4          5          6             6             7
    ......  .........  .........  ....o....  .........  .o..........  ............  ............
    .Doo+.  .+..Doo+.  .+..+ooS.  .+oo+o.+o  ...o+.o+.  .+..+o.+..S.  oS.o+oo+oo+.  ....Doo+....
    ....o.  .o.....o.  .o..o..o.  .......o.  ....o....  ....o..o..o.  .o..o.....o.  ............
    ......  .o..o....  ....o..o.  ....o..o.  ....o....  ....o..o..o.  ....o..o....  ....o.......
    .Soo+.  .+o.+..So  o+o.+..+.  oD..+..+.  .So.+o.Do  .D.o+oo+oo+o  .D..+oo+.o+o  .+oo+.o+o...
    ....o.  ....o..o.  ....o....  ....o....  ....o....  .o..........  .o..........  ....o.......
                       .o..o....  .o..o....  .o..o....  .o..o.......  .......o..o.  .......o....
                       .+oo+..Do  o+.oSoo+.  .+oo+..D.  o+.o+....oD.  ....+oo+..D.  ...o+.o+o.Do
                       ....o....  .........  ....o..o.  ............  .......o....  ....o.......
                                                                      ............  .......o..o.
                                                                      .......+o.+.  ......o+.oS.
                                                                      .......o..o.  ............
""")

GAME = GridGame(
    name="pipes",
    about="Lead the water from the source to every drain; a click turns a piece of pipe by a quarter.",
    layers={"pipe": Color.SILVER, "wet": Color.SKY, "hub": None, "source": Color.BLUE, "drain": Color.RED},
    letters={
        "o": ("pipe",),
        "+": ("pipe", "hub"),
        "S": ("pipe", "hub", "source", "wet"),
        "D": ("pipe", "hub", "drain"),
    },
    actions=(CLICK,),
    rule=rule,
    levels=LEVELS,
    single=("source",),
    needed=("drain",),
    generate=generate,
)
