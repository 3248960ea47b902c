"""The compiled programs of a rollout: reset a batch and step it, each device its own rows.

A rollout of B environments on D devices is two programs, each a ``shard_map`` over the mesh axis ``"data"``:
``compile_start`` resets all environments, ``compile_play`` takes S steps. No device waits for another inside them.
Eight environments on two devices, on a CPU with chunks of two::

    device 0: S steps of environments 0 1, then S steps of 2 3
    device 1: S steps of environments 4 5, then S steps of 6 7

The bits of environment i are the same for any B, D and chunk size, because its keys depend on nothing else: the key of
its reset is ``fold_in(key_reset, i)``, and that of its action in a step ``fold_in(fold_in(key_steps, step), i)``.
"""

import functools
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree, UInt32

from jaxarc.device_arrays import own_arrays
from jaxarc.envs.action_space import fold_in_each
from jaxarc.fusion import compiles_for_cpu
from jaxarc.interface import Environment
from jaxarc.parallel.mesh import DATA, REPLICATED, SPLIT, envs_per_device, is_array, local_rows, padded_size
from jaxarc.parallel.rollout_metrics import (
    EpisodeMetrics,
    TaskMetrics,
    update_metrics,
    update_task_metrics,
    zero_metrics,
    zero_task_metrics,
)
from jaxarc.unroll import Policy, actor_step, vectorize

SMALLEST_CHUNK: Final = 256  # environments
LARGEST_CHUNK: Final = 1024
KEY: Final = jax.ShapeDtypeStruct((2,), np.uint32)  # data of a threefry key; its draws depend on no vmap or device
_STEP: Final = jax.ShapeDtypeStruct((), np.int32)
_RECORDED: Final = PartitionSpec(None, DATA)  # of arrays [S, B]

Arrays = tuple[Array, ...]  # of environment, params and policy, in the order of ``jax.tree.leaves``


class Trajectory(NamedTuple):
    """Steps of many environments; with the states before the first one they give every observation again."""

    actions: Any  # arrays [S, B, ...]
    rewards: Float32[Array, "S B"]
    dones: Bool[Array, "S B"]  # an episode ended in this step
    terminated: Bool[Array, "S B"]  # it ended by a submit, not by the limit of steps


class RolloutStatics(NamedTuple):
    """Everything that the programs depend on but the number of steps; hashable, and equal ones share a compilation."""

    treedef: Any  # a PyTreeDef, of (env, params, policy)
    leaves: tuple[Any, ...]  # shape and dtype of each array, everything else as it is
    num_envs: int  # B
    mesh: Mesh
    records: bool  # whether every step is kept
    counts_tasks: bool  # whether episodes are counted by task


class RolloutCarry(NamedTuple):
    """The carry from one program to the next: B' rows, of which the last B' - B are padding."""

    states: PyTree[Array]  # [B', ...]
    metrics: EpisodeMetrics  # [B']; 0 in rows of padding
    tasks: TaskMetrics | None  # [D, T]; None where tasks are not counted


class Program(NamedTuple):
    """A compiled program and what it costs."""

    call: jax.stages.Compiled
    compile_seconds: float
    bytes_per_device: int | None  # while it runs, arguments and results included; None where XLA does not say


def make_statics(
    env: Environment[Any, Any],
    params: Any,
    policy: Policy,
    num_envs: int,
    mesh: Mesh,
    records: bool = False,
    counts_tasks: bool = False,
) -> tuple[RolloutStatics, Arrays]:
    """Separate what is compiled from the arrays that the programs take.

    Raises:
        ValueError: the mesh has no axis ``"data"``, or there is no environment.
        TypeError: ``params`` are not those of the environment.
    """
    env.require(params)
    envs_per_device(num_envs, mesh)
    # Arrays become arguments of the program, described by shape and dtype; everything else is a part of its identity.
    # So new weights of a policy run the same program, and another config compiles anew.
    leaves, treedef = jax.tree.flatten(own_arrays((env, params, policy)))
    described = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) if is_array(x) else x for x in leaves)
    statics = RolloutStatics(treedef, described, num_envs, mesh, records, counts_tasks)
    return statics, tuple(x for x in leaves if is_array(x))


@functools.lru_cache(maxsize=64)
def carry_shapes(statics: RolloutStatics) -> RolloutCarry:
    """Return the shapes of a carry; nothing is allocated or compiled.

    They are traced with one environment per device and then made B' rows long, which is faster than to trace B' rows.
    """
    # One row a device in the trace; B' rows in the answer. Task counts have no row for environments, so they stay.
    devices = statics.mesh.shape[DATA]
    smallest = _shard_mapped(statics._replace(num_envs=devices), _start, (REPLICATED, REPLICATED), SPLIT)
    one = jax.eval_shape(smallest, _array_shapes(statics), KEY)
    rows = padded_size(statics.num_envs, statics.mesh)
    grown = lambda tree: jax.tree.map(lambda x: jax.ShapeDtypeStruct((rows, *x.shape[1:]), x.dtype), tree)
    return RolloutCarry(grown(one.states), grown(one.metrics), one.tasks)


