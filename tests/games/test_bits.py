"""Bit algebra on rows of words, held against the same on grids of bools, cell by cell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.games import bits

STEPS = {1: (-1, 0), 2: (1, 0), 3: (0, -1), 4: (0, 1)}
SHAPES = [(3, 3), (5, 9), (16, 16), (32, 32)]


def pack(*rows: str) -> jax.Array:
    return bits.from_bool(jnp.array([[letter != "." for letter in row] for row in rows]))


def random_cells(seed: int, shape: tuple[int, int], share: float = 0.3) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) < share


def masks(*grids: np.ndarray) -> list[jax.Array]:
    return [bits.from_bool(jnp.asarray(grid)) for grid in grids]


def inside(shape: tuple[int, int]) -> jax.Array:
    return bits.from_bool(jnp.ones(shape, bool))


def read(mask: jax.Array, shape: tuple[int, int]) -> np.ndarray:
    assert mask.dtype == jnp.uint32
    return np.asarray(bits.to_bool(mask, shape[1]))


def moved(cells: np.ndarray, direction: int) -> np.ndarray:
    result = np.zeros_like(cells)
    for row, column in zip(*np.nonzero(cells), strict=True):
        to = (row + STEPS[direction][0], column + STEPS[direction][1])
        if 0 <= to[0] < cells.shape[0] and 0 <= to[1] < cells.shape[1]:
            result[to] = True
    return result


def traced(function, *arguments):
    return jax.jit(function)(*arguments)


@pytest.mark.parametrize("shape", SHAPES)
def test_bools_survive_packing(shape):
    cells = random_cells(0, shape)
    assert np.array_equal(read(masks(cells)[0], shape), cells)
    assert int(bits.count(masks(cells)[0])) == cells.sum()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("direction", STEPS)
def test_shift_moves_each_cell(shape, direction):
    cells = random_cells(direction, shape)
    found = traced(bits.shift, masks(cells)[0], jnp.int32(direction))
    assert np.array_equal(read(found, shape), moved(cells, direction))


@pytest.mark.parametrize("number", [0, 5, 6, 7])
def test_what_is_no_direction_moves_nothing(number):
    mask, rock = masks(random_cells(1, (6, 7)), random_cells(2, (6, 7)))
    number = jnp.int32(number)
    assert bits.same(bits.shift(mask, number), mask)
    assert bits.same(bits.walk(mask & ~rock, rock, number), mask & ~rock)
    assert bits.same(bits.slide(mask & ~rock, rock, number), mask & ~rock)
    assert not bits.some(bits.ray(mask, ~rock, number))
    assert not bits.is_direction(bits.opposite(number))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("direction", STEPS)
def test_ray_goes_on_until_something_blocks_it(shape, direction):
    rock = random_cells(direction + 10, shape, 0.1)
    source = np.zeros(shape, bool)
    source[shape[0] // 2, shape[1] // 2] = True
    rock &= ~source
    expected, at = np.zeros(shape, bool), source
    while True:
        at = moved(at, direction) & ~rock
        if not at.any():
            break
        expected |= at
    blocked = masks(rock)[0] | ~inside(shape)
    found = traced(bits.ray, masks(source)[0], ~blocked, jnp.int32(direction))
    assert np.array_equal(read(found, shape), expected)
    last = traced(bits.slide, masks(source)[0], blocked, jnp.int32(direction))
    path = expected | source
    assert np.array_equal(read(last, shape), path & ~moved(path, direction + 1 if direction % 2 else direction - 1))


@pytest.mark.parametrize(
    ("before", "direction", "after"),
    [
        ("P.P#", 4, ".PP#"),
        (".P", 4, ".P"),  # the edge of the level
        ("P.", 3, "P."),
        ("PP.", 4, ".PP"),  # both go on: the place of the first is free again
    ],
)
def test_walk_stops_before_what_is_blocked(before, direction, after):
    players, wall = pack(before.replace("#", ".")), pack(before.replace("P", "."))
    blocked = wall | ~inside((1, len(before)))
    expected = pack(after.replace("#", "."))
    assert bits.same(traced(bits.walk, players, blocked, jnp.int32(direction)), expected)


@pytest.mark.parametrize(
    ("before", "direction", "after"),
    [("PB.", 4, ".PB"), ("PBB.", 4, "PBB."), ("PB#", 4, "PB#"), ("BP", 3, "BP"), (".BP", 3, "BP."), ("P.B", 4, ".PB")],
)
def test_push_moves_one_box_where_there_is_room(before, direction, after):
    only = lambda text, letter: pack("".join(one if one == letter else "." for one in text))
    blocked = only(before, "#") | ~inside((1, len(before)))
    player, box = traced(bits.push, only(before, "P"), only(before, "B"), blocked, jnp.int32(direction))
    assert bits.same(player, only(after, "P"))
    assert bits.same(box, only(after, "B"))


@pytest.mark.parametrize("direction", STEPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_wrap_enters_on_the_opposite_side(shape, direction):
    one = np.zeros(shape, bool)
    one.flat[np.random.default_rng(direction).integers(one.size)] = True
    for _ in range(max(shape)):
        source = one
        expected = np.roll(source, STEPS[direction], (0, 1))
        found = traced(bits.wrap, masks(source)[0], inside(shape), jnp.int32(direction))
        assert np.array_equal(read(found, shape), expected)
        one = expected


@pytest.mark.parametrize("shape", SHAPES)
def test_flood_reaches_what_is_connected(shape):
    free = random_cells(5, shape, 0.6)
    seed = np.zeros(shape, bool)
    seed[0, 0] = True
    expected = seed
    while True:
        grown = expected | (free & np.any([moved(expected, direction) for direction in STEPS], 0))
        if np.array_equal(grown, expected):
            break
        expected = grown
    assert np.array_equal(read(traced(bits.flood, *masks(seed, free)), shape), expected)


def test_neighbors_are_four():
    assert bits.same(bits.neighbors(pack("...", ".A.", "...")), pack(".*.", "*.*", ".*."))


def test_a_cell_that_is_not_there_is_empty():
    assert bits.same(bits.cell(jnp.int32(1), jnp.int32(2), 2), pack("...", "..A"))
    assert not bits.some(bits.cell(jnp.int32(2), jnp.int32(0), 2))
    assert not bits.some(bits.where(jnp.bool_(False), pack("A")))
