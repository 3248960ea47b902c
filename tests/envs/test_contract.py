"""However a step is called, it gives the same bits; and what it returns never makes a loop compile again."""

import functools
import json
import os

import chex
import compiling
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from process_group import run_python
from reference.cases import random_boxes, random_masks, random_operations, random_points
from small_tasks import tasks_of

import jaxarc
from jaxarc.envs import BboxAction, EnvParams, MaskAction, PointAction, arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs import functional as guide
from jaxarc.envs.operations import execute as executor
from jaxarc.tasks import buffer_of_task, create_mock_task
from jaxarc.tasks.procedural import procedural_tasks
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset, EpisodeStatistics, Trials

H, W = CANVAS = (3, 4)
B, S = 40, 8  # more environments than a reset takes in one block, more steps than an episode has
FORMATS = ["point", "bbox", "mask"]
EXECUTORS = {"point": "xla", "bbox": "auto", "mask": "auto"}
TASK = create_mock_task(H, W)


def make_config(selection_format, **fields):
    defaults = {
        "invalid_action_policy": "noop",
        "max_submissions": 2,
        "allow_demo_switching": True,
        "gamma": 0.9,
        "executor": EXECUTORS[selection_format],
    }
    return create_test_config(6, selection_format, CANVAS, **{**defaults, **fields})


@functools.cache
def random_actions(selection_format, shape, seed=0):
    """Random actions with the leading axes ``shape``, some of them invalid."""
    rng, count = np.random.default_rng(seed), int(np.prod(shape))
    operation = random_operations(rng, count)
    match selection_format:
        case "point":
            action = PointAction(operation, *random_points(rng, count, H, W).T)
        case "bbox":
            action = BboxAction(operation, *random_boxes(rng, count, H, W).T)
        case _:
            action = MaskAction(operation, random_masks(rng, count, H, W))
    return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), action)


def at(tree, *index):
    return jax.tree.map(lambda x: x[index], tree)


def stacked(trees):
    return jax.tree.map(lambda *x: jnp.stack(x), *trees)


def assert_same_bits(ours, theirs):
    chex.assert_trees_all_equal_structs(ours, theirs)
    chex.assert_trees_all_equal(ours, theirs, strict=True)


@functools.cache
def start(config, count=B):
    return batch_reset(jax.random.split(jax.random.key(0), count), config, TASK)[0]


@functools.cache
def batch_rollout(selection_format):
    """The results of ``batch_step`` in a Python loop, stacked over steps and environments, and the config."""
    config = make_config(selection_format)
    states, results = start(config), []
    for step in range(S):
        results.append(batch_step(states, at(random_actions(selection_format, (S, B)), step), config))
        states = results[-1][0]
    return config, stacked(results)


# One step, many ways to call it.
@pytest.mark.parametrize("selection_format", FORMATS)
def test_single_steps_equal_the_batch(selection_format):
    config, batch = batch_rollout(selection_format)
    assert batch[3].any()
    assert not batch[3][0].all()
    actions = random_actions(selection_format, (S, B))
    for i in range(0, B, 5):
        state = at(start(config), i)
        for step in range(S):
            result = arc_step(state, at(actions, step, i), config)
            assert_same_bits(result, at(batch, step, i))
            state = result[0]


def scan_over(step):
    """The results of a step function, one for each action."""

    def body(state, action):
        result = step(state, action)
        return result[0], result

    return lambda state, actions: jax.lax.scan(body, state, actions)[1]


@pytest.mark.parametrize("selection_format", FORMATS)
def test_scan_over_a_batch_equals_the_python_loop(selection_format):
    config, batch = batch_rollout(selection_format)
    run = eqx.filter_jit(scan_over(functools.partial(batch_step, config=config)))
    assert_same_bits(run(start(config), random_actions(selection_format, (S, B))), batch)


