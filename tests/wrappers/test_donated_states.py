"""No two arrays of a fresh state share memory, so that a state can be donated to the program that replaces it."""

import jax
import jax.numpy as jnp
import pytest

import jaxarc
from jaxarc.adapters import GymnaxEnvironment
from jaxarc.games import make as make_game
from jaxarc.tasks.task import mock_raw_task
from jaxarc.wrappers import AutoReset, EpisodeStatistics, FlatActions, Trials

SIZE = {"max_grid_height": 6, "max_grid_width": 5}
WRAPPERS = {
    "none": (lambda env: env, {}),
    "AutoReset": (AutoReset, {}),
    "FlatActions": (FlatActions, {"selection_format": "point"}),
    "EpisodeStatistics": (EpisodeStatistics, {}),
    "all": (lambda env: EpisodeStatistics(AutoReset(FlatActions(env))), {"selection_format": "point"}),
    "Trials": (Trials, {"mode": "trials"}),
    "statistics of trials": (lambda env: EpisodeStatistics(AutoReset(Trials(env))), {"mode": "trials"}),
}


def resets():
    for name, (wrap, fields) in WRAPPERS.items():
        yield pytest.param(lambda wrap=wrap, fields=fields: _ours(wrap, fields), id=name)
    yield pytest.param(_gymnax, id="gymnax")
    yield pytest.param(_game, id="game")


def _ours(wrap, fields):
    env, params = jaxarc.make([mock_raw_task(6, 5)], history_enabled=True, **fields, **SIZE)
    env = wrap(env)
    return lambda key: env.reset(key, params)[0]


def _gymnax():
    pytest.importorskip("gymnax")
    env, params = jaxarc.make([mock_raw_task(6, 5)], selection_format="point", flat_actions=True, **SIZE)
    adapter = GymnaxEnvironment(env, params)
    return lambda key: adapter.reset(key, adapter.default_params)[1]


def _game():
    env, params = make_game("crates")
    return lambda key: env.reset(key, params)[0]


@pytest.mark.parametrize("make", list(resets()))
@pytest.mark.parametrize("is_compiled", [False, True])
def test_no_two_arrays_of_a_reset_share_memory(make, is_compiled):
    reset = make()
    state = (jax.jit(reset) if is_compiled else reset)(jax.random.key(0))
    leaves = [leaf for leaf in jax.tree.leaves(state) if leaf.size and leaf.dtype != jax.random.key(0).dtype]
    places = [leaf.unsafe_buffer_pointer() for leaf in leaves]
    assert len(set(places)) == len(places)
    add = lambda tree: jax.tree.map(lambda x: x if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x + x, tree)
    jax.block_until_ready(jax.jit(add, donate_argnums=0)(state))
