"""The compiled programs of a rollout: reset a batch and step it, each device its own part."""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int32, Key, PyTree

from jaxarc.envs.environment import Environment
from jaxarc.envs.operations.compaction import choose_executor
from jaxarc.envs.params import EnvParams
from jaxarc.parallel.mesh import DATA, REPLICATED, SPLIT, is_array, require_even_split
from jaxarc.parallel.policy import Policy
from jaxarc.parallel.tally import Tally, count_step, empty_tally

SMALLEST_CHUNK, LARGEST_CHUNK = 256, 1024
KEY = jax.ShapeDtypeStruct((2,), np.uint32)  # words of a threefry key, whose draws do not depend on vmap or device


class Plan(NamedTuple):
    """All that the programs depend on, hashable: equal plans share one compilation."""

    treedef: Any  # of (env, params, policy)
    leaves: tuple[Any, ...]  # shape and dtype of each array, everything else as it is
    num_envs: int
    num_steps: int
    mesh: Mesh


class Programs(NamedTuple):
    """What was compiled."""

    start: Callable[..., Any]  # (arrays, words of the key) -> states
    play: Callable[..., Any]  # (arrays, words of the key, states) -> (states, tally)
    compile_seconds: float
    bytes_per_device: int | None  # while it plays, arguments and results included; None where XLA does not say


def make_plan(
    env: Environment[Any], params: EnvParams, policy: Policy, num_envs: int, num_steps: int, mesh: Mesh
) -> tuple[Plan, tuple[Array, ...]]:
    """Return the plan, and the arrays that its programs take.

    Raises:
        ValueError: ``num_envs`` cannot be split evenly, or ``num_steps`` is below 1.
    """
    require_even_split(num_envs, mesh)
    if num_steps < 1:
        raise ValueError(f"num_steps must be 1 or more, got {num_steps}")
    leaves, treedef = jax.tree.flatten((env, params, policy))
    described = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) if is_array(x) else x for x in leaves)
    return Plan(treedef, described, num_envs, num_steps, mesh), tuple(x for x in leaves if is_array(x))


@functools.lru_cache(maxsize=64)
def state_shapes(plan: Plan) -> PyTree[jax.ShapeDtypeStruct]:
    """Return the shapes of the states of the whole batch; nothing is allocated or compiled."""
    arrays = [leaf for leaf in plan.leaves if isinstance(leaf, jax.ShapeDtypeStruct)]
    reset = lambda arrays, words: _reset(plan, arrays, words, jnp.arange(1, dtype=jnp.int32))
    one = jax.eval_shape(reset, arrays, KEY)
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((plan.num_envs, *x.shape[1:]), x.dtype), one)


@functools.lru_cache(maxsize=64)
def compile_programs(plan: Plan) -> Programs:
    """Compile the programs of a plan for its devices."""
    began = time.perf_counter()
    placed = lambda tree, spec: jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(plan.mesh, spec)), tree
    )
    arrays = tuple(leaf for leaf in plan.leaves if isinstance(leaf, jax.ShapeDtypeStruct))
    shared, states = placed((arrays, KEY), REPLICATED), placed(state_shapes(plan), SPLIT)
    start = _spread(plan, _start, (REPLICATED, REPLICATED)).lower(*shared).compile()
    play = _spread(plan, _play, (REPLICATED, REPLICATED, SPLIT)).lower(*shared, states).compile()
    return Programs(start, play, time.perf_counter() - began, _bytes_in_use(play))


def _spread(plan: Plan, function: Callable[..., Any], in_specs: tuple[PartitionSpec, ...]) -> Any:
    _, params, _ = _inputs(plan, plan.leaves)
    # equinox.error_if, behind the policy "raise", does not pass JAX's check of what varies between devices.
    checks = params.config.action.invalid_action_policy != "raise"
    local = functools.partial(function, plan)
    return jax.jit(jax.shard_map(local, mesh=plan.mesh, in_specs=in_specs, out_specs=SPLIT, check_vma=checks))


