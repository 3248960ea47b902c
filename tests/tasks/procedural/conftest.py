"""Tasks of one rule as NumPy grids of their own size, with what the rule drew for each task."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.tasks.procedural import procedural_tasks


class DrawnTask(NamedTuple):
    drawn: Any  # what Rule.draw returned, as NumPy arrays
    pairs: list[tuple[np.ndarray, np.ndarray]]


def area(flat: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Cut the active area out of a padded grid, checking that it is one rectangle at the top left."""
    assert flat.dtype == np.int8
    grid = flat.reshape(shape)
    assert grid.min() >= -1
    assert grid.max() <= 9
    height, width = (grid[:, 0] >= 0).sum(), (grid[0] >= 0).sum()
    assert height >= 1
    assert width >= 1
    expected = np.zeros(shape, bool)
    expected[:height, :width] = True
    np.testing.assert_array_equal(grid >= 0, expected)
    return grid[:height, :width]


@functools.cache
def draw_tasks(name: str, shape: tuple[int, int], seed: int = 0, count: int = 64) -> list[DrawnTask]:
    """Draw tasks of four pairs; every grid is checked to be valid, and every pair to be no identity.

    On a canvas with sides below 5 the grids may be as small as it is, below the rule's own smallest.
    """
    generator = procedural_tasks(name, grid_shape=shape, side=None if min(shape) >= 5 else (min(shape), 30))
    rule = generator.rules[0]

    def task(key):
        drawn = rule.draw(jax.random.split(key, 5)[0])
        return drawn, *generator.generate(key, jnp.int32(0))

    keys = jax.random.split(jax.random.key(seed), count)
    drawn, inputs, outputs = jax.tree.map(np.asarray, jax.jit(jax.vmap(task))(keys))
    tasks = []
    for i in range(count):
        pairs = [(area(a, shape), area(b, shape)) for a, b in zip(inputs[i], outputs[i], strict=True)]
        for grid, output in pairs:
            assert not np.array_equal(grid, output)
            assert min(grid.shape) >= rule.min_side
            assert max(grid.shape) <= rule.max_side
        tasks.append(DrawnTask(jax.tree.map(lambda x, i=i: x[i], drawn), pairs))
    return tasks


@pytest.fixture(name="draw_tasks")
def draw_tasks_fixture():
    return draw_tasks