@pytest.mark.parametrize("selection_format", FORMATS)
def test_eager_step_equals_the_compiled_one(selection_format):
    config, batch = batch_rollout(selection_format)
    action = at(random_actions(selection_format, (S, B)), 0)
    with jax.disable_jit():
        state, observation, reward, done, info = batch_step(start(config), action, config)
    compiled_state, compiled_observation, compiled_reward, *others = at(batch, 0)
    assert_same_bits((state, observation, done, info), (compiled_state, compiled_observation, *others))
    # compiled, gamma * new - old is one instruction that rounds once
    np.testing.assert_allclose(reward, compiled_reward, rtol=0, atol=1e-7)


@pytest.mark.parametrize("selection_format", FORMATS)
def test_reset_alone_equals_reset_in_a_batch(selection_format):
    config = make_config(selection_format, start_grid="partial")
    batch = batch_reset(jax.random.split(jax.random.key(0), 5), config, TASK)
    for i, key in enumerate(jax.random.split(jax.random.key(0), 5)):
        assert_same_bits(arc_reset(key, config, TASK), at(batch, i))


@pytest.mark.parametrize("selection_format", FORMATS)
def test_environment_does_not_depend_on_batch_size_or_neighbors(selection_format):
    config, batch = batch_rollout(selection_format)
    states, action = start(config), at(random_actions(selection_format, (S, B)), 0)
    for rows in (np.random.default_rng(0).permutation(B), [*range(B), *range(B)]):
        result = batch_step(at(states, jnp.array(rows)), at(action, jnp.array(rows)), config)
        assert_same_bits(result, at(batch, 0, jnp.array(rows)))


def test_agent_api_steps_like_the_guide_api():
    config = make_config("bbox")
    params = EnvParams(buffer_of_task(TASK), jnp.ones(1), config)
    env = jaxarc.ArcEnvironment()
    agent = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), B), params)[0]
    tasks = jax.tree.map(lambda x: jnp.broadcast_to(x, (B, *x.shape)), TASK)
    user = eqx.tree_at(lambda s: s.task_data, agent, tasks, is_leaf=lambda x: x is None)
    for step in range(3):
        action = at(random_actions("bbox", (S, B)), step)
        agent, *theirs = jax.vmap(env.step, (0, 0, None))(agent, action, params)
        user, *ours = batch_step(user, action, config)
        assert_same_bits(ours, theirs)
    assert_same_bits(user.canvas, agent.canvas)


def test_typed_and_raw_keys_give_the_same_result():
    config = make_config("point", start_grid="random")
    typed, raw = jax.random.key(3), jax.random.PRNGKey(3)
    assert_same_bits(arc_reset(typed, config, TASK), arc_reset(raw, config, TASK))
    split = jax.random.split
    assert_same_bits(batch_reset(split(typed, 4), config, TASK), batch_reset(split(raw, 4), config, TASK))
    env, params = AutoReset(jaxarc.ArcEnvironment()), EnvParams(buffer_of_task(TASK), jnp.ones(1), config)
    assert_same_bits(env.reset(typed, params), env.reset(raw, params))


# One kernel for all environments.
@pytest.mark.parametrize(("shape", "size"), [((), 1), ((7,), 7), ((2, 5), 10), ((2, 1, 3), 6)], ids=str)
def test_vmap_of_the_single_step_reaches_the_batch_kernel(monkeypatch, shape, size):
    sizes, kernel = [], executor.execute_batch

    def counted(canvas, command, *rest):
        sizes.append(command.operation.shape)
        return kernel(canvas, command, *rest)

    monkeypatch.setattr(executor, "execute_batch", counted)
    executor.kernel_of.cache_clear()  # with a config not seen before nothing is cached
    # The library in C++ takes the whole step, not the kernel.
    config = make_config("bbox", success_bonus=float(np.prod(shape)), executor="xla")
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (*shape, *x.shape)), at(start(make_config("bbox")), 0))
    step = functools.partial(arc_step, config=config)
    for _ in shape:
        step = jax.vmap(step)
    jaxpr = jax.make_jaxpr(step)(states, random_actions("bbox", shape))
    assert sizes[-1] == (size,)
    assert len(sizes) <= 1 + len(shape)  # at most one trace per level of vmap, none per environment
    assert f"i8[{size},{H * W}]" in str(jaxpr)


