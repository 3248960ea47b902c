"""The compiled programs of a rollout: reset a batch and step it, each device its own part."""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from jaxarc.envs.environment import Environment
from jaxarc.envs.operations.compaction import choose_executor
from jaxarc.envs.params import EnvParams
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.parallel.mesh import DATA, REPLICATED, SPLIT, envs_per_device, is_array, local_rows, padded_size
from jaxarc.parallel.metrics import (
    EpisodeMetrics,
    TaskMetrics,
    update_metrics,
    update_task_metrics,
    zero_metrics,
    zero_task_metrics,
)
from jaxarc.parallel.policy import Policy
from jaxarc.parallel.shards import task_specs


class Trajectory(NamedTuple):
    """Steps of many environments; with the states before the first one they give every observation again."""

    actions: StructuredAction  # arrays [S, B, ...]
    rewards: Float32[Array, "S B"]
    dones: Bool[Array, "S B"]  # an episode ended in this step
    terminated: Bool[Array, "S B"]  # it ended by a submit, not by the limit of steps


SMALLEST_CHUNK, LARGEST_CHUNK = 256, 1024
KEY = jax.ShapeDtypeStruct((2,), np.uint32)  # words of a threefry key, whose draws do not depend on vmap or device
_STEP = jax.ShapeDtypeStruct((), np.int32)
_RECORDED = PartitionSpec(None, DATA)  # of arrays [S, B]


class RolloutStatics(NamedTuple):
    """All that the programs depend on but the number of steps, hashable: equal plans share one compilation."""

    treedef: Any  # of (env, params, policy)
    leaves: tuple[Any, ...]  # shape and dtype of each array, everything else as it is
    specs: tuple[PartitionSpec, ...]  # how each array lies on the devices
    num_envs: int
    mesh: Mesh
    records: bool  # whether every step is kept
    counts_tasks: bool  # whether episodes are counted by task


class RolloutCarry(NamedTuple):
    """What a program hands on; of B' rows, those of padding are the last and count for nothing."""

    states: PyTree[Array]
    metrics: EpisodeMetrics
    tasks: TaskMetrics | None


class Program(NamedTuple):
    """What was compiled."""

    call: jax.stages.Compiled
    compile_seconds: float
    bytes_per_device: int | None  # while it runs, arguments and results included; None where XLA does not say


def make_statics(
    env: Environment[Any],
    params: EnvParams,
    policy: Policy,
    num_envs: int,
    mesh: Mesh,
    records: bool = False,
    counts_tasks: bool = False,
) -> tuple[RolloutStatics, tuple[Array, ...]]:
    """Return the plan, and the arrays that its programs take.

    Raises:
        ValueError: the mesh has no axis ``"data"``, or there is no environment.
        TypeError: the params are none.
    """
    if not isinstance(params, EnvParams):
        raise TypeError(f"params must be the EnvParams that jaxarc.make returns, got {type(params).__name__}")
    envs_per_device(num_envs, mesh)
    leaves, treedef = jax.tree.flatten((env, params, policy))
    lies = jax.tree.leaves((jax.tree.map(lambda _: REPLICATED, env), task_specs(params)))
    lies += [REPLICATED] * (len(leaves) - len(lies))
    described = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) if is_array(x) else x for x in leaves)
    specs = tuple(spec for x, spec in zip(leaves, lies, strict=True) if is_array(x))
    statics = RolloutStatics(treedef, described, specs, num_envs, mesh, records, counts_tasks)
    return statics, tuple(x for x in leaves if is_array(x))


@functools.lru_cache(maxsize=64)
def carry_shapes(statics: RolloutStatics) -> RolloutCarry:
    """Return the shapes of what the programs hand on; nothing is allocated or compiled."""
    devices = statics.mesh.shape[DATA]
    smallest = _spread(statics._replace(num_envs=devices), _start, (statics.specs, REPLICATED), SPLIT)
    one = jax.eval_shape(smallest, _arrays(statics), KEY)
    rows = padded_size(statics.num_envs, statics.mesh)
    grown = lambda tree: jax.tree.map(lambda x: jax.ShapeDtypeStruct((rows, *x.shape[1:]), x.dtype), tree)
    return RolloutCarry(grown(one.states), grown(one.metrics), one.tasks)


@functools.lru_cache(maxsize=64)
def compile_start(statics: RolloutStatics) -> Program:
    """Compile the reset of a batch: ``(arrays, words of the key) -> Played``."""
    arguments = (_placed(_arrays(statics), statics.specs, statics), _placed(KEY, REPLICATED, statics))
    return _compile(_spread(statics, _start, (statics.specs, REPLICATED), SPLIT), *arguments)


@functools.lru_cache(maxsize=64)
def compile_play(statics: RolloutStatics, num_steps: int) -> Program:
    """Compile steps of a batch: ``(arrays, words of the key, first step, Played) -> (Played, Trajectory or None)``."""
    in_specs = (statics.specs, REPLICATED, REPLICATED, SPLIT)
    arguments = (_arrays(statics), KEY, _STEP, carry_shapes(statics))
    placed = [_placed(tree, spec, statics) for tree, spec in zip(arguments, in_specs, strict=True)]
    play = functools.partial(_play, num_steps=num_steps)
    return _compile(_spread(statics, play, in_specs, (SPLIT, _RECORDED)), *placed)


def chunk_size(num_envs: int, executor: str) -> int:
    """Environments that a device plays to the end before it turns to the next ones.

    On a CPU a batch that fits into the cache takes all its steps there; a larger one would come from memory in each
    step. Accelerators take everything at once.
    """
    if choose_executor(executor) != "compact" or num_envs <= LARGEST_CHUNK:
        return num_envs
    sizes = [size for size in range(SMALLEST_CHUNK, LARGEST_CHUNK + 1) if num_envs % size == 0]
    return max(sizes, default=num_envs)


