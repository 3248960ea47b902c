"""Small canvases to edit, and policies that edit them."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxarc import constants as c
from jaxarc.agents import EditPolicy
from jaxarc.config import JaxArcConfig, NetworkConfig

LIMIT = 20
FEW = (*range(c.NUM_COLORS), c.RESIZE, c.SUBMIT)
EVERY = tuple(range(c.SUBMIT + 1))

create = jax.jit(EditPolicy.create, static_argnums=(1, 2))
evaluate = jax.jit(EditPolicy.evaluate)
sample = jax.jit(EditPolicy.sample)
greedy_of = jax.jit(EditPolicy.greedy)


def config(height, width, operations=EVERY, **fields):
    return JaxArcConfig().with_fields(
        **{
            "max_grid_height": height,
            "max_grid_width": width,
            "selection_format": "bbox",
            "max_episode_steps": LIMIT,
            "allowed_operations": operations,
            "reveal_target": True,
            "include_step_count": True,
            **fields,
        }
    )


@functools.cache
def policy_on(height, width, seed=0, network="relational", operations=EVERY, scale=1.0):
    """A policy whose choices are far from uniform, but for the kind, which is nearly so."""
    unbiased = NetworkConfig(kind=network, submit_bias=0.0, resize_bias=0.0, other_bias=0.0)
    fresh = create(jax.random.key(seed), config(height, width, operations), unbiased)
    noisy = with_noise(fresh, seed, 0.3 * scale)
    last = lambda policy: policy.network.kind_layers.last
    return eqx.tree_at(last, noisy, last(fresh))


def with_noise(tree, seed, scale):
    random = np.random.default_rng(seed)
    noise = lambda x: scale * random.normal(size=x.shape).astype(np.float32)
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x) + noise(x)), tree)


def grids(random, batch, height, width):
    """Random grids of random size."""
    canvas = np.full((batch, height, width), c.PADDING, np.int8)
    for grid in canvas:
        h, w = random.integers(1, height + 1), random.integers(1, width + 1)
        grid[:h, :w] = random.integers(0, c.NUM_COLORS, (h, w))
    return canvas


def observations(batch, height, width, seed=0):
    random = np.random.default_rng(seed)
    return {
        "working_grid": jnp.asarray(grids(random, batch, height, width)),
        "target_grid": jnp.asarray(grids(random, batch, height, width)),
        "step_count": jnp.asarray(random.integers(0, LIMIT, batch), jnp.int32),
    }


def repeated(tree, count):
    return jax.tree.map(lambda x: jnp.repeat(x, count, axis=0), tree)