# Stable structure: a loop compiles once.
def avals(tree):
    return jax.tree.map(lambda x: (x.shape, x.dtype, x.weak_type), tree)


def signature(tree):
    return jax.tree.structure(tree), jax.tree.leaves(avals(tree), is_leaf=lambda x: isinstance(x, tuple))


OBSERVATIONS = [{}, {"reveal_target": True, "include_step_count": True}]


def two_tasks():
    grid = lambda color: np.full((H, W), color)
    return tasks_of((grid(1), grid(2)), (grid(3), grid(4)))


def make_env(kind, config):
    env, params = jaxarc.make(two_tasks(), config)
    return {"plain": env, "auto": AutoReset(env), "statistics": EpisodeStatistics(AutoReset(env))}[kind], params


@pytest.mark.parametrize("more", OBSERVATIONS, ids=["plain", "more"])
@pytest.mark.parametrize("kind", ["plain", "auto", "statistics"])
def test_state_observation_and_info_keep_their_signature_from_reset_on(kind, more):
    env, params = make_env(kind, make_config("bbox", **more))
    state, observation = env.reset(jax.random.key(0), params)
    expected = signature((state, observation, env.info(state, params)))
    for step in range(S):
        state, observation, *_, info = env.step(state, at(random_actions("bbox", (S, B)), step, 0), params)
        assert signature((state, observation, info)) == expected
        assert signature(env.info(state, params)) == signature(info)
        assert signature(env.observe(state, params)) == signature(observation)


@functools.cache
def played(kind, executor, *shape):
    """All that a batch of this shape returns in a scan over its steps, with auto-resets."""
    fields = {"mode": "trials", "num_trials": 1, "allow_demo_switching": False} if kind == "trials" else {}
    tasks = procedural_tasks("color-map", CANVAS, side=(2, 3)) if kind == "generated" else two_tasks()
    env, params = jaxarc.make(tasks, make_config("bbox", executor=executor, **fields))
    env = AutoReset(Trials(env) if kind == "trials" else env)
    reset, step = env.reset, env.step
    keys, actions = jax.random.split(jax.random.key(0), 12), random_actions("bbox", (2 * S, 12))
    if not shape:
        keys, actions = keys[7], at(actions, slice(None), 7)
    for _ in shape:
        reset, step = jax.vmap(reset, (0, None)), jax.vmap(step, (0, 0, None))
    keys, actions = keys.reshape(shape), jax.tree.map(lambda x: x.reshape(2 * S, *shape), actions)
    run = scan_over(lambda states, action: step(states, action, params))
    return jax.jit(lambda keys, actions: run(reset(keys, params)[0], actions))(keys, actions)


@pytest.mark.parametrize("executor", compiling.EXECUTORS)
@pytest.mark.parametrize("kind", ["tasks", "generated", "trials"])
def test_an_environment_alone_and_nested_batches_are_what_they_are_in_one_batch_by_any_executor(kind, executor):
    batch = played(kind, executor, 12)
    assert batch[3].any()
    assert_same_bits(played(kind, executor), at(batch, slice(None), 7))
    assert_same_bits(played(kind, executor, 4, 3), jax.tree.map(lambda x: x.reshape(2 * S, 4, 3, *x.shape[2:]), batch))
    states, observations, rewards, *others = played(kind, "xla", 12)
    np.testing.assert_allclose(batch[2], rewards, rtol=0, atol=1e-6)  # of another order of roundings
    assert_same_bits(batch, (states, observations, batch[2], *others))


@pytest.fixture
def traces(monkeypatch):
    """How often the guide API's step was traced."""
    seen, take_step = [], guide.take_step

    def counted(*args):
        seen.append(args)
        return take_step(*args)

    monkeypatch.setattr(guide, "take_step", counted)
    return seen


def test_python_loop_compiles_the_step_once(traces):
    config = make_config("point", success_bonus=41.0)
    state, _ = arc_reset(jax.random.key(0), config, TASK)
    for step in range(S):
        state, *_ = arc_step(state, at(random_actions("point", (S, B)), step, 0), config)
    assert len(traces) == 1


