"""A policy whose weights are written by hand: it repairs cell by cell, resizes first, and submits when all is right."""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxarc import constants as c
from jaxarc.agents import EditPolicy
from jaxarc.config import NetworkConfig

_SURE = 40.0


def repairing_policy(config):
    """Return a policy for environments with this config, whose operations are fills, resize and submit."""
    policy = jax.jit(lambda key: EditPolicy.create(key, config, NetworkConfig()))(jax.random.key(0))
    network, place = policy.network, {kind.operation: i for i, kind in enumerate(policy.kinds)}
    kinds = jnp.zeros((len(policy.kinds),)).at[place[c.SUBMIT]].set(_SURE / 2)
    network = eqx.tree_at(
        lambda n: (n.kind_layers, n.cell_layers, n.box_layers, n.color_layers, n.size_weights),
        network,
        (
            # Whole grid: 0 whether anything is wrong, 4 whether the sizes are equal.
            _layers(network.kind_layers, {(0, place[c.FILL]): (1, 0), (4, place[c.RESIZE]): (-2, 2)}, kinds),
            _layers(network.cell_layers, {(1, 0): (1, 0), (1, 1): (1, 0)}),  # a wrong cell
            _layers(network.box_layers, {(6, 0): (1, 0)}),  # a box of one cell
            _layers(network.color_layers, {(0, 0): (1, 0)}),  # the target's color at the first corner
            jnp.array([_SURE, 0.0]),  # the last row and column of the target
        ),
    )
    return eqx.tree_at(lambda p: p.network, policy, network)


def _layers(like, votes, bias=None):
    """Two layers that turn some inputs into votes for outputs: ``(input, output): (slope, start)``."""
    layers = jax.tree.map(jnp.zeros_like, like)
    for unit, ((source, output), (slope, start)) in enumerate(votes.items()):
        layers = eqx.tree_at(
            lambda x: (x.hidden.weight, x.hidden.bias, x.last.weight),
            layers,
            (
                layers.hidden.weight.at[source, unit].set(slope),
                layers.hidden.bias.at[unit].set(start),
                layers.last.weight.at[unit, output].set(_SURE),
            ),
        )
    return layers if bias is None else eqx.tree_at(lambda x: x.last.bias, layers, bias)


class Mirroring(eqx.Module):
    """A predictor of answers: every input, its columns mirrored."""

    def predict(self, puzzle):
        width = (puzzle.grid >= 0).any(axis=1).sum(axis=1, dtype=jnp.int32)
        column = width[:, None] - 1 - jnp.arange(puzzle.grid.shape[2], dtype=jnp.int32)[None]
        mirrored = jnp.take_along_axis(puzzle.grid, jnp.maximum(column, 0)[:, None], axis=2)
        return jnp.where(column[:, None] >= 0, mirrored, jnp.int8(-1))
