"""``flax.serialization`` stores our states, params and actions, and reads them back bit for bit."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import jaxarc
import jaxarc.games
from jaxarc.adapters import register_flax
from jaxarc.tasks.task import mock_raw_task
from jaxarc.wrappers import AutoReset, EpisodeStatistics, Trials

serialization = pytest.importorskip("flax.serialization", reason="flax is not installed; pip install flax")
SIZE = {"max_grid_height": 6, "max_grid_width": 5}


def assert_comes_back(tree):
    empty = jax.tree.map(np.zeros_like, tree)
    back = serialization.from_bytes(empty, serialization.to_bytes(tree))
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    jax.tree.map(np.testing.assert_array_equal, back, tree)
    assert [leaf.dtype for leaf in jax.tree.leaves(back)] == [leaf.dtype for leaf in jax.tree.leaves(tree)]


@pytest.mark.parametrize("selection_format", ["point", "bbox", "mask"])
def test_states_actions_and_params_come_back(selection_format):
    register_flax()
    env, params = jaxarc.make(
        [mock_raw_task(6, 5)], selection_format=selection_format, history_enabled=True, recolor="all", **SIZE
    )
    keys = jax.random.split(jax.random.key(0), 3)
    states, _ = jax.vmap(EpisodeStatistics(AutoReset(env)).reset, (0, None))(keys, params)
    assert_comes_back((states, env.action_space(params).sample(jax.random.key(1)), params))


def test_states_of_trials_of_generated_tasks_and_of_the_guide_api_come_back():
    register_flax()
    size = {"max_grid_height": 9, "max_grid_width": 9}
    env, params = jaxarc.make("procedural/gravity", mode="trials", include_demonstrations=True, **size)
    assert_comes_back(Trials(env).reset(jax.random.key(0), params)[0])
    assert_comes_back(jaxarc.arc_reset(jax.random.key(0), jaxarc.JaxArcConfig())[0])


@pytest.mark.parametrize("name", ["crates", "lamps"])  # with what undo takes back, and without
def test_states_and_params_of_games_come_back(name):
    register_flax()
    env, params = jaxarc.games.make(name)
    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), 3), params)
    assert_comes_back((jax.vmap(env.step, (0, None, None))(states, 4, params)[0], params))


def test_a_state_with_other_arrays_is_refused():
    register_flax()
    make = lambda **fields: jaxarc.make([mock_raw_task(6, 5)], **SIZE, **fields)
    (env, params), (_, other) = make(history_enabled=False), make(history_enabled=True)
    state, longer = (env.reset(jax.random.key(0), each)[0] for each in (params, other))
    with pytest.raises(ValueError, match=r"ArcEnvState .*action_records"):
        serialization.from_bytes(state, serialization.to_bytes(longer))


@pytest.mark.parametrize("order", ["import flax, jaxarc", "import jaxarc, flax"])
def test_make_registers_where_flax_is_imported(order):
    code = f"{order}; from flax.serialization import to_bytes; import jax; env, params = jaxarc.make('starter'); "
    code += "print(len(to_bytes(env.reset(jax.random.key(0), params)[0])) > 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("shape", [(5, 6), (3, 10)])
def test_a_state_of_another_canvas_with_as_many_cells_is_refused(shape):
    register_flax()
    size = dict(zip(SIZE, shape, strict=True))
    states = []
    for fields in (SIZE, size):
        env, params = jaxarc.make([mock_raw_task(3, 3)], **fields)
        states.append(env.reset(jax.random.key(0), params)[0])
    with pytest.raises(ValueError, match=r"grid_shape is .*; give one of the same"):
        serialization.from_bytes(states[0], serialization.to_bytes(states[1]))


def test_a_batch_is_not_restored_into_a_single_state():
    register_flax()
    env, params = jaxarc.make([mock_raw_task(6, 5)], **SIZE)
    state, _ = env.reset(jax.random.key(0), params)
    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), 3), params)
    with pytest.raises(ValueError, match="what is stored"):
        serialization.from_bytes(state, serialization.to_bytes(states))
