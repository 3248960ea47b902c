"""Episodes on tasks that are made at reset."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32

import jaxarc
from jaxarc.constants import SUBMIT
from jaxarc.envs import BboxAction, EnvParams
from jaxarc.prng import random_bits, split_words
from jaxarc.tasks.augmentation import augment_grid
from jaxarc.tasks.buffer import TaskGenerator
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset

CANVAS = (3, 4)
STEPS = 12
ENV = jaxarc.ArcEnvironment()


class PlusOne(TaskGenerator):
    """Random 2x3 grids; the output is the input with every color one higher, or with rule 1 two higher."""

    registry_index: Int32[Array, " T"]
    grid_shape: tuple[int, int] = eqx.field(static=True, default=CANVAS)
    num_train: int = eqx.field(static=True, default=3)
    num_test: int = eqx.field(static=True, default=2)

    def generate(self, key, task_index):
        words = jax.vmap(lambda w: random_bits(jax.random.wrap_key_data(w), 12))(split_words(key, 5))
        inside = (np.indices(CANVAS)[0] < 2) & (np.indices(CANVAS)[1] < 3)
        inputs = jnp.where(inside.reshape(1, 12), (words % 10).astype(jnp.int8), jnp.int8(-1))
        outputs = jnp.where(inputs >= 0, (inputs + 1 + task_index.astype(jnp.int8)) % 10, jnp.int8(-1))
        return inputs, outputs


TASKS = PlusOne(jnp.array([-1, -1], jnp.int32))


def make_params(weights=(1.0, 1.0), **fields):
    defaults = {"invalid_action_policy": "noop", "max_submissions": 9, "allow_demo_switching": True}
    return EnvParams(TASKS, jnp.asarray(weights), create_test_config(STEPS, "bbox", CANVAS, **{**defaults, **fields}))


def test_episode_plays_the_pairs_that_its_state_holds():
    params = make_params()
    states, seen = jax.vmap(ENV.reset, (0, None))(jax.random.split(jax.random.key(0), 50), params)
    rows, pair = np.arange(50), np.asarray(states.pair_index)
    assert set(pair.tolist()) == {0, 1, 2}
    assert set(np.asarray(states.task_index).tolist()) == {0, 1}
    np.testing.assert_array_equal(states.canvas.grid, np.asarray(states.pairs.inputs)[rows, pair])
    np.testing.assert_array_equal(states.canvas.target, np.asarray(states.pairs.outputs)[rows, pair])
    np.testing.assert_array_equal(seen, np.asarray(states.canvas.grid).reshape(50, *CANVAS))
    for i in range(5):
        rule = int(states.task_index[i])
        inputs, outputs = (np.asarray(x[i]) for x in (states.pairs.inputs, states.pairs.outputs))
        np.testing.assert_array_equal(outputs, np.where(inputs < 0, -1, (inputs + 1 + rule) % 10))
    assert len({row.tobytes() for row in np.asarray(states.pairs.inputs)}) == 50


def test_auto_reset_makes_a_new_task_each_time():
    params, env = make_params(max_submissions=1), AutoReset(ENV)
    submit = BboxAction(jnp.int32(SUBMIT), *[jnp.int32(0)] * 4)

    def step(state, _):
        state = env.step(state, submit, params)[0]
        return state, (state.pairs.inputs, state.task_index)

    state, _ = env.reset(jax.random.key(4), params)
    inputs, rules = jax.jit(lambda s: jax.lax.scan(step, s, None, length=100)[1])(state)
    assert len({x.tobytes() for x in np.asarray(inputs)}) == 100
    assert set(np.asarray(rules).tolist()) == {0, 1}


def test_generated_pairs_are_augmented_alike():
    canvas = {"symmetries": "flips", "recolor": "all", "shuffle_demos": True}
    plain, changed = make_params(), make_params(**canvas)
    keys = jax.random.split(jax.random.key(5), 20)
    one, other = (jax.vmap(ENV.reset, (0, None))(keys, params)[0] for params in (plain, changed))
    change = jax.vmap(jax.vmap(augment_grid, (0, None)))
    for name in ("inputs", "outputs"):
        grids = getattr(one.pairs, name).reshape(20, 5, *CANVAS)
        expected = change(grids, other.augmentation).reshape(20, 5, -1)
        np.testing.assert_array_equal(getattr(other.pairs, name), expected)
