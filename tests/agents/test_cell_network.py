"""The plain networks, which see the colors themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from edit_world import config, observations

from jaxarc import constants as c
from jaxarc.agents.edits import PolicyInput, kinds_of
from jaxarc.agents.policy import make_network
from jaxarc.config import NetworkConfig

HEIGHT, WIDTH = 4, 5
KINDS = kinds_of(config(HEIGHT, WIDTH))


def make(kind="residual_cnn", **fields):
    return make_network(jax.random.key(0), (HEIGHT, WIDTH), KINDS, NetworkConfig(kind=kind, **fields))


def view_of(working, target):
    as_grids = lambda grid: jnp.asarray([grid], jnp.int8)
    return PolicyInput(as_grids(working), as_grids(target), jnp.zeros(1, jnp.float32))


encode = jax.jit(lambda network, view: network.encode(view))


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


@pytest.mark.parametrize("kind", ["relational", "cells", "residual_cnn"])
def test_the_kinds_start_from_their_biases(kind):
    network = make(kind, submit_bias=-3.0, resize_bias=-2.0, other_bias=-4.0)
    seen = observations(8, HEIGHT, WIDTH)
    view = PolicyInput(seen["working_grid"], seen["target_grid"], jnp.zeros(8, jnp.float32))
    logits = jax.jit(lambda network: network.kind_logits(network.encode(view)))(network)
    first = {c.FILL: 0.0, c.RESIZE: -2.0, c.SUBMIT: -3.0}
    expected = [first.get(kind.operation, -4.0) for kind in KINDS]
    np.testing.assert_allclose(logits, np.broadcast_to(expected, logits.shape), atol=0.4)
