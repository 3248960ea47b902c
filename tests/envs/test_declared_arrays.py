"""Arrays of another dtype are cast where no value changes; the others are refused by name, on every executor."""

import dataclasses
from operator import attrgetter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import EXECUTORS

import jaxarc
from jaxarc.envs.action_space import action_space
from jaxarc.envs.executor import start_where
from jaxarc.tasks.task import mock_raw_task
from jaxarc.wrappers import AutoReset

B = 32
# Each executor with one of the two ways to step: how an array is cast depends on neither.
WAYS = pytest.mark.parametrize(
    ("executor", "wrap"),
    [(EXECUTORS[0], AutoReset), ("xla", lambda env: env)],
    ids=["native-auto_reset", "xla-plain"],
)


def playing(executor, selection_format="bbox", **fields):
    few = {"max_grid_height": 6, "max_grid_width": 5, "allowed_operations": (0, 1, 34), "max_episode_steps": 2}
    fields = {**few, "history_enabled": True, **fields}
    tasks = [mock_raw_task(6, 5)]
    env, params = jaxarc.make(tasks, selection_format=selection_format, executor=executor, **fields)
    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(1), B), params)
    keys = jax.random.split(jax.random.key(2), B)
    return env, params, states, jax.vmap(action_space(params.config).sample)(keys)


def step_all(env, states, actions, params):
    return jax.vmap(env.step, (0, 0, None))(states, actions, params)


def cast(tree, dtype, *kinds):
    fits = lambda leaf: any(jnp.issubdtype(leaf.dtype, kind) for kind in kinds or (jnp.generic,))
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if fits(leaf) else leaf, tree)


def assert_same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)
    assert jax.tree.map(lambda leaf: leaf.dtype, one) == jax.tree.map(lambda leaf: leaf.dtype, other)


@WAYS
class TestAcast:
    @pytest.mark.parametrize(("selection_format", "dtype"), [("point", "int8"), ("bbox", "uint8"), ("mask", "uint16")])
    def test_of_actions_that_changes_no_value_is_made(self, executor, wrap, selection_format, dtype):
        env, params, states, actions = playing(executor, selection_format)
        expected = step_all(wrap(env), states, actions, params)
        assert_same(step_all(wrap(env), states, cast(actions, dtype, jnp.integer), params), expected)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_of_a_half_precision_similarity_is_made(self, executor, wrap, dtype):
        env, params, states, actions = playing(executor)
        halved = cast(states, dtype, jnp.floating)
        expected = step_all(wrap(env), cast(halved, "float32", jnp.floating), actions, params)
        assert_same(step_all(wrap(env), halved, actions, params), expected)

    def test_of_numbers_of_the_tasks_is_made(self, executor, wrap):
        env, params, states, actions = playing(executor)
        few = dataclasses.replace(
            params.tasks, **{name: getattr(params.tasks, name).astype("int16") for name in COUNTS}
        )
        narrow = jax.tree.unflatten(jax.tree.structure(params), jax.tree.leaves((few, params.weights)))
        assert_same(step_all(wrap(env), states, actions, narrow), step_all(wrap(env), states, actions, params))

    def test_of_weak_types_and_of_numpy_is_made(self, executor, wrap):
        env, params, states, actions = playing(executor)
        expected = step_all(wrap(env), states, actions, params)
        assert_same(step_all(wrap(env), *jax.tree.map(np.asarray, (states, actions)), params), expected)
        weak = jax.tree.map(lambda leaf: jnp.asarray(0) + leaf if leaf.dtype == jnp.int32 else leaf, (states, actions))
        assert_same(step_all(wrap(env), *weak, params), expected)
        one = lambda tree: jax.tree.map(lambda leaf: leaf[0], tree)
        numbers = jax.tree.map(int, one(actions))
        assert_same(wrap(env).step(one(states), numbers, params), one(expected))