def _start(statics: RolloutStatics, arrays: tuple[Array, ...], words: Array) -> RolloutCarry:
    """Reset this device's environments."""
    env, params, _ = _inputs(statics, arrays)
    index, _ = local_rows(statics.num_envs, statics.mesh)
    key_reset, _ = jax.random.split(_key_of(words))
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key_reset, index)
    states = jax.vmap(env.reset, (0, None))(keys, params)[0]
    info = jax.eval_shape(jax.vmap(env.info, (0, None)), states, params)
    metrics = zero_metrics(index, has_returns="episode_return" in info)
    tasks = zero_task_metrics(index, params.tasks.num_tasks) if statics.counts_tasks else None
    return RolloutCarry(states, metrics, tasks)


def _play(
    statics: RolloutStatics,
    arrays: tuple[Array, ...],
    words: Array,
    first_step: Int32[Array, ""],
    carry: RolloutCarry,
    num_steps: int,
) -> tuple[RolloutCarry, Trajectory | None]:
    """Step this device's environments, chunk by chunk; no device waits for another."""
    _, params, _ = _inputs(statics, arrays)
    steps = first_step + jnp.arange(num_steps, dtype=jnp.int32)
    index, counts = local_rows(statics.num_envs, statics.mesh)
    size = chunk_size(index.shape[0], params.config.environment.executor)
    if size == index.shape[0]:
        return _play_chunk(statics, arrays, words, steps, index, counts, carry)
    split = lambda tree: jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), tree)
    states, metrics, tasks = carry
    nothing = jax.tree.map(jnp.zeros_like, tasks)

    def play_chunk(chunk: tuple[Any, ...]) -> tuple[RolloutCarry, Trajectory | None]:
        states, metrics, index, counts = chunk
        return _play_chunk(statics, arrays, words, steps, index, counts, RolloutCarry(states, metrics, nothing))

    after, recorded = jax.lax.map(play_chunk, split((states, metrics, index, counts)))
    joined = lambda tree: jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)
    tasks = jax.tree.map(lambda before, more: before + more.sum(axis=0), tasks, after.tasks)
    beside = lambda x: jnp.moveaxis(x, 0, 1).reshape(num_steps, -1, *x.shape[3:])
    return RolloutCarry(joined(after.states), joined(after.metrics), tasks), jax.tree.map(beside, recorded)


def _play_chunk(
    statics: RolloutStatics,
    arrays: tuple[Array, ...],
    words: Array,
    steps: Int32[Array, " S"],
    index: Int32[Array, " B"],
    counts: Bool[Array, " B"],
    carry: RolloutCarry,
) -> tuple[RolloutCarry, Trajectory | None]:
    """Step environments whose numbers in the whole batch are given; rows that do not count leave the tallies alone."""
    env, params, policy = _inputs(statics, arrays)
    _, key_steps = jax.random.split(_key_of(words))

    def step(carry: RolloutCarry, time_step: Int32[Array, ""]) -> tuple[RolloutCarry, Trajectory | None]:
        states, metrics, tasks = carry
        keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.fold_in(key_steps, time_step), index)
        actions = jax.vmap(policy)(keys, jax.vmap(env.observe, (0, None))(states, params))
        before = jax.vmap(env.info, (0, None))(states, params)
        running = ~(before["terminated"] | before["truncated"])
        states, _, reward, done, info = jax.vmap(env.step, (0, 0, None))(states, actions, params)
        if tasks is not None:
            tasks = update_task_metrics(tasks, counts & running & done, info)
        recorded = Trajectory(actions, reward, done, info["terminated"]) if statics.records else None
        return RolloutCarry(states, update_metrics(metrics, counts, running, reward, done, info), tasks), recorded

    return jax.lax.scan(step, carry, steps)


def _compile(function: Any, *arguments: Any) -> Program:
    began = time.perf_counter()
    program = function.lower(*arguments).compile()
    return Program(program, time.perf_counter() - began, _bytes_in_use(program))


def _spread(statics: RolloutStatics, function: Callable[..., Any], in_specs: Any, out_specs: Any) -> Any:
    _, params, _ = _inputs(statics, statics.leaves)
    # equinox.error_if, behind the policy "raise", does not pass JAX's check of what varies between devices.
    checks = params.config.action.invalid_action_policy != "raise"
    local = functools.partial(function, statics)
    return jax.jit(jax.shard_map(local, mesh=statics.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=checks))


def _arrays(statics: RolloutStatics) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(leaf for leaf in statics.leaves if isinstance(leaf, jax.ShapeDtypeStruct))


def _placed(shapes: Any, spec: Any, statics: RolloutStatics) -> Any:
    """Say how arguments lie on the devices; ``spec`` is one for all, or one for each."""
    specs = spec if isinstance(spec, tuple) else jax.tree.map(lambda _: spec, shapes)
    place = lambda x, spec: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(statics.mesh, spec))
    return jax.tree.map(place, shapes, specs)


def _inputs(statics: RolloutStatics, arrays: Any) -> tuple[Environment[Any], EnvParams, Policy]:
    """Put arrays, or all leaves, back into their places in environment, params and policy."""
    rest = iter(arrays)
    leaves = [next(rest) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf for leaf in statics.leaves]
    return jax.tree.unflatten(statics.treedef, leaves)


def _key_of(words: Array) -> Key[Array, ""]:
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def _bytes_in_use(program: Any) -> int | None:
    analysis = program.memory_analysis()
    if analysis is None:
        return None
    used = analysis.argument_size_in_bytes + analysis.output_size_in_bytes + analysis.temp_size_in_bytes
    return used - analysis.alias_size_in_bytes
