"""What is compiled for an accelerator gives the bits of a CPU, and does not call the host in each step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import QUICKLY

import jaxarc
from jaxarc.envs import BboxAction
from jaxarc.envs.canvas import unpack_columns
from jaxarc.tasks.buffer import FEW_TASKS, next_task_index, sample_task_index
from jaxarc.unroll import RandomPolicy, unroll, vectorize
from jaxarc.utils.error_handling import JAXErrorHandler
from jaxarc.wrappers import AutoReset

STEPS, ENVS = 40, 48
WRONG = BboxAction(jnp.int32(99), *(jnp.int32(0),) * 4)


@pytest.fixture
def on_gpu(monkeypatch):
    """Trace as for a GPU; what is traced still runs on the CPU."""

    def switch():
        jax.clear_caches()
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")

    yield switch
    monkeypatch.undo()
    jax.clear_caches()


def make(selection_format, **fields):
    rules = {"max_grid_height": 5, "max_grid_width": 5, "too_large": "skip", "max_episode_steps": 9, **fields}
    env, params = jaxarc.make("arc-agi-1/training", selection_format=selection_format, **rules)
    return AutoReset(env), params


def roll(env, params, count=STEPS):
    policy = vectorize(RandomPolicy(env.action_space(params)))

    def play(key):
        key_reset, key_steps = jax.random.split(key)
        states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(key_reset, ENVS), params)
        keys = jax.random.split(key_steps, (count, ENVS))
        return unroll(env, params, policy, states, keys, lambda t: (t.observation, t.reward, t.done, t.info))

    return play


@pytest.mark.parametrize("selection_format", ["bbox", "mask"])
def test_a_rollout_for_an_accelerator_has_the_bits_of_a_cpu(selection_format, on_gpu):
    env, params = make(selection_format, invalid_action_policy="noop", allow_demo_switching=True)
    key = jax.random.key(3)
    expected = jax.device_get(jax.jit(roll(env, params), compiler_options=QUICKLY)(key))
    on_gpu()
    found = jax.device_get(jax.jit(roll(env, params), compiler_options=QUICKLY)(key))
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize("shape", [(30, 30), (3, 7), (1, 6), (9, 1)], ids=str)
def test_cells_of_columns_have_the_bits_of_a_cpu(shape, on_gpu):
    words = jnp.asarray(np.random.default_rng(0).integers(0, 1 << shape[0], (4, 2, shape[1])), jnp.uint32)
    expected = unpack_columns(words, shape)
    on_gpu()
    np.testing.assert_array_equal(unpack_columns(words, shape), expected)


@pytest.mark.parametrize(("most", "count"), [(3, 1), (3, 37), (1, 37), (3, FEW_TASKS + 1)])
def test_draws_of_tasks_have_the_bits_of_a_cpu(count, most, on_gpu):
    weights = jnp.asarray(np.random.default_rng(0).integers(0, most, count), jnp.float32)  # 1: no task has a weight
    # The fraction next to 1 times a sum may round up to the sum.
    fractions = jnp.append(jnp.linspace(0, 1, 200, endpoint=False), jnp.nextafter(jnp.float32(1), jnp.float32(0)))
    tasks = jnp.arange(count, dtype=jnp.int32)
    draw = lambda: (
        jax.vmap(lambda x: sample_task_index(x, weights))(fractions),
        jax.vmap(lambda x: next_task_index(x, weights))(tasks),
    )
    expected = draw()
    on_gpu()
    jax.tree.map(np.testing.assert_array_equal, draw(), expected)


def test_a_compiled_rollout_for_an_accelerator_does_not_call_the_host(on_gpu):
    env, params = make("bbox")
    assert "callback" in str(jax.make_jaxpr(roll(env, params, 2))(jax.random.key(0)))
    on_gpu()
    with pytest.warns(RuntimeWarning, match=r"'raise' acts like 'noop' .* 'gpu'"):
        program = str(jax.make_jaxpr(jax.jit(roll(env, params, 2)))(jax.random.key(0)))
    assert "callback" not in program


@pytest.mark.filterwarnings("ignore:.*acts like 'noop'")
def test_an_invalid_action_in_a_compiled_program_for_an_accelerator_is_reported(on_gpu):
    on_gpu()
    env, params = make("bbox")
    state, _ = env.reset(jax.random.key(0), params)
    after, _, _, _, info = jax.jit(env.step)(state, WRONG, params)
    assert info["invalid_action"]
    np.testing.assert_array_equal(after.working_grid, state.working_grid)


def test_a_call_of_its_own_raises_on_every_backend(on_gpu):
    on_gpu()
    env, params = make("bbox")
    state, _ = env.reset(jax.random.key(0), params)
    with pytest.raises(RuntimeError, match="operation ID 99"):
        env.step(state, WRONG, params)
    batch = lambda tree: jax.tree.map(lambda x: jnp.stack([x, x]), tree)
    with pytest.raises(RuntimeError, match="operation ID 99"):
        jax.block_until_ready(jax.vmap(env.step, (0, 0, None))(batch(state), batch(WRONG), params))


def test_who_asks_for_errors_gets_them_on_an_accelerator(on_gpu):
    on_gpu()
    env, params = make("bbox")
    try:
        JAXErrorHandler.set_error_mode("raise")
        assert "callback" in str(jax.make_jaxpr(jax.jit(roll(env, params, 2)))(jax.random.key(0)))
    finally:
        JAXErrorHandler.set_error_mode("default")
