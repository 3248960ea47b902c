"""A rollout that goes on moves nothing between host and devices behind the caller's back."""

import jax
import numpy as np
import pytest
from small_world import filling, make_world

from jaxarc.parallel import compile_rollout, replicate
from jaxarc.parallel.mesh import data_mesh


def test_a_rollout_goes_on_without_hidden_transfers():
    env, params = make_world()
    mesh = data_mesh(1)
    params, policy = replicate((params, filling()), mesh)
    play = compile_rollout(env, params, policy, 4, 3, mesh)
    keys = list(jax.random.split(jax.random.key(0), 2))
    states = play(params, policy, keys[0]).states
    with jax.transfer_guard("disallow"):
        jax.block_until_ready(play(params, policy, keys[1], states).states)
        with pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device"):
            jax.numpy.sin(np.ones(2, np.float32))  # the guard guards
