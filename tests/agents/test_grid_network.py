import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.agents.features import cell_features
from jaxarc.agents.networks import GridNetwork, _box_sums, _offset_indices
from jaxarc.config import PPOConfig


def observation(working, target, step=0):
    return {
        "working_grid": jnp.asarray([working], jnp.int8),
        "target_grid": jnp.asarray([target], jnp.int8),
        "step_count": jnp.asarray([step], jnp.int32),
    }


def test_features_of_a_small_example_are_as_drawn():
    seen = cell_features(observation([[3, 5], [-1, -1]], [[3, -1], [7, -1]], 4), 8)
    np.testing.assert_array_equal(seen.working[0].argmax(-1), [3, 5, 0, 0])
    np.testing.assert_array_equal(seen.working[0].sum(-1), [1, 1, 0, 0])
    np.testing.assert_array_equal(seen.equal[0], [1, 0, 0, 1])
    np.testing.assert_array_equal(seen.active[0], [True, True, False, False])
    inside, last_row, last_column = seen.edges[0, :, :3].T
    np.testing.assert_array_equal(inside, [1, 1, 0, 0])
    np.testing.assert_array_equal(last_row, [1, 1, 0, 0])
    np.testing.assert_array_equal(last_column, [0, 1, 0, 0])
    np.testing.assert_array_equal(seen.edges[0, :, 4], [0, 0, 1, 0])  # the target's last row
    np.testing.assert_array_equal(seen.time, [0.5])


def test_box_sums_agree_with_adding_cell_by_cell():
    height, width, batch = 3, 4, 5
    random = np.random.default_rng(0)
    values = random.normal(size=(batch, 2, height * width)).astype(np.float32)
    corners = random.integers(0, height * width, batch)
    given = jax.nn.one_hot(jnp.asarray(corners), height * width, dtype=jnp.float32)
    sums = _box_sums(given, jnp.asarray(values), (height, width)).reshape(batch, 2, height, width)
    grids = values.reshape(batch, 2, height, width)
    for i, (row, column) in enumerate(zip(*np.divmod(corners, width), strict=True)):
        for r, c in np.ndindex(height, width):
            box = grids[i, :, min(r, row) : max(r, row) + 1, min(c, column) : max(c, column) + 1]
            np.testing.assert_allclose(sums[i, :, r, c], box.sum(axis=(1, 2)), rtol=1e-4, atol=1e-5)


def test_the_color_head_treats_all_colors_alike():
    random = np.random.default_rng(1)
    working, target = random.integers(0, 10, (2, 3, 3))
    network = GridNetwork(jax.random.key(0), (3, 3), PPOConfig())
    first, second = (jax.nn.one_hot(jnp.array([cell]), 9, dtype=jnp.float32) for cell in (2, 7))
    logits = network.color_logits(cell_features(observation(working, target), 9), first, second)
    colors = random.permutation(10)
    permuted = network.color_logits(cell_features(observation(colors[working], colors[target]), 9), first, second)
    assert np.ptp(logits) > 0
    np.testing.assert_allclose(permuted[0, colors], logits[0], rtol=1e-5)


def test_the_second_corner_starts_out_at_the_first():
    network = GridNetwork(jax.random.key(0), (4, 5), PPOConfig(same_cell_bias=3.0))
    seen = cell_features(observation(np.zeros((4, 5)), np.ones((4, 5))), 9)
    trunk = network.trunk(seen)
    logits = jax.jit(jax.vmap(lambda first: network.second_corner_logits(trunk, seen, first[None])[0]))(jnp.eye(20))
    np.testing.assert_array_equal(logits.argmax(axis=-1), np.arange(20))


def test_two_pairs_of_cells_share_an_offset_exactly_when_they_lie_alike():
    height, width = 2, 4
    indices = _offset_indices((height, width))
    assert (indices.min(), indices.max()) == (0, (2 * height - 1) * (2 * width - 1) - 1)
    rows, columns = np.divmod(np.arange(height * width), width)
    offsets = {
        (int(rows[j] - rows[i]), int(columns[j] - columns[i]), int(indices[i, j]))
        for i, j in np.ndindex(height * width, height * width)
    }
    assert len(offsets) == len({place for _, _, place in offsets}) == len({offset[:2] for offset in offsets})