COUNTS = ("first_pair", "num_train", "num_test")
FIELDS = {  # field -> the dtype to which it is cast, the one that it declares
    "action.operation": ("float32", "int32"),
    "action.c2": ("bool", "int32"),
    "action.selection": ("int32", "bool"),
    "state.canvas.grid": ("int32", "int8"),
    "state.counts": ("uint32", "int32"),
    "state.endings": ("uint8", "bool"),
    "state.similarity_score": ("int8", "float32"),
    "state.key": ("int32", "uint32"),
    "state.action_records": ("int8", "uint8"),
    "params.tasks.inputs": ("int16", "int8"),
    "params.tasks.num_test": ("float32", "int32"),
    "params.weights": ("int32", "float32"),
}


def changed(field, change, **given):
    """The trees, with something else in place of one array."""
    where = lambda given: attrgetter(field.partition(".")[2])(given[field.partition(".")[0]])
    given = eqx.tree_at(where, given, replace_fn=change)
    return given["state"], given["action"], given["params"]


@WAYS
@pytest.mark.parametrize("field", FIELDS)
def test_another_dtype_is_refused_by_the_name_of_its_field(executor, wrap, field):
    env, params, states, actions = playing(executor, "mask" if field == "action.selection" else "bbox")
    dtype, wanted = FIELDS[field]
    given = changed(field, lambda leaf: leaf.astype(dtype), state=states, action=actions, params=params)
    for call in (step_all, jax.jit(step_all, static_argnums=0)):
        with pytest.raises(TypeError, match=rf"^{field} .*\b{wanted}\b"):
            call(wrap(env), *given)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_number_of_64_bits_is_refused(executor):
    env, params, states, actions = playing(executor)
    with jax.enable_x64(True):
        with pytest.raises(TypeError, match=r"^action\.operation .*\bint32\b.*\bint64\b"):
            step_all(env, states, cast(actions, "int64"), params)
        with pytest.raises(TypeError, match=r"^state\.similarity_score .*\bfloat32\b.*\bfloat64\b"):
            step_all(env, cast(states, "float64", jnp.floating), actions, params)
        with pytest.raises(TypeError, match=r"^state\.counts .*\bint32\b.*\bint64\b"):
            step_all(env, dataclasses.replace(states, counts=np.asarray(states.counts, np.int64)), actions, params)


SHAPES = {  # field -> what is made of its array
    "state.counts": lambda counts: counts[:, :4],
    "state.endings": lambda endings: endings[..., None],
    "state.action_records": lambda records: records[..., :-1],
    "state.canvas.grid": lambda grid: grid[:, :-1],
    "state.canvas.sizes": lambda sizes: sizes[:, :2],
    "state.canvas.selection": lambda selection: selection[:, :2],
    "params.tasks.inputs": lambda inputs: inputs[:, :-1],
    "params.tasks.outputs": lambda outputs: outputs[:-1],
    "params.tasks.num_test": lambda counts: counts.repeat(2),
    "params.weights": lambda weights: weights.repeat(2),
}


@WAYS
@pytest.mark.parametrize("field", SHAPES)
def test_another_shape_is_refused_by_the_name_of_its_field(executor, wrap, field):
    env, params, states, actions = playing(executor)
    given = changed(field, SHAPES[field], state=states, action=actions, params=params)
    with pytest.raises(ValueError, match=rf"^{field} must have shape"):
        step_all(wrap(env), *given)


def test_which_environments_reset_is_a_bool_of_each():
    _, params, states, _ = playing(EXECUTORS[0])
    with pytest.raises(TypeError, match=r"^need must be bool\[1\], got int32"):
        jax.vmap(start_where, (0, 0, None))(jnp.ones(B, jnp.int32), states, params)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_guide_api_refuses_and_casts_too(executor):
    config = jaxarc.JaxArcConfig().with_fields(selection_format="point", executor=executor)
    states, _ = jaxarc.batch_reset(jax.random.split(jax.random.key(0), 4), config)
    actions = jax.vmap(action_space(config).sample)(jax.random.split(jax.random.key(0), 4))
    expected = jaxarc.batch_step(states, actions, config)
    assert_same(jaxarc.batch_step(states, cast(actions, "uint8"), config), expected)
    with pytest.raises(TypeError, match=r"^state\.canvas\.grid .*\bint8\b"):
        jaxarc.batch_step(cast(states, "int32", jnp.integer), actions, config)
