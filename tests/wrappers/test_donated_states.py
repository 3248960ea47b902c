"""No two arrays of a fresh state share memory, so that a state can be donated to the program that replaces it."""

import jax
import jax.numpy as jnp
import pytest

import jaxarc
from jaxarc.games import make as make_game
from jaxarc.tasks.task import mock_raw_task
from jaxarc.wrappers import AutoReset, EpisodeStatistics, FlatActions, Trials

TASKS = [mock_raw_task(6, 5)]
SIZE = {"max_grid_height": 6, "max_grid_width": 5}
FLAT = {"selection_format": "point", "flat_actions": True, **SIZE}
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
    for make in (_gymnax, _stoa, _stoa_without_auto_reset, _envelope, _game):
        yield pytest.param(make, id=make.__name__.strip("_"))


def _ours(wrap, fields):
    env, params = jaxarc.make(TASKS, history_enabled=True, **fields, **SIZE)
    env = wrap(env)
    return lambda key: env.reset(key, params)[0]


def _gymnax():
    pytest.importorskip("gymnax")
    adapter = jaxarc.adapters.GymnaxEnvironment(TASKS, **FLAT)
    return lambda key: adapter.reset(key, adapter.default_params)[1]


def _stoa(auto_reset=True):
    pytest.importorskip("stoa")
    adapter = jaxarc.adapters.StoaEnvironment(*jaxarc.make(TASKS, **FLAT), auto_reset=auto_reset)
    return lambda key: adapter.reset(key)[0]


def _stoa_without_auto_reset():
    return _stoa(auto_reset=False)


def _envelope():
    pytest.importorskip("envelope")
    adapter = jaxarc.adapters.EnvelopeEnvironment(*jaxarc.make(TASKS, **FLAT))
    return lambda key: adapter.init(key)[0]


def _game():
    env, params = make_game("crates")
    return lambda key: env.reset(key, params)[0]


@pytest.mark.parametrize("make", list(resets()))
@pytest.mark.parametrize("is_compiled", [False, True])
def test_no_two_arrays_of_a_reset_share_memory(make, is_compiled):
    reset = make()
    state = (jax.jit(reset) if is_compiled else reset)(jax.random.key(0))
    assert_no_array_is_shared(state)
    add = lambda tree: jax.tree.map(lambda x: x if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x + x, tree)
    jax.block_until_ready(jax.jit(add, donate_argnums=0)(state))


@pytest.mark.parametrize("autoreset_mode", ["NextStep", "SameStep"])
def test_a_vector_environment_holds_states_that_its_next_step_may_take_the_memory_of(autoreset_mode):
    pytest.importorskip("gymnasium")
    made = jaxarc.make(TASKS, max_episode_steps=2, **FLAT)
    envs = jaxarc.adapters.GymnasiumVectorEnv(*made, num_envs=2, autoreset_mode=autoreset_mode)
    for begin in (lambda: envs.reset(seed=0), envs.reset, lambda: envs.reset(options={"task_index": 0})):
        begin()
        assert_no_array_is_shared(envs._states)
        for _ in range(4):  # over the ends of episodes
            envs.step(envs.action_space.sample())
            assert_no_array_is_shared(envs._states)


def assert_no_array_is_shared(state):
    leaves = [leaf for leaf in jax.tree.leaves(state) if leaf.size and leaf.dtype != jax.random.key(0).dtype]
    places = [leaf.unsafe_buffer_pointer() for leaf in leaves]
    assert len(set(places)) == len(places)
