"""The network that sees only which colors are equal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from edit_world import config, grids, with_noise

from jaxarc.agents.edits import PolicyInput, kinds_of
from jaxarc.agents.policy import make_network
from jaxarc.agents.relational_network import RelationalNetwork, describe_boxes
from jaxarc.config import NetworkConfig

HEIGHT, WIDTH, BATCH = 3, 4, 32
KINDS = kinds_of(config(HEIGHT, WIDTH))
PAINT, FLOOD = 0, 1


def network_on(*shape):
    network = make_network(jax.random.key(0), shape, KINDS, NetworkConfig())
    assert isinstance(network, RelationalNetwork)
    return with_noise(network, 0, 0.3)


@pytest.fixture(scope="module")
def network():
    return network_on(HEIGHT, WIDTH)


@jax.jit
def answers(network, view, first, second):
    """All that a network says, by name."""
    seen = network.encode(view)
    rows, columns = network.size_logits(seen)
    kind = lambda place: jnp.full(first.shape, place, jnp.int32)
    return {
        "kind": network.kind_logits(seen),
        "value": network.value(seen),
        "paint": network.first_logits(seen, kind(PAINT)),
        "other": network.first_logits(seen, kind(FLOOD)),
        "second": network.second_logits(seen, first),
        "rows": rows,
        "columns": columns,
        "color": network.color_logits(seen, first, second),
    }


def view_of(working, target):
    time = np.linspace(0, 1, len(working), dtype=np.float32)
    return PolicyInput(jnp.asarray(working, jnp.int8), jnp.asarray(target, jnp.int8), jnp.asarray(time))


@pytest.fixture(scope="module")
def pictures():
    """Working grids and targets that have something in common, of all sizes."""
    random = np.random.default_rng(0)
    working, target = grids(random, BATCH, HEIGHT, WIDTH), grids(random, BATCH, HEIGHT, WIDTH)
    alike = (random.random(working.shape) < 0.5) & (working >= 0) & (target >= 0)
    return np.where(alike, target, working), np.where(random.random(target.shape) < 0.5, np.minimum(target, 2), target)


@pytest.fixture(scope="module")
def corners():
    random = np.random.default_rng(1)
    return tuple(jnp.asarray(random.integers(0, HEIGHT * WIDTH, BATCH), jnp.int32) for _ in range(2))


@pytest.fixture(scope="module")
def told(network, pictures, corners):
    return answers(network, view_of(*pictures), *corners)


@pytest.mark.parametrize("seed", range(3))
def test_permuting_the_ten_colors_permutes_the_color_logits_and_changes_nothing_else(
    network, pictures, corners, told, seed
):
    colors = np.random.default_rng(seed).permutation(10)
    recolored = [np.where(grid >= 0, colors[grid], -1) for grid in pictures]
    other = answers(network, view_of(*recolored), *corners)
    for name in told.keys() - {"color"}:
        assert np.ptp(told[name]) > 0
        np.testing.assert_array_equal(other[name], told[name], err_msg=name)
    assert np.ptp(told["color"]) > 0
    np.testing.assert_array_equal(other["color"][:, colors], told["color"])


def test_a_larger_canvas_around_the_same_grids_changes_nothing(pictures, corners, told):
    height, width = HEIGHT + 2, WIDTH + 1
    larger = [np.pad(grid, ((0, 0), (0, 2), (0, 1)), constant_values=-1) for grid in pictures]
    moved = [jnp.asarray(place // WIDTH * width + place % WIDTH) for place in corners]
    other = answers(network_on(height, width), view_of(*larger), *moved)
    for name in ("paint", "other", "second"):
        common = other[name].reshape(BATCH, height, width)[:, :HEIGHT, :WIDTH]
        np.testing.assert_allclose(common.reshape(BATCH, -1), told[name], rtol=1e-5, atol=1e-6, err_msg=name)
    for name in ("kind", "value", "color"):
        np.testing.assert_allclose(other[name], told[name], rtol=1e-5, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(other["rows"][:, :HEIGHT], told["rows"])
    np.testing.assert_array_equal(other["columns"][:, :WIDTH], told["columns"])
    assert not other["rows"][:, HEIGHT:].any()
    assert not other["columns"][:, WIDTH:].any()


def bits_of_cell(working, target, row, column):
    """What is known of a cell, looked up one by one: it, then those above, below, to the left and to the right."""

    def encode(grid, r, c):
        return grid[r, c] if 0 <= r < HEIGHT and 0 <= c < WIDTH else -1

    around = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    inside = target[row, column] >= 0
    alike = [inside and encode(target, *place) == target[row, column] for place in around]
    wrong = [encode(target, *place) != encode(working, *place) for place in [(row, column), *around]]
    return [inside, wrong[0], *alike, *wrong[1:]]


def test_the_looked_up_score_of_a_cell_is_that_of_the_layers_on_this_very_cell(network, pictures, told):
    working, target = pictures
    places = list(np.ndindex(BATCH, HEIGHT, WIDTH))
    bits = np.array([bits_of_cell(working[i], target[i], row, column) for i, row, column in places], np.float32)
    assert len(np.unique(bits, axis=0)) > 50
    scores = np.asarray(network.cell_layers(jnp.asarray(bits))).reshape(BATCH, HEIGHT * WIDTH, 2)
    np.testing.assert_allclose(told["paint"], scores[..., 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(told["other"], scores[..., 1], rtol=1e-5, atol=1e-6)


def test_a_box_is_described_by_what_painting_it_would_do(network):
    """Gains less losses are the cells that are fewer wrong afterwards, in grids that fill the canvas."""
    random = np.random.default_rng(2)
    working, target = random.integers(0, 3, (2, 4, HEIGHT, WIDTH)).astype(np.int8)
    first = np.array([0, 5, 7, 11])
    seen = network.encode(view_of(working, target))
    described = describe_boxes(seen, jnp.asarray(first, jnp.int32), (HEIGHT, WIDTH))
    numbers = np.moveaxis(np.asarray(described), 0, -1)
    for i, corner in enumerate(first):
        row, column = divmod(corner, WIDTH)
        for r, c in np.ndindex(HEIGHT, WIDTH):
            painted = working[i].copy()
            box = np.s_[min(r, row) : max(r, row) + 1, min(c, column) : max(c, column) + 1]
            painted[box] = target[i, row, column]
            before, after = (grid != target[i] for grid in (working[i], painted))
            area, gained, lost = painted[box].size, (before & ~after).sum(), (after & ~before).sum()
            told = numbers[i, r * WIDTH + c]
            np.testing.assert_allclose(told[:2] * area, [gained, lost], atol=1e-5)
            assert told[4:7].tolist() == [lost > 0, gained > lost, area == 1]