@functools.lru_cache(maxsize=64)
def compile_start(statics: RolloutStatics) -> Program:
    """Compile the reset of a batch: ``(arrays, key data) -> RolloutCarry``."""
    arguments = (_sharded(_array_shapes(statics), REPLICATED, statics), _sharded(KEY, REPLICATED, statics))
    return _compile(_shard_mapped(statics, _start, (REPLICATED, REPLICATED), SPLIT), *arguments)


@functools.lru_cache(maxsize=64)
def compile_play(statics: RolloutStatics, num_steps: int) -> Program:
    """Compile the steps: ``(arrays, key data, first step, RolloutCarry) -> (RolloutCarry, Trajectory or None)``.

    The carry is donated: the next one has its memory.
    """
    in_specs = (REPLICATED, REPLICATED, REPLICATED, SPLIT)
    shapes = (_array_shapes(statics), KEY, _STEP, carry_shapes(statics))
    arguments = [_sharded(tree, spec, statics) for tree, spec in zip(shapes, in_specs, strict=True)]
    play = functools.partial(_play, num_steps=num_steps)
    return _compile(_shard_mapped(statics, play, in_specs, (SPLIT, _RECORDED), donated=3), *arguments)


def chunk_size(num_envs: int) -> int:
    """Return how many environments a device plays to the end before it turns to the next ones.

    On a CPU a chunk that fits into the cache takes all its steps there, where a larger batch would come from memory in
    each step. Accelerators take everything at once. Chunks are equal, so the size is the largest divisor of the batch
    in 256 .. 1024: 1,000 environments are one chunk, 4,096 are four of 1,024, 1,500 are two of 750. A batch without
    such a divisor, as 1,031 (a prime), is one chunk.
    """
    if not compiles_for_cpu() or num_envs <= LARGEST_CHUNK:
        return num_envs
    sizes = [size for size in range(SMALLEST_CHUNK, LARGEST_CHUNK + 1) if num_envs % size == 0]
    return max(sizes, default=num_envs)


# What each device does. The functions below run inside the shard_map: B and B' are the rows of this device.


def _start(statics: RolloutStatics, arrays: Arrays, key_data: UInt32[Array, " 2"]) -> RolloutCarry:
    """Reset this device's environments."""
    env, params, _ = _unflatten(statics, arrays)
    # The key of a reset comes from the environment's number in the whole batch, not from its row on this device.
    index, _ = local_rows(statics.num_envs, statics.mesh)
    key_reset, _ = jax.random.split(_wrap_key(key_data))
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key_reset, index)
    states = jax.vmap(env.reset, (0, None))(keys, params)[0]
    info = jax.eval_shape(jax.vmap(env.info, (0, None)), states, params)
    metrics = zero_metrics(index, has_returns="episode_return" in info)
    tasks = zero_task_metrics(index, params.num_tasks) if statics.counts_tasks else None
    return RolloutCarry(states, metrics, tasks)


def _play(
    statics: RolloutStatics,
    arrays: Arrays,
    key_data: UInt32[Array, " 2"],
    first_step: Int32[Array, ""],
    carry: RolloutCarry,
    num_steps: int,
) -> tuple[RolloutCarry, Trajectory | None]:
    """Step this device's environments, chunk by chunk."""
    steps = first_step + jnp.arange(num_steps, dtype=jnp.int32)
    index, counts = local_rows(statics.num_envs, statics.mesh)
    size = chunk_size(index.shape[0])
    if size == index.shape[0]:
        return _play_chunk(statics, arrays, key_data, steps, index, counts, carry)
    # Rows [B', ...] become chunks [C, size, ...]: 4096 rows in chunks of 1024 are [4, 1024, ...]. The loop carries all
    # chunks and writes each over itself, so that states are in memory once. Each chunk counts tasks from zero, so that
    # its counts can be added to those before.
    split = lambda tree: jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), tree)
    zeros = jax.tree.map(jnp.zeros_like, carry.tasks)

    def play_chunk(held: Any, chunk: tuple[Array, Array, Array]) -> tuple[Any, tuple[Any, Trajectory | None]]:
        number, index, counts = chunk
        states, metrics = jax.tree.map(lambda x: x[number], held)
        before = RolloutCarry(states, metrics, zeros)
        after, recorded = _play_chunk(statics, arrays, key_data, steps, index, counts, before)
        held = jax.tree.map(lambda x, new: x.at[number].set(new), held, (after.states, after.metrics))
        return held, (after.tasks, recorded)

    numbers = jnp.arange(index.shape[0] // size, dtype=jnp.int32)
    chunks = (numbers, *split((index, counts)))
    held, (tasks, recorded) = jax.lax.scan(play_chunk, split((carry.states, carry.metrics)), chunks)
    states, metrics = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), held)
    tasks = jax.tree.map(lambda before, more: before + more.sum(axis=0), carry.tasks, tasks)
    # Records [C, S, size, ...] become [S, C * size, ...]: the environments of a step side by side again.
    side_by_side = lambda x: jnp.moveaxis(x, 0, 1).reshape(num_steps, -1, *x.shape[3:])
    return RolloutCarry(states, metrics, tasks), jax.tree.map(side_by_side, recorded)


