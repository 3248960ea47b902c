"""The code of the guide runs as it stands there: its imports, names, argument orders and numbers.

Where the guide leaves a helper undefined, it comes from ``jaxarc.testing``.
"""

import functools
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.envs import EnvironmentConfig, JaxArcConfig, UnifiedActionConfig, UnifiedDatasetConfig
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction
from jaxarc.testing import create_mock_task, create_test_config
from jaxarc.utils.error_handling import JAXErrorHandler

GRID_SHAPE = (30, 30)


@functools.cache
def quick_start():
    """The guide's config and mock task, and the state that they start with."""
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=100),
        dataset=UnifiedDatasetConfig(max_grid_height=30, max_grid_width=30),
        action=UnifiedActionConfig(selection_format="point"),
    )
    task = create_mock_task()
    key = jax.random.PRNGKey(42)
    state, obs = arc_reset(key, config, task)
    return config, task, state, obs


def five_five(batch_size=None):
    if batch_size is None:
        return PointAction(operation=jnp.array(0), row=jnp.array(5), col=jnp.array(5))
    return PointAction(
        operation=jnp.zeros(batch_size, dtype=jnp.int32),
        row=jnp.full(batch_size, 5, dtype=jnp.int32),
        col=jnp.full(batch_size, 5, dtype=jnp.int32),
    )


# Quick start
def test_quick_start_takes_a_step():
    config, _, state, obs = quick_start()
    after, next_obs, reward, done, info = arc_step(state, five_five(), config)
    assert obs.shape == next_obs.shape == GRID_SHAPE
    assert next_obs[5, 5] == 0
    assert np.argwhere(after.selected).tolist() == [[5, 5]]
    assert after.action_history[0].tolist() == [5, 5, 0, 0, int(state.pair_index), 1]
    assert (reward.shape, reward.dtype, done.dtype) == ((), jnp.float32, jnp.bool_)
    assert not done
    assert info["step_count"] == 1


def test_quick_start_steps_a_batch():
    config, task, _, _ = quick_start()
    batch_size = 16
    keys = jax.random.split(jax.random.PRNGKey(42), batch_size)
    batch_states, batch_obs = batch_reset(keys, config, task)
    assert batch_obs.shape == (batch_size, *GRID_SHAPE)
    batch_states, batch_obs, rewards, dones, infos = batch_step(batch_states, five_five(batch_size), config)
    assert rewards.shape == dones.shape == (batch_size,)
    assert all(leaf.shape[0] == batch_size for leaf in jax.tree.leaves((batch_states, infos)))
    assert (batch_obs[:, 5, 5] == 0).all()


# Compilation
@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (arc_reset, ["key", "config", "task_data"]),
        (arc_step, ["state", "action", "config"]),
        (batch_reset, ["keys", "config", "task_data"]),
        (batch_step, ["states", "actions", "config"]),
    ],
)
def test_core_functions_take_the_named_arguments(function, parameters):
    assert list(inspect.signature(function).parameters) == parameters


def test_core_functions_are_one_compiled_call_each():
    config, task, state, _ = quick_start()
    keys = jax.random.split(jax.random.PRNGKey(0), 2)
    states, _ = batch_reset(keys, config, task)
    calls = [
        (arc_reset, (keys[0], config, task)),
        (arc_step, (state, five_five(), config)),
        (batch_reset, (keys, config, task)),
        (batch_step, (states, five_five(2), config)),
    ]
    for function, arguments in calls:
        jaxpr = eqx.filter_make_jaxpr(function)(*arguments)[0]
        assert [equation.primitive.name for equation in jaxpr.eqns] == ["jit"]


def test_config_is_a_static_argument_of_jit():
    config, _, state, _ = quick_start()
    my_function = jax.jit(lambda state, action, config: arc_step(state, action, config)[1], static_argnames=["config"])
    np.testing.assert_array_equal(my_function(state, five_five(), config), arc_step(state, five_five(), config)[1])


def test_every_config_is_hashable():
    config = JaxArcConfig(action=UnifiedActionConfig(selection_format="point", allowed_operations=[0, 1, 34]))
    assert hash(config) == hash(config.with_fields(allowed_operations=(0, 1, 34)))
    assert config.action.allowed_operations == (0, 1, 34)
    assert all(hash(topic) is not None for topic in vars(config).values())


# Batches
def test_batch_step_with_different_rows_writes_each_row():
    config, task, _, _ = quick_start()
    batch_size = 32
    batch_states, _ = batch_reset(jax.random.split(jax.random.PRNGKey(42), batch_size), config, task)
    row = jnp.arange(batch_size, dtype=jnp.int32) % 10 + 5  # rows 10 and on lie outside the active area
    batch_actions = PointAction(operation=jnp.zeros(batch_size, dtype=jnp.int32), row=row, col=five_five(32).col)
    after, *_ = batch_step(batch_states, batch_actions, config)
    selected = np.asarray(after.selected)
    inside = np.asarray(row) < np.asarray(batch_states.grid_size[:, 0])
    assert (selected.sum((1, 2)) == inside).all()
    assert selected[np.flatnonzero(inside), np.asarray(row)[inside], 5].all()
    assert 0 < inside.sum() < batch_size


def test_split_keys_differ_and_reused_keys_do_not():
    config, task, _, _ = quick_start()
    batch_size = 16
    master_key = jax.random.PRNGKey(42)
    good, _ = batch_reset(jax.random.split(master_key, batch_size), config, task)
    same, _ = batch_reset(jnp.array([master_key] * batch_size), config, task)
    assert len(np.unique(np.asarray(good.key), axis=0)) == batch_size
    assert len(set(good.pair_index.tolist())) > 1
    assert len(np.unique(np.asarray(same.key), axis=0)) == len(set(same.pair_index.tolist())) == 1