def test_equal_configs_and_equal_shapes_share_one_compilation(traces):
    state = at(start(make_config("point")), 0)
    for count in (1, 2, 3):  # a task with another number of pairs in as many slots
        task = eqx.tree_at(lambda t: (t.num_train_pairs, t.task_index), TASK, (jnp.int32(count), jnp.int32(count)))
        state, _ = arc_reset(jax.random.key(count), make_config("point", success_bonus=42.0), task)
        arc_step(state, PointAction(np.int64(count), count - 1, jnp.int32(0)), make_config("point", success_bonus=42.0))
    assert len(traces) == 1


@pytest.mark.parametrize("kind", ["plain", "auto", "statistics"])
def test_loop_over_an_environment_compiles_once_whatever_the_weights(kind):
    env, params = make_env(kind, make_config("mask"))
    chex.clear_trace_counter()
    reset = eqx.filter_jit(chex.assert_max_traces(lambda *args: env.reset(*args), n=1))
    step = eqx.filter_jit(chex.assert_max_traces(lambda *args: env.step(*args), n=1))
    for weights in ([0.5, 0.5], [0.0, 1.0], [1.0, 0.0]):
        params = eqx.tree_at(lambda p: p.weights, params, jnp.array(weights))
        state, _ = reset(jax.random.key(7), params)
        for i in range(S):
            state, *_ = step(state, at(random_actions("mask", (S, B)), i, 0), params)


# Other worlds: 64-bit numbers, many devices.


def devices_agree(num_devices):
    """Compare rollouts of the guide API and of auto-resetting environments, spread over devices and not."""
    mesh = jax.make_mesh((num_devices,), ("env",), axis_types=(AxisType.Auto,))
    rows, steps = PartitionSpec("env"), PartitionSpec(None, "env")
    spread = functools.partial(jax.shard_map, mesh=mesh)
    count = 2 * num_devices
    config = make_config("mask", invalid_action_policy="raise")

    def roll(states, actions):
        def step(states, action):
            result = batch_step(states, action, config)
            return result[0], result

        return jax.lax.scan(step, states, actions)[1]

    actions = random_actions("mask", (S, count))
    actions = eqx.tree_at(lambda a: a.operation, actions, jnp.abs(actions.operation) % 35)
    arguments = start(config, count), actions
    alone = eqx.filter_jit(roll)(*arguments)
    everywhere = spread(roll, in_specs=(rows, steps), out_specs=steps)
    assert_same_bits(eqx.filter_jit(everywhere)(*arguments), alone)

    env, params = make_env("statistics", make_config("bbox"))

    def play(params, keys, actions):
        states, _ = jax.vmap(env.reset, (0, None))(keys, params)

        def step(states, action):
            states, *result = jax.vmap(env.step, (0, 0, None))(states, action, params)
            return states, result

        return jax.lax.scan(step, states, actions)[1]

    arguments = params, jax.random.split(jax.random.key(0), count), random_actions("bbox", (S, count))
    everywhere = spread(play, in_specs=(PartitionSpec(), rows, steps), out_specs=steps)
    shared = eqx.filter_jit(everywhere)(*arguments)
    assert_same_bits(shared, eqx.filter_jit(play)(*arguments))
    # On a mesh whose axes JAX tracks in types, as jax.set_mesh makes them by default.
    mesh = jax.make_mesh((num_devices,), ("env",), axis_types=(AxisType.Explicit,))
    specs = (PartitionSpec(), rows, steps)
    placed = [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in zip(arguments, specs, strict=True)]
    assert_same_bits(eqx.filter_jit(play)(*placed), shared)
    with jax.set_mesh(mesh):
        assert_same_bits(eqx.filter_jit(play)(*placed), shared)
    return len(jax.tree.leaves(shared)[0].sharding.device_set)


def run_here(call, **options):
    """Call a function of this file in a process of its own."""
    program = f"import json, conftest, jax, test_contract as c; print(json.dumps({call}))"
    return json.loads(run_python(program, path=os.path.dirname(__file__), **options))


def test_eight_devices_give_the_same_bits_as_one():
    assert run_here("c.devices_agree(8)", devices=8) == 8
