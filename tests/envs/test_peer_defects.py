"""What other ARC environments get wrong (JaxARC 1.0.3, ARCLE 0.2.6), and what is right here."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.envs import BboxAction, MaskAction, PointAction, arc_reset, arc_step
from jaxarc.envs.action_space import action_space
from jaxarc.envs.observations import observation_space
from jaxarc.tasks import create_mock_task
from jaxarc.testing import create_test_config

CANVAS = (4, 5)


def test_spaces_refuse_what_is_not_in_them():
    config = create_test_config(grid_shape=CANVAS)
    grid = jnp.zeros(CANVAS, jnp.int8)
    space = observation_space(config, 0)
    assert space.contains(grid)
    assert not space.contains(grid + jnp.int8(10))
    assert not space.contains(grid.astype(jnp.int32))
    assert not space.contains(grid[1:])
    assert not action_space(config).contains(PointAction(0, CANVAS[0], 0))
    assert not action_space(config).contains(PointAction(35, 0, 0))
    assert not action_space(config).contains(BboxAction(0, 0, 0, 0, 0))


# JaxARC 19: the flattened mask space overflows to size 0.
def test_mask_space_draws_every_cell_of_a_full_canvas():
    drawn = jax.vmap(action_space(create_test_config(selection_format="mask")).sample)(
        jax.random.split(jax.random.key(0), 64)
    )
    assert drawn.selection.shape == (64, 30, 30)
    assert drawn.selection.any(0).all()
    assert not drawn.selection.all(0).any()


# ARCLE: every step returns the same mutable observation.
def test_earlier_observations_stay_as_they_were():
    config = create_test_config(selection_format="mask", grid_shape=CANVAS)
    state, first = arc_reset(jax.random.key(0), config, create_mock_task(*CANVAS))
    kept = np.array(first)
    _, second, *_ = arc_step(state, MaskAction(9, np.ones(CANVAS, bool)), config)
    assert (np.asarray(second) != kept).any()
    np.testing.assert_array_equal(first, kept)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(second)[0, 0] = 3
