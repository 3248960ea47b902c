"""Cells as bits and boxes of cells, against NumPy, on canvases of every number of bytes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import constants as c
from jaxarc.envs.canvas import (
    BoundingBox,
    active_area,
    clip_box,
    from_bytes,
    grid_size,
    inside,
    num_bytes,
    pack_box,
    pack_columns,
    per_cell,
    to_bytes,
    unpack_columns,
    whole_if_empty,
)
from jaxarc.envs.operations import OPERATION_NAMES, get_operation_name
from jaxarc.types import cell_columns, cell_rows

SHAPES = [(1, 1), (1, 5), (7, 2), (8, 3), (9, 1), (16, 2), (17, 4), (30, 30)]
BATCH = 5
ON_SHAPES = pytest.mark.parametrize("shape", SHAPES, ids=str)
H, W = 4, 5


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


@ON_SHAPES
def test_cells_know_their_row_and_column(shape):
    rows, columns = np.indices(shape).reshape(2, -1)
    for found, expected in ((cell_rows(shape), rows), (cell_columns(shape), columns)):
        assert found.dtype == np.int8
        np.testing.assert_array_equal(found, expected)
    assert cell_rows(shape) is cell_rows(shape)  # constants are made once, however many programs use them
    assert cell_columns(shape) is cell_columns(shape)


def every_box():
    """Boxes whose bounds lie in the canvas or up to one cell beside it, empty ones too."""
    ranges = [range(-1, H + 1), range(-1, W + 1)] * 2
    bounds = np.array(np.meshgrid(*ranges), np.int32).reshape(4, -1).T
    return bounds.tolist(), BoundingBox(*(jnp.asarray(bound) for bound in bounds.T))


def is_empty(top, left, bottom, right):
    return bottom < top or right < left


def test_boxes():
    bounds, boxes = every_box()
    size = (3, 4)
    height, width = (jnp.full(len(bounds), side, jnp.int32) for side in size)

    @jax.jit
    def results(box):
        return (
            box.is_empty,
            inside(box, (H, W)),
            jnp.stack(clip_box(box, height, width), 1),
            jnp.stack(whole_if_empty(box, height, width), 1),
            pack_box(box),
        )

    empty, cells, clipped, whole, packed = jax.device_get(results(boxes))
    assert packed.dtype == np.int8
    rows, columns = np.indices((H, W)).reshape(2, -1)
    for i, (top, left, bottom, right) in enumerate(bounds):
        assert empty[i] == is_empty(*bounds[i])
        np.testing.assert_array_equal(
            cells[i], (top <= rows) & (rows <= bottom) & (left <= columns) & (columns <= right)
        )
        assert clipped[i].tolist() == [max(top, 0), max(left, 0), min(bottom, size[0] - 1), min(right, size[1] - 1)]
        assert whole[i].tolist() == ([0, 0, size[0] - 1, size[1] - 1] if is_empty(*bounds[i]) else bounds[i])
        assert packed[i].tolist() == ([0, 0, -1, -1] if is_empty(*bounds[i]) else bounds[i])


def test_the_active_area_stands_at_the_top_left():
    sizes = [(height, width) for height in range(1, H + 1) for width in range(1, W + 1)]
    heights, widths = (jnp.array(sides, jnp.int8) for sides in zip(*sizes, strict=True))
    found = np.asarray(active_area(heights, widths, (H, W))).reshape(-1, H, W)
    grids = jnp.asarray(np.where(found, 0, c.PADDING).astype(np.int8).reshape(len(sizes), -1))
    np.testing.assert_array_equal(np.stack(grid_size(grids, (H, W)), axis=1), sizes)
    for area, (height, width) in zip(found, sizes, strict=True):
        expected = np.zeros((H, W), bool)
        expected[:height, :width] = True
        np.testing.assert_array_equal(area, expected)
        grid = jnp.asarray(np.where(expected, 0, c.PADDING).astype(np.int8).reshape(-1))
        sides = grid_size(grid, (H, W))
        assert [int(side) for side in sides] == [height, width]
        assert {side.dtype for side in sides} == {jnp.dtype("int8")}


def test_a_number_of_each_environment_meets_its_cells():
    found = per_cell(jnp.array([3, -1], jnp.int32))
    assert (found.dtype, found.tolist()) == (jnp.int8, [[3], [-1]])


def test_every_operation_has_a_name_of_its_own():
    names = [get_operation_name(operation) for operation in range(c.NUM_OPERATIONS)]
    assert sorted(OPERATION_NAMES) == list(range(42))
    assert len(set(names)) == 42
    assert names[:10] == [f"fill {color}" for color in range(10)]
    assert names[10:20] == [f"flood fill {color}" for color in range(10)]
    assert names[20:24] == ["move up", "move down", "move left", "move right"]
    assert (names[34], names[41]) == ("submit", "first unsolved test pair")
