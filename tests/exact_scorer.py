"""A counting scorer whose weights are set by hand, so that its logits of some actions are the expert's scores."""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxarc import constants as c
from jaxarc.surrogate.scorers import CountingScorer

FILL, FLOOD, OTHERS = 0, 1, 2  # kinds of operations
RIGHT, RESIZED, CLEARED, LOADED, SOLVED = range(5)  # features of a state
EXACT = (*range(c.FILL, c.FLOOD_FILL), c.RESIZE, c.CLEAR, c.COPY_INPUT, c.SUBMIT)


def exact_scorer() -> CountingScorer:
    """Return a scorer whose logits of ``EXACT`` are the scores in percent, and those of the others very low."""
    kind = lambda operation: OTHERS + operation - c.MOVE_UP
    bias = jnp.full(OTHERS + c.NUM_GRID_OPERATIONS - c.MOVE_UP, -1000.0, jnp.float32)
    weight = jnp.zeros((5, bias.size), jnp.float32).at[RIGHT, FILL].set(1)
    bias = bias.at[FILL].set(0).at[kind(c.SUBMIT)].set(-100)  # a wrong submit is worth -1
    weight = weight.at[SOLVED, kind(c.SUBMIT)].set(3)  # and a right one 2
    for operation, share in ((c.RESIZE, RESIZED), (c.CLEAR, CLEARED), (c.COPY_INPUT, LOADED)):
        weight, bias = weight.at[share, kind(operation)].set(1), bias.at[kind(operation)].set(0)
    parts = lambda model: (model.state_layer.weight, model.state_layer.bias, model.fill_weights)
    values = (weight, bias, jnp.array([1.0, -1.0], jnp.float32))
    return eqx.tree_at(parts, CountingScorer(jax.random.key(0)), values)
