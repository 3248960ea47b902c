"""What cannot be spread is refused; that spreading changes nothing is in test_invariance.py."""

import numpy as np
import pytest
from jax.sharding import AbstractMesh
from small_world import CANVAS, make_world

from jaxarc.parallel import data_mesh, shard_tasks
from jaxarc.tasks.procedural import procedural_tasks


def test_spread_params_are_those_given_but_for_where_the_grids_lie():
    _, params = make_world(symmetries="flips")
    spread = shard_tasks(params, data_mesh(1))
    assert spread.tasks.num_pairs == params.tasks.num_pairs == 4
    np.testing.assert_array_equal(spread.tasks.inputs, params.tasks.inputs)
    assert spread.config == params.config.with_fields(executor="dense")


def test_what_has_no_grids_or_is_spread_already_is_refused():
    _, params = make_world()
    mesh = data_mesh(1)
    with pytest.raises(ValueError, match=r"'data'.*\('rows',\)"):
        shard_tasks(params, AbstractMesh((2,), ("rows",)))
    with pytest.raises(ValueError, match="spread already"):
        shard_tasks(shard_tasks(params, mesh), mesh)
    _, generated = make_world(procedural_tasks("color-map", CANVAS, side=(2, 2)))
    with pytest.raises(ValueError, match="which holds none; replicate it"):
        shard_tasks(generated, mesh)
