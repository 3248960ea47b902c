"""Weights that are drawn together are those that each layer draws alone."""

import jax
import numpy as np
import pytest

from jaxarc.nn import MLP, Dense
from jaxarc.nn.layers import draw_together


def test_perceptrons_drawn_together_are_those_drawn_one_by_one():
    key = jax.random.key(3)
    shapes = [(8, 32, 3), (10, 16, 2), (4, 16, 1)]
    alone = [MLP(key, sizes) for key, sizes in zip(jax.random.split(key, 3), shapes, strict=True)]
    together = [MLP(draws, sizes) for draws, sizes in zip(draw_together(key, 3, 256), shapes, strict=True)]
    jax.tree.map(np.testing.assert_array_equal, together, alone)


def test_a_layer_wants_as_many_numbers_as_it_has_weights():
    numbers = jax.random.normal(jax.random.key(0), (6,))
    np.testing.assert_array_equal(Dense(numbers, 2, 2, scale=1.0).weight.ravel(), numbers[:4])
    with pytest.raises(TypeError, match="reshape"):
        Dense(numbers, 3, 3)
