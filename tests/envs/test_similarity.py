"""How many cells match, over how many: against a plain count, for rows of every length that is added up differently."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.envs.canvas import count_matches, count_union, similarity

CELLS = [1, 2, 35, 36, 37, 62, 63, 64, 65, 66, 67, 68, 71, 72, 100, 143, 144, 145, 180, 323, 576, 899, 900]


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


def test_long_rows_are_added_up_in_short_pieces():
    """XLA's CPU backend is many times slower to add up a long row in one go."""
    reduced = lambda cells: [
        equation.invars[0].aval.shape[-1]
        for equation in jax.make_jaxpr(count_matches)(*np.zeros((2, 3, cells), np.int8)).eqns
        if equation.primitive.name == "reduce_sum"
    ]
    assert reduced(63) == [63]
    assert reduced(64) == [64 // 4 // 9 + 64 // 4 % 9]
    assert reduced(900) == [900 // 4 // 9]


def test_union_covers_both_areas():
    sides = [1, 2, 29, 30]
    sizes = np.array(np.meshgrid(sides, sides, sides, sides), np.int8).reshape(4, -1).T
    found = count_union(jnp.asarray(sizes))
    assert found.dtype == jnp.int32
    expected = [max(height, other_height) * max(width, other) for height, width, other_height, other in sizes.tolist()]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("matches", "union", "share"), [(0, 4, 0.0), (1, 4, 0.25), (3, 4, 0.75), (900, 900, 1.0)])
def test_similarity_is_the_share_of_matching_cells(matches, union, share):
    found = similarity(jnp.int32(matches), jnp.int32(union))
    assert (found.dtype, float(found)) == (jnp.float32, share)