# Memory
def history(selection_format, **fields):
    config = JaxArcConfig(action=UnifiedActionConfig(selection_format=selection_format)).with_fields(**fields)
    return jax.eval_shape(lambda: arc_reset(jax.random.PRNGKey(0), config, create_mock_task())[0].action_history)


@pytest.mark.parametrize(
    ("selection_format", "fields", "num_bytes", "reduction"),
    [("point", 6, 24_000, 0.993), ("bbox", 8, 32_000, 0.991), ("mask", 904, 3_616_000, 0.0)],
)
def test_history_of_a_thousand_records_has_the_documented_size(selection_format, fields, num_bytes, reduction):
    record = history(selection_format, max_episode_steps=1000)
    assert record.shape == (1000, fields)
    assert record.size * record.dtype.itemsize == num_bytes
    assert 1 - num_bytes / 3_616_000 == pytest.approx(reduction, abs=1e-3)


@pytest.mark.parametrize(
    ("steps", "limit", "capacity"), [(100, 1000, 100), (50, 1000, 50), (2000, 1000, 1000), (100, 20, 20)]
)
def test_history_capacity_is_the_shorter_of_limit_and_episode(steps, limit, capacity):
    assert history("point", max_episode_steps=steps, max_history_length=limit).shape == (capacity, 6)


def state_bytes(selection_format):
    config = create_test_config(1000, selection_format)
    state = jax.eval_shape(lambda: arc_reset(jax.random.PRNGKey(0), config, create_mock_task())[0])
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


@pytest.mark.parametrize("selection_format", ["point", "bbox"])
def test_state_is_smaller_than_documented(selection_format):
    assert state_bytes(selection_format) <= 0.52 * 2**20
    assert state_bytes(selection_format) <= 0.15 * 3.48 * 2**20
    assert state_bytes("mask") <= 3.48 * 2**20


# Structured actions
def test_point_selects_one_cell():
    selection_mask = five_five().to_selection_mask(GRID_SHAPE)
    assert (selection_mask.shape, selection_mask.dtype) == (GRID_SHAPE, jnp.bool_)
    assert np.argwhere(selection_mask).tolist() == [[5, 5]]


def test_bbox_selects_twenty_five_cells():
    action = BboxAction(operation=jnp.array(0), r1=jnp.array(3), c1=jnp.array(3), r2=jnp.array(7), c2=jnp.array(7))
    selection_mask = np.asarray(action.to_selection_mask(GRID_SHAPE))
    assert selection_mask.sum() == 25
    assert selection_mask[3:8, 3:8].all()
    swapped = BboxAction(action.operation, action.r2, action.c2, action.r1, action.c1)
    np.testing.assert_array_equal(swapped.to_selection_mask(GRID_SHAPE), selection_mask)


def test_mask_is_returned_as_it_is():
    mask = jnp.zeros((30, 30), dtype=jnp.bool_)
    mask = mask.at[10:15, 10:15].set(True)
    action = MaskAction(operation=jnp.array(0), selection=mask)
    assert action.to_selection_mask(GRID_SHAPE) is mask


def test_actions_pass_jit_and_vmap():
    @eqx.filter_jit
    def process_action(action, grid_shape):
        return action.to_selection_mask(grid_shape)

    np.testing.assert_array_equal(process_action(five_five(), GRID_SHAPE), five_five().to_selection_mask(GRID_SHAPE))
    batch_size = 16
    batch_actions = PointAction(
        operation=jnp.zeros(batch_size, dtype=jnp.int32),
        row=jnp.arange(batch_size, dtype=jnp.int32),
        col=jnp.full(batch_size, 5, dtype=jnp.int32),
    )
    batch_masks = jax.vmap(lambda action: action.to_selection_mask(GRID_SHAPE))(batch_actions)
    assert np.argwhere(batch_masks).tolist() == [[i, i, 5] for i in range(batch_size)]


def test_actions_take_their_fields_in_the_documented_order():
    assert eqx.tree_equal(PointAction(1, 2, 3), PointAction(operation=1, row=2, col=3))
    assert eqx.tree_equal(BboxAction(1, 2, 3, 4, 5), BboxAction(operation=1, r1=2, c1=3, r2=4, c2=5))
    mask = np.ones(GRID_SHAPE, bool)
    assert eqx.tree_equal(MaskAction(1, mask), MaskAction(operation=1, selection=mask))


# Errors
def test_validate_and_step():
    @eqx.filter_jit
    def validate_and_step(state, action, config):
        validated_action = JAXErrorHandler.validate_action(action, config)
        return arc_step(state, validated_action, config)

    config, _, state, _ = quick_start()
    assert eqx.tree_equal(validate_and_step(state, five_five(), config), arc_step(state, five_five(), config))
    wrong = eqx.tree_at(lambda action: action.row, five_five(), jnp.int32(30))
    with pytest.raises(RuntimeError, match=r"point row 30.*\[0, 29\]"):
        validate_and_step(state, wrong, config)


# Benchmark
def test_benchmark_loop_goes_on_past_the_end_of_the_episode():
    config = create_test_config()
    task = create_mock_task()
    key = jax.random.PRNGKey(42)
    state, _ = arc_reset(key, config, task)
    num_runs = 150
    dones = []
    for i in range(num_runs):
        action = PointAction(operation=jnp.array(0), row=jnp.array(i % 10 + 5), col=jnp.array(5))
        state, _, _, done, _ = arc_step(state, action, config)
        dones.append(done)
    assert jnp.stack(dones).tolist() == [False] * 99 + [True] * 51
    assert state.step_count == 100