def _start(plan: Plan, arrays: tuple[Array, ...], words: Array) -> PyTree[Array]:
    """Reset this device's environments."""
    return _reset(plan, arrays, words, _local_index(plan))


def chunk_size(num_envs: int, executor: str) -> int:
    """Environments that a device plays to the end before it turns to the next ones.

    On a CPU a batch that fits into the cache takes all its steps there; a larger one would come from memory in each
    step. Accelerators take everything at once.
    """
    if choose_executor(executor) != "compact" or num_envs <= LARGEST_CHUNK:
        return num_envs
    sizes = [size for size in range(SMALLEST_CHUNK, LARGEST_CHUNK + 1) if num_envs % size == 0]
    return max(sizes, default=num_envs)


def _play(plan: Plan, arrays: tuple[Array, ...], words: Array, states: PyTree[Array]) -> tuple[PyTree[Array], Tally]:
    """Step this device's environments, chunk by chunk; no device waits for another."""
    _, params, _ = _inputs(plan, arrays)
    index = _local_index(plan)
    size = chunk_size(index.shape[0], params.config.environment.executor)
    if size == index.shape[0]:
        return _play_chunk(plan, arrays, words, states, index)
    split = lambda tree: jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), tree)
    played = jax.lax.map(lambda chunk: _play_chunk(plan, arrays, words, *chunk), split((states, index)))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), played)


def _play_chunk(
    plan: Plan, arrays: tuple[Array, ...], words: Array, states: PyTree[Array], index: Int32[Array, " B"]
) -> tuple[PyTree[Array], Tally]:
    """Step environments whose numbers in the whole batch are given."""
    env, params, policy = _inputs(plan, arrays)
    _, key_steps = jax.random.split(_key_of(words))

    def step(carry: tuple[PyTree[Array], Tally], time_step: Int32[Array, ""]) -> tuple[tuple, None]:
        states, tally = carry
        keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.fold_in(key_steps, time_step), index)
        actions = jax.vmap(policy)(keys, jax.vmap(env.observe, (0, None))(states, params))
        before = jax.vmap(env.info, (0, None))(states, params)
        running = ~(before["terminated"] | before["truncated"])
        states, _, reward, done, info = jax.vmap(env.step, (0, 0, None))(states, actions, params)
        return (states, count_step(tally, running, reward, done, info)), None

    info = jax.eval_shape(jax.vmap(env.info, (0, None)), states, params)
    carry = states, empty_tally(index, has_returns="episode_return" in info)
    return jax.lax.scan(step, carry, jnp.arange(plan.num_steps, dtype=jnp.int32))[0]


def _reset(plan: Plan, arrays: Any, words: Array, index: Int32[Array, " B"]) -> PyTree[Array]:
    env, params, _ = _inputs(plan, arrays)
    key_reset, _ = jax.random.split(_key_of(words))
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key_reset, index)
    return jax.vmap(env.reset, (0, None))(keys, params)[0]


def _local_index(plan: Plan) -> Int32[Array, " B"]:
    """Numbers of this device's environments in the whole batch."""
    count = require_even_split(plan.num_envs, plan.mesh)
    return jax.lax.axis_index(DATA) * count + jnp.arange(count, dtype=jnp.int32)


def _inputs(plan: Plan, arrays: Any) -> tuple[Environment[Any], EnvParams, Policy]:
    """Put arrays, or all leaves, back into their places in environment, params and policy."""
    rest = iter(arrays)
    leaves = [next(rest) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf for leaf in plan.leaves]
    return jax.tree.unflatten(plan.treedef, leaves)


def _key_of(words: Array) -> Key[Array, ""]:
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def _bytes_in_use(program: Any) -> int | None:
    analysis = program.memory_analysis()
    if analysis is None:
        return None
    used = analysis.argument_size_in_bytes + analysis.output_size_in_bytes + analysis.temp_size_in_bytes
    return used - analysis.alias_size_in_bytes
