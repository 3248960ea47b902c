"""Push and turn mirrors until the light falls on every target."""

import jax
import jax.numpy as jnp

from jaxarc.games import ACT, MOVES, Action, Board, Color, GridGame, LevelEvent, bits, read_levels


def light(board: Board) -> bits.Mask:
    """Return the cells that the lamp lights, which shines to the right; mirrors send its light up, down, left or right.

    The way of light can be reversed, and the lamp lets none through: it never runs in a circle.
    """
    mirrors = board["slash"] | board["backslash"]
    free = ~(board.solid("wall", "lamp") | mirrors)

    def going(carry: tuple[bits.Mask, jax.Array, bits.Mask]) -> jax.Array:
        return bits.some(carry[0])

    def reflected(carry: tuple[bits.Mask, jax.Array, bits.Mask]) -> tuple[bits.Mask, jax.Array, bits.Mask]:
        source, direction, lit = carry
        path = bits.ray(source, free, direction)
        mirror = bits.shift(path | source, direction) & mirrors
        # On / up and right change places, and down and left: 1 4, 2 3. On \ up and left, down and right: 1 3, 2 4.
        is_slash = bits.some(mirror & board["slash"])
        after = jnp.where(is_slash, 5 - direction, ((direction - 1) ^ 2) + 1)
        return mirror, after, lit | path | mirror

    start = (board["lamp"], jnp.int32(bits.RIGHT), jnp.zeros_like(free))
    return jax.lax.while_loop(going, reflected, start)[2]


def rule(board: Board, action: Action) -> tuple[Board, LevelEvent]:
    blocked = board.solid("wall", "lamp")
    slash, backslash, number = board["slash"], board["backslash"], action.number
    _, pushed = bits.push(board["player"], slash, blocked | backslash, number)
    _, backslash = bits.push(board["player"], backslash, blocked | slash, number)
    player = bits.walk(board["player"], blocked | pushed | backslash, number)
    turned = bits.where(number == ACT, bits.neighbors(player) & (pushed | backslash))
    after = board.set(player=player, slash=pushed ^ turned, backslash=backslash ^ turned)
    return after, LevelEvent(won=~bits.some(board["target"] & ~light(after)))


def view(board: Board) -> list[tuple[bits.Mask, int]]:
    lit = light(board)
    things = [("slash", Color.BLUE), ("backslash", Color.PURPLE), ("lamp", Color.PINK), ("player", Color.YELLOW)]
    dark = [
        (board["wall"], Color.STEEL),
        (lit, Color.RED),
        (board["target"], Color.ROSE),
        (board["target"] & lit, Color.GREEN),
    ]
    return [*dark, *((board[name], color) for name, color in things)]


LEVELS = read_levels("""
    3         9         12        14        16        19         22          26
    ########  ########  ########  ########  ########  #########  ##########  #########
    #..P...#  #..*...#  ##...P.#  ##.....#  L.....P#  #.*...#.#  #.......##  #.*.....#
    #......#  L.*.P.##  #./....#  #*..%..#  #.....*#  #*.#..#.#  #..#.P..*#  #*.#...P#
    L.../..#  #...%..#  #.....*#  #......#  #./...*#  #../%...#  #..%.*#..#  #./.#...#
    #......#  #..#...#  #......#  #...P..#  #.#....#  L..#....#  #........#  L.#..%..#
    #...*..#  #......#  L......#  L......#  #....#.#  #P......#  #..#.../.#  #.......#
    ########  ########  ########  ########  ########  #.......#  L......###  #.....#.#
                                                      #########  ##########  #########
""")

GAME = GridGame(
    name="mirrors",
    about="Light every target; you push mirrors, and action 5 turns those beside you.",
    layers={
        "wall": Color.STEEL,
        "target": Color.ROSE,
        "slash": Color.BLUE,
        "backslash": Color.PURPLE,
        "lamp": Color.PINK,
        "player": Color.YELLOW,
    },
    letters={"#": ("wall",), "P": ("player",), "*": ("target",), "/": ("slash",), "%": ("backslash",), "L": ("lamp",)},
    actions=(*MOVES, ACT),
    rule=rule,
    levels=LEVELS,
    single=("player", "lamp"),
    needed=("target",),
    view=view,
)