def _play_chunk(
    statics: RolloutStatics,
    arrays: Arrays,
    key_data: UInt32[Array, " 2"],
    steps: Int32[Array, " S"],
    index: Int32[Array, " B"],
    counts: Bool[Array, " B"],
    carry: RolloutCarry,
) -> tuple[RolloutCarry, Trajectory | None]:
    """Step some environments.

    Args:
        statics: what was compiled.
        arrays: of environment, params and policy.
        key_data: of the rollout.
        steps: numbers of the steps in the whole rollout.
        index: numbers of these environments in the whole batch.
        counts: false for a row of padding, which adds nothing to the metrics.
        carry: of these environments.
    """
    env, params, policy = _unflatten(statics, arrays)
    _, key_steps = jax.random.split(_wrap_key(key_data))

    def step(carry: RolloutCarry, time_step: Int32[Array, ""]) -> tuple[RolloutCarry, Trajectory | None]:
        # First the step's number, then the environment's: bitwise identical in any chunk and on any device.
        key_step = jax.random.fold_in(key_steps, time_step)
        keys = fold_in_each(key_step, index, env.executor(params))
        # Whether an episode still runs is read before the step, since afterwards auto-reset has begun the next one.
        before = jax.vmap(env.info, (0, None))(carry.states, params)
        running = ~(before["terminated"] | before["truncated"])
        states, taken = actor_step(env, params, vectorize(policy), carry.states, keys)
        tasks = carry.tasks
        if tasks is not None:
            tasks = update_task_metrics(tasks, counts & running & taken.done, taken.info)
        metrics = update_metrics(carry.metrics, counts, running, taken.reward, taken.done, taken.info)
        recorded = None
        if statics.records:
            recorded = Trajectory(taken.action, taken.reward, taken.done, taken.info["terminated"])
        return RolloutCarry(states, metrics, tasks), recorded

    return jax.lax.scan(step, carry, steps)


# How the functions above are compiled, and how arrays find their way in.


def _compile(function: Any, *arguments: Any) -> Program:
    began = time.perf_counter()
    program = function.lower(*arguments).compile()
    return Program(program, time.perf_counter() - began, _bytes_in_use(program))


def _shard_mapped(
    statics: RolloutStatics, function: Callable[..., Any], in_specs: Any, out_specs: Any, donated: int | None = None
) -> Any:
    """Compile a function for all devices; ``donated`` is the number of an argument whose memory the results take."""
    env, params, _ = _unflatten(statics, statics.leaves)
    # equinox.error_if, behind the policy "raise", does not pass JAX's check of what varies between devices.
    check_vma = not env.checks_actions(params)
    local = functools.partial(function, statics)
    spread = jax.shard_map(local, mesh=statics.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_vma)
    return jax.jit(spread, donate_argnums=donated)


def _array_shapes(statics: RolloutStatics) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(leaf for leaf in statics.leaves if isinstance(leaf, jax.ShapeDtypeStruct))


def _sharded(shapes: Any, spec: Any, statics: RolloutStatics) -> Any:
    """Add a sharding to the shapes of arguments."""
    sharding = NamedSharding(statics.mesh, spec)
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), shapes)


def _unflatten(statics: RolloutStatics, arrays: Any) -> tuple[Environment[Any, Any], Any, Policy]:
    """Put arrays, or all leaves, back into environment, params and policy."""
    rest = iter(arrays)
    leaves = [next(rest) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf for leaf in statics.leaves]
    return jax.tree.unflatten(statics.treedef, leaves)


def _wrap_key(key_data: UInt32[Array, " 2"]) -> Key[Array, ""]:
    return jax.random.wrap_key_data(key_data, impl="threefry2x32")


def _bytes_in_use(program: Any) -> int | None:
    analysis = program.memory_analysis()
    if analysis is None:
        return None
    used = analysis.argument_size_in_bytes + analysis.output_size_in_bytes + analysis.temp_size_in_bytes
    # Donated arguments share their memory with results, so it is counted twice above.
    return used - analysis.alias_size_in_bytes
