"""The plain networks, which see the colors themselves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from edit_world import config, observations

from jaxarc import constants as c
from jaxarc.agents.edits import kinds_of
from jaxarc.agents.networks import CellNetwork, PolicyInput, make_network
from jaxarc.agents.networks.cells import cell_features, offset_indices, windows
from jaxarc.config import NetworkConfig

HEIGHT, WIDTH = 4, 5
KINDS = kinds_of(config(HEIGHT, WIDTH))


def make(kind="residual_cnn", **fields):
    return make_network(jax.random.key(0), (HEIGHT, WIDTH), KINDS, NetworkConfig(kind=kind, **fields))


def view_of(working, target):
    as_grids = lambda grid: jnp.asarray([grid], jnp.int8)
    return PolicyInput(as_grids(working), as_grids(target), jnp.zeros(1, jnp.float32))


encode = jax.jit(lambda network, view: network.encode(view))


def test_features_of_a_small_example_are_as_drawn():
    view = view_of([[3, 5], [-1, -1]], [[3, -1], [7, -1]])
    told = np.asarray(cell_features(view, equality_map=True)[0]).reshape(4, -1)
    np.testing.assert_array_equal(told[:, :10].argmax(-1), [3, 5, 0, 0])
    np.testing.assert_array_equal(told[:, :10].sum(-1), [1, 1, 0, 0])
    np.testing.assert_array_equal(told[:, 10:20].argmax(-1), [3, 0, 7, 0])
    np.testing.assert_array_equal(told[:, 10:20].sum(-1), [1, 0, 1, 0])
    np.testing.assert_array_equal(told[:, 20:23].T, [[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]])  # of the working grid
    np.testing.assert_array_equal(told[:, 23:26].T, [[1, 0, 1, 0], [0, 0, 1, 0], [1, 0, 1, 0]])  # of the target
    np.testing.assert_array_equal(told[:, 26], [1, 0, 0, 1])
    np.testing.assert_array_equal(cell_features(view, equality_map=False)[0].reshape(4, -1), told[:, :26])


@pytest.mark.parametrize("kind", ["cells", "residual_cnn"])
def test_only_with_an_equality_map_does_a_cell_know_whether_it_is_right(kind):
    plain, told = (make(kind, equality_map=equality_map) for equality_map in (False, True))
    assert told.first_layer.weight.shape[0] == plain.first_layer.weight.shape[0] + 1
    same = eqx.tree_at(
        lambda network: (network.first_layer, network.layers),
        plain,
        (eqx.tree_at(lambda layer: layer.weight, told.first_layer, told.first_layer.weight[:-1]), told.layers),
    )
    threes, fours = (np.full((HEIGHT, WIDTH), color) for color in (3, 4))
    right, wrong = view_of(threes, threes), view_of(threes, fours)
    assert not np.allclose(encode(told, right).cells, encode(same, right).cells)
    np.testing.assert_allclose(encode(told, wrong).cells, encode(same, wrong).cells, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kind", "reach"), [("cells", 0), ("residual_cnn", 1)])
def test_a_cell_sees_itself_or_its_neighborhood(kind, reach):
    working, target = np.zeros((2, HEIGHT, WIDTH), int)
    changed = working.copy()
    changed[1, 2] = 7
    network = make(kind, num_layers=2)
    before, after = (
        encode(network, view_of(grid, target)).cells.reshape(HEIGHT, WIDTH, -1) for grid in (working, changed)
    )
    rows, columns = np.nonzero(np.any(np.asarray(before != after), axis=-1))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (1 - reach, 1 + reach, 2 - reach, 2 + reach)


def test_a_layer_on_windows_is_a_convolution():
    random = np.random.default_rng(0)
    grid = jnp.asarray(random.normal(size=(2, HEIGHT, WIDTH, 3)), jnp.float32)
    kernel = jnp.asarray(random.normal(size=(3, 3, 3, 4)), jnp.float32)
    convolved = jax.lax.conv_general_dilated(grid, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    np.testing.assert_allclose(windows(grid, 3) @ kernel.reshape(27, 4), convolved, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["relational", "cells", "residual_cnn"])
def test_the_kinds_start_from_their_biases(kind):
    network = make(kind, submit_bias=-3.0, resize_bias=-2.0, other_bias=-4.0)
    seen = observations(8, HEIGHT, WIDTH)
    view = PolicyInput(seen["working_grid"], seen["target_grid"], jnp.zeros(8, jnp.float32))
    logits = jax.jit(lambda network: network.kind_logits(network.encode(view)))(network)
    first = {c.FILL: 0.0, c.RESIZE: -2.0, c.SUBMIT: -3.0}
    expected = [first.get(kind.operation, -4.0) for kind in KINDS]
    np.testing.assert_allclose(logits, np.broadcast_to(expected, logits.shape), atol=0.4)


def test_the_second_corner_starts_out_at_the_first():
    network = make(same_cell_bias=3.0)
    assert isinstance(network, CellNetwork)
    seen = encode(network, view_of(np.zeros((HEIGHT, WIDTH)), np.ones((HEIGHT, WIDTH))))
    everywhere = jnp.arange(HEIGHT * WIDTH, dtype=jnp.int32)
    logits = jax.jit(jax.vmap(lambda first: network.second_logits(seen, first[None])[0]))(everywhere)
    np.testing.assert_array_equal(logits.argmax(axis=-1), everywhere)
    assert (np.sort(logits)[:, -1] - np.sort(logits)[:, -2] > 2.5).all()


def test_two_pairs_of_cells_share_an_offset_exactly_when_they_lie_alike():
    height, width = 2, 4
    indices = offset_indices((height, width))
    assert (indices.min(), indices.max()) == (0, (2 * height - 1) * (2 * width - 1) - 1)
    rows, columns = np.divmod(np.arange(height * width), width)
    offsets = {
        (int(rows[j] - rows[i]), int(columns[j] - columns[i]), int(indices[i, j]))
        for i, j in np.ndindex(height * width, height * width)
    }
    assert len(offsets) == len({place for _, _, place in offsets}) == len({offset[:2] for offset in offsets})


def test_paint_and_the_other_kinds_score_first_corners_apart():
    network = make("cells")
    seen = observations(8, HEIGHT, WIDTH)
    view = PolicyInput(seen["working_grid"], seen["target_grid"], jnp.zeros(8, jnp.float32))
    score = jax.jit(lambda place: network.first_logits(network.encode(view), jnp.full(8, place, jnp.int32)))
    paint, flood, cut = (score(place) for place in (0, 1, 12))
    np.testing.assert_array_equal(flood, cut)
    assert (np.asarray(paint != flood)).all()
