"""Rollouts: many environments take many steps in compiled programs, split over the devices of a mesh.

:func:`rollout` checks the memory, compiles (once for equal shapes) and plays; :func:`compile_rollout` plays nothing.
Steps may be cut into chunks, one call of the program each, which changes no bit: 50 steps with ``chunk_steps=20`` are
calls of 17, 17 and 16 steps, and two programs are compiled.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jaxtyping import Array, PyTree, UInt32

from jaxarc.compilation import require_own_jax
from jaxarc.interface import Environment
from jaxarc.parallel.memory import available_memory, require_memory, size_of
from jaxarc.parallel.mesh import (
    DATA,
    REPLICATED,
    SPLIT,
    data_mesh,
    drop_padding,
    pad_rows,
    padded_size,
    place,
    replicate,
    to_host,
)
from jaxarc.parallel.program import (
    RolloutCarry,
    RolloutStatics,
    Trajectory,
    carry_shapes,
    compile_play,
    compile_start,
    make_statics,
)
from jaxarc.parallel.rollout_metrics import EpisodeMetrics, MetricTotals, TaskCounts, sum_metrics, sum_task_metrics
from jaxarc.prng import as_typed_key
from jaxarc.types import PRNGKey
from jaxarc.unroll import Policy


class Rollout(eqx.Module):
    """The result of a rollout; the devices may still compute its arrays when it is returned.

    The arrays of ``carry`` are on the devices, split evenly. Where the devices do not divide B, they have rows of
    padding at the end, which ``states`` and ``metrics`` leave out.
    """

    carry: RolloutCarry
    trajectory: Trajectory | None  # of the recorded steps; None where none is recorded
    num_envs: int = eqx.field(static=True)  # B
    num_steps: int = eqx.field(static=True)  # S
    mesh: Mesh = eqx.field(static=True)

    @property
    def states(self) -> PyTree[Array]:
        """The states of B environments, to go on with; where the devices do not divide B, a copy on each device."""
        return drop_padding(self.carry.states, self.num_envs, self.mesh)

    @property
    def metrics(self) -> EpisodeMetrics:
        """The counters of each environment."""
        return drop_padding(self.carry.metrics, self.num_envs, self.mesh)

    @property
    def totals(self) -> MetricTotals:
        """Sums over the environments; waits for the rollout to end."""
        return sum_metrics(drop_padding(to_host(self.carry.metrics), self.num_envs, self.mesh), self.num_steps)

    @property
    def task_counts(self) -> TaskCounts | None:
        """How often each task was played and solved, over all environments; None where that is not counted."""
        return None if self.carry.tasks is None else sum_task_metrics(to_host(self.carry.tasks))

    def gather(self) -> Self:
        """Return the same with all arrays on the host, as NumPy, without padding; waits for the rollout to end."""
        # To the host first and then without padding: so dropping rows there moves nothing between devices.
        held = to_host((self.carry.states, self.carry.metrics))
        states, metrics = drop_padding(held, self.num_envs, self.mesh)
        carry = RolloutCarry(states, metrics, to_host(self.carry.tasks))
        return type(self)(carry, to_host(self.trajectory), self.num_envs, self.num_steps, self.mesh)


_GROWTH = 3.0  # memory of a rollout over that of its states: the states, and what a step computes

OnChunk = Callable[[int, MetricTotals], None]
"""Called after each chunk with the number of steps done in each environment, and the totals so far."""


class CompiledRollout:
    """A rollout that is ready to run: ``compiled(params, policy, key, states=None)``.

    Attributes:
        compile_seconds: how long the compilation took, when it was done.
        bytes_per_device: memory in use while it runs, arguments and results included; None where XLA does not say.
    """

    def __init__(self, env: Environment[Any, Any], statics: RolloutStatics, lengths: list[int]):
        self._env = env
        self._statics = statics
        self._lengths = lengths
        programs = [compile_start(statics), *(compile_play(statics, length) for length in sorted(set(lengths)))]
        self._start = programs[0].call
        self.compile_seconds = sum(program.compile_seconds for program in programs)
        self.bytes_per_device = programs[-1].bytes_per_device

    def __call__(
        self,
        params: Any,
        policy: Policy,
        key: PRNGKey,
        states: PyTree[Array] | None = None,
        on_chunk: OnChunk | None = None,
        *,
        donate_states: bool = False,
    ) -> Rollout:
        """Play as :func:`rollout` does.

        Raises:
            ValueError: an argument has another structure, shape or config than what was compiled.
        """
        # A single chunk stays on the devices. Of several each moves to the host as soon as it is
        # played, which makes room for the next one.
        recorded: list[Trajectory] = []
        result: Any = None
        for result in self._play_chunks(params, policy, key, states, keeps=False, donates=donate_states):
            if result.trajectory is not None:
                recorded.append(result.trajectory if len(self._lengths) == 1 else to_host(result.trajectory))
            if on_chunk is not None:
                on_chunk(result.num_steps, result.totals)
        if len(recorded) > 1:
            whole = jax.tree.map(lambda *parts: np.concatenate(parts), *recorded)
            result = dataclasses.replace(result, trajectory=whole)
        return result

    def chunks(
        self, params: Any, policy: Policy, key: PRNGKey, states: PyTree[Array] | None = None
    ) -> Iterator[Rollout]:
        """Play chunk by chunk: after each, yield the rollout so far, with the trajectory of this chunk alone.

        A chunk starts when the iterator is advanced, so a caller that drops the trajectories holds one at most.

        Raises:
            ValueError: an argument has another structure, shape or config than what was compiled.
        """
        return self._play_chunks(params, policy, key, states, keeps=True, donates=False)

    def _play_chunks(
        self,
        params: Any,
        policy: Policy,
        key: PRNGKey,
        states: PyTree[Array] | None,
        *,
        keeps: bool,
        donates: bool,
    ) -> Iterator[Rollout]:
        """Play as :meth:`chunks`.

        Without ``keeps`` each chunk takes the memory of the carry that was yielded last; with ``donates`` the first one
        takes that of the states.
        """
        require_own_jax()
        # Everything that was compiled in is compared, arrays aside: new weights pass, another config does not.
        statics, arrays = make_statics(self._env, params, policy, *self._statics[2:])
        if statics != self._statics:
            raise ValueError(
                "params and policy must have the structure, shapes and config of those that were compiled; "
                "call compile_rollout with the new ones"
            )
        shared = replicate((arrays, _threefry_data(key)), statics.mesh)
        carry = self._start(*shared) if states is None else _go_on(states, statics, donates)
        raises = self._env.checks_actions(params)
        done = 0
        for length in self._lengths:
            play = compile_play(statics, length).call
            # The program writes its carry over the one that it gets, so what a caller may still read is copied.
            carry = _copied(carry, statics.mesh) if keeps and done else carry
            arguments = (*shared, place(np.int32(done), statics.mesh, REPLICATED), carry)
            carry, recorded = _raise_readably(play, *arguments) if raises else play(*arguments)
            done += length
            trajectory = drop_padding(recorded, statics.num_envs, statics.mesh, axis=1)
            yield Rollout(carry, trajectory, statics.num_envs, done, statics.mesh)


def rollout(
    env: Environment[Any, Any],
    params: Any,
    policy: Policy,
    key: PRNGKey,
    num_envs: int,
    num_steps: int,
    mesh: Mesh | None = None,
    states: PyTree[Array] | None = None,
    available_bytes: int | None = None,
    *,
    chunk_steps: int | None = None,
    on_chunk: OnChunk | None = None,
    record: bool = False,
    count_tasks: bool = False,
    donate_states: bool = False,
) -> Rollout:
    """Play steps in a batch of environments, in a compiled program.

    Every random draw depends on the key, the number of the environment and the number of the step alone: the same key
    gives environment i bitwise identical results for any batch size, number of devices, chunk size and executor. Equal
    shapes compile once. On a CPU, call :func:`~jaxarc.parallel.use_host_cores` first, or one core does the work.

    Args:
        env: with auto-reset, as ``EpisodeStatistics(AutoReset(env))``; without it, episodes that end stay ended.
        params: tasks and rules; :func:`~jaxarc.parallel.replicate` them once to save copying on every call.
        policy: ``policy(key, observation) -> action`` of one environment. A module with new arrays runs the same
            program; a new function compiles anew.
        key: another one for every call.
        num_envs: B. Where the devices do not divide it, some of them play padding, which counts for nothing.
        num_steps: S, steps of each environment in this call.
        mesh: has an axis ``"data"``; by default over all devices of this process.
        states: of an earlier rollout of B environments, to go on from; by default new episodes begin.
        available_bytes: free memory of this process's devices of the mesh; measured by default.
        chunk_steps: at most so many steps in one call of the program; by default all of them. Where the chunks are not
            of one length, a second program is compiled for the last.
        on_chunk: called after each chunk, which makes the rollout wait for the chunk to end.
        record: keep every action, reward and ending. They stay on the devices; with several chunks, each moves to the
            host when it is over, so that a device holds the records of one chunk.
        count_tasks: count how often each task was played and solved, see :attr:`Rollout.task_counts`.
        donate_states: take the memory of the states, which must not be used again, instead of a copy of them.

    Raises:
        NotEnoughMemoryError: the batch does not fit in memory; nothing has been started.
        ValueError: the mesh has no axis ``"data"``, a number is below 1, or the states are not those of B environments
            of this kind.
        RuntimeError: an action is invalid, with the invalid-action policy ``"raise"``.
    """
    compiled = compile_rollout(
        env,
        params,
        policy,
        num_envs,
        num_steps,
        mesh,
        states,
        available_bytes,
        chunk_steps=chunk_steps,
        record=record,
        count_tasks=count_tasks,
    )
    return compiled(params, policy, key, states, on_chunk, donate_states=donate_states)


def compile_rollout(
    env: Environment[Any, Any],
    params: Any,
    policy: Policy,
    num_envs: int,
    num_steps: int,
    mesh: Mesh | None = None,
    states: PyTree[Array] | None = None,
    available_bytes: int | None = None,
    *,
    chunk_steps: int | None = None,
    record: bool = False,
    count_tasks: bool = False,
) -> CompiledRollout:
    """Compile what :func:`rollout` runs and check that it fits in memory; nothing is played.

    Arguments and errors are those of :func:`rollout`. A copy of the states that are given counts as needed.
    """
    require_own_jax()
    mesh = data_mesh() if mesh is None else mesh
    statics, _ = make_statics(env, params, policy, num_envs, mesh, record, count_tasks)
    lengths = _chunk_lengths(num_steps, chunk_steps)
    shapes = carry_shapes(statics).states
    free = available_memory(mesh) if available_bytes is None else available_bytes
    here = len(mesh.local_devices)
    # The memory is checked twice: by a bound from the states' shapes, before minutes of compiling, and
    # by the program's own numbers after it.
    if states is None:  # a lower bound, before anything is allocated or compiled
        least = size_of(shapes) * here // mesh.size
        require_memory(num_envs, least, free, num_devices=mesh.shape[DATA], growth=_GROWTH)
    else:
        _require_states(states, statics)
    compiled = CompiledRollout(env, statics, lengths)
    if compiled.bytes_per_device is not None:
        # Tasks and weights that are on the devices already are counted as in use, so they are not needed once more.
        needed = here * compiled.bytes_per_device - _bytes_on(mesh, (env, params, policy))
        require_memory(num_envs, needed, free, num_devices=mesh.shape[DATA])
    return compiled


def _chunk_lengths(num_steps: int, chunk_steps: int | None) -> list[int]:
    """Cut the steps into chunks of equal length but for the last: 50 steps of at most 20 are 17, 17 and 16."""
    for name, steps in (("num_steps", num_steps), ("chunk_steps", chunk_steps)):
        if steps is not None and steps < 1:
            raise ValueError(f"{name} must be 1 or more, got {name}={steps}")
    count = 1 if chunk_steps is None else -(-num_steps // chunk_steps)
    length = -(-num_steps // count)
    whole, rest = divmod(num_steps, length)
    return [length] * whole + [rest] * (rest > 0)


def _go_on(states: PyTree[Array], statics: RolloutStatics, donates: bool) -> RolloutCarry:
    """Put the states of B environments, or of B' rows, on the devices, with metrics that start at zero.

    The carry will be donated, so it is a copy unless the states are, too.
    """
    _require_states(states, statics)
    shapes = carry_shapes(statics)
    # The states go on, the counters begin anew: totals are those of this call.
    zeros = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), (shapes.metrics, shapes.tasks))
    carry = RolloutCarry(pad_rows(states, statics.num_envs, statics.mesh), *zeros)
    placed = place(carry, statics.mesh, SPLIT)
    return placed if donates else _copied(placed, statics.mesh)


def _copied(carry: RolloutCarry, mesh: Mesh) -> RolloutCarry:
    """Return a copy that may be donated."""
    return _copier(mesh)(carry)


@functools.lru_cache(maxsize=64)
def _copier(mesh: Mesh) -> Callable[[RolloutCarry], RolloutCarry]:
    copy = lambda carry: jax.tree.map(jnp.copy, carry)
    return jax.jit(copy, out_shardings=NamedSharding(mesh, SPLIT))


def _require_states(states: PyTree[Array], statics: RolloutStatics) -> None:
    """Raise when states are not those of this batch."""
    wanted = carry_shapes(statics).states
    if jax.tree.structure(states) != jax.tree.structure(wanted):
        raise ValueError("the states come from another environment or config; start with states=None")
    rows = (statics.num_envs, padded_size(statics.num_envs, statics.mesh))
    for given, shape in zip(jax.tree.leaves(states), jax.tree.leaves(wanted), strict=True):
        fits = given.ndim > 0 and given.shape[0] in rows
        if not fits or (given.shape[1:], given.dtype) != (shape.shape[1:], shape.dtype):
            raise ValueError(
                f"the states must be those of {statics.num_envs} environments of this kind: an array has "
                f"{given.dtype}{given.shape} where {shape.dtype}{(statics.num_envs, *shape.shape[1:])} is expected; "
                "start with states=None"
            )


def _raise_readably(program: Callable[..., Any], *args: Any) -> Any:
    """Wait for a program, and raise an error of ``equinox.error_if`` inside it with its first line only."""
    try:
        return jax.block_until_ready(program(*args))
    except jax.errors.JaxRuntimeError as error:
        # The runtime's message holds a traceback of compiled code; the sentence of the check is one line of it.
        said = re.search(r"^_EquinoxRuntimeError: (.*)$", str(error), re.MULTILINE)
        if said is None:
            raise
        raise RuntimeError(said[1]) from None


def _threefry_data(key: PRNGKey) -> UInt32[Array, " 2"]:
    """Return the data of a threefry key: of the key itself, or made of a key of another kind."""
    return jax.random.key_data(as_typed_key(key))


def _bytes_on(mesh: Mesh, tree: PyTree) -> int:
    """Bytes that the arrays of a tree already take on the devices of the mesh."""
    devices = set(mesh.devices.flat)
    arrays = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]
    return sum(shard.data.nbytes for x in arrays for shard in x.addressable_shards if shard.device in devices)
