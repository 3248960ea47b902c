"""Cells as bits and boxes of cells, against NumPy, on canvases of every number of bytes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import constants as c
from jaxarc.envs.canvas import count_matches, from_bytes, num_bytes, pack_columns, to_bytes, unpack_columns
from jaxarc.envs.operations import OPERATION_NAMES, get_operation_name

SHAPES = [(1, 1), (7, 2), (8, 3), (9, 1), (17, 4), (30, 30)]
BATCH = 5
ON_SHAPES = pytest.mark.parametrize("shape", SHAPES, ids=str)


@ON_SHAPES
def test_cells_come_back_from_their_bits(shape):
    cells = np.random.default_rng(shape).random((BATCH, *shape)) < 0.5
    cells[0], cells[1] = True, False
    words = pack_columns(jnp.asarray(cells.reshape(BATCH, -1)), shape)
    assert (words.shape, words.dtype) == ((BATCH, shape[1]), jnp.uint32)
    weights = 2 ** np.arange(shape[0], dtype=np.uint32)[:, None]
    np.testing.assert_array_equal(words, (cells * weights).sum(axis=1, dtype=np.uint32))
    back = unpack_columns(words, shape)
    assert back.dtype == jnp.bool_
    np.testing.assert_array_equal(back, cells.reshape(BATCH, -1))
    one = pack_columns(jnp.asarray(cells[2].reshape(-1)), shape)  # without a batch
    np.testing.assert_array_equal(one, words[2])
    np.testing.assert_array_equal(unpack_columns(one, shape), back[2])


@ON_SHAPES
def test_bits_come_back_from_their_bytes(shape):
    words = np.random.default_rng(shape).integers(0, 2 ** shape[0], (BATCH, shape[1]), dtype=np.uint32)
    stored = to_bytes(jnp.asarray(words), shape)
    assert num_bytes(shape) == shape[1] * [*[1] * 8, *[2] * 8, *[3] * 8, *[4] * 6][shape[0] - 1]
    assert (stored.shape, stored.dtype) == ((BATCH, num_bytes(shape)), jnp.uint8)
    back = from_bytes(stored, shape)
    assert back.dtype == jnp.uint32
    np.testing.assert_array_equal(back, words)
    for part in (2, (slice(None), None)):  # without a batch, and with one of two axes
        np.testing.assert_array_equal(to_bytes(jnp.asarray(words[part]), shape), stored[part])
        np.testing.assert_array_equal(from_bytes(stored[part], shape), words[part])


def test_every_operation_has_a_name_of_its_own():
    names = [get_operation_name(operation) for operation in range(c.NUM_OPERATIONS)]
    assert sorted(OPERATION_NAMES) == list(range(42))
    assert len(set(names)) == 42
    assert names[:10] == [f"fill {color}" for color in range(10)]
    assert names[10:20] == [f"flood fill {color}" for color in range(10)]
    assert names[20:24] == ["move up", "move down", "move left", "move right"]
    assert (names[34], names[41]) == ("submit", "first unsolved test pair")


CELLS = [1, 35, 36, 37, 63, 64, 65, 72, 144, 145, 323, 900]


counted = jax.jit(count_matches)


@pytest.mark.parametrize("cells", CELLS)
def test_matches_are_the_active_cells_of_equal_color(cells):
    rng = np.random.default_rng(cells)
    grid, target = rng.integers(-1, 3, (2, 6, cells), dtype=np.int8)
    grid[0] = target[0] = 9  # every cell counts
    grid[1] = target[1] = -1  # none does
    target[2] = grid[2]
    expected = ((grid == target) & (grid >= 0)).sum(axis=1)
    for found in (counted(grid, target), jax.vmap(counted)(grid, target)):
        assert found.dtype == jnp.int32
        np.testing.assert_array_equal(found, expected)
    for one, other, matches in zip(grid, target, expected, strict=True):  # without a batch
        assert int(counted(one, other)) == matches
