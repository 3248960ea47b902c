"""Many environments play many steps in one compiled program, spread over devices that never wait for one another."""

import math
import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, PyTree, UInt32

from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.parallel.memory import available_memory, require_memory
from jaxarc.parallel.mesh import DATA, REPLICATED, SPLIT, data_mesh, place
from jaxarc.parallel.policy import Policy
from jaxarc.parallel.program import KEY, Plan, Programs, compile_programs, make_plan, state_shapes
from jaxarc.parallel.tally import Tally, Totals, sum_tally
from jaxarc.prng import as_typed_key
from jaxarc.types import PRNGKey

_GROWTH = 4.0  # memory of a rollout over that of its states: those before, those after, and what a step computes


class Rollout(eqx.Module):
    """What a rollout leaves behind; its arrays may still be in the making when it is returned."""

    states: PyTree[Array]  # of B environments, split over the devices; pass them in again to go on
    tally: Tally  # what happened in each environment
    num_steps: int = eqx.field(static=True)  # S

    @property
    def totals(self) -> Totals:
        """Sums over the environments; waits for the rollout to end."""
        return sum_tally(self.tally, self.num_steps)


class CompiledRollout:
    """A rollout that is ready to run: ``compiled(params, policy, key, states=None)``.

    Attributes:
        compile_seconds: how long the compilation took, when it was done.
        bytes_per_device: memory in use while it runs, arguments and results included; None where XLA does not say.
    """

    def __init__(self, env: Environment[Any], plan: Plan, programs: Programs):
        self._env, self._plan, self._programs = env, plan, programs
        self.compile_seconds = programs.compile_seconds
        self.bytes_per_device = programs.bytes_per_device

    def __call__(self, params: EnvParams, policy: Policy, key: PRNGKey, states: PyTree[Array] | None = None) -> Rollout:
        """Play as :func:`rollout` does.

        Raises:
            ValueError: an argument has another structure, shape or config than what was compiled.
        """
        plan, arrays = make_plan(self._env, params, policy, *self._plan[2:])
        if plan != self._plan:
            raise ValueError(
                "params and policy must have the structure, shapes and config of those that were compiled; "
                "call compile_rollout with the new ones"
            )
        shared = place((arrays, _words(key)), plan.mesh, REPLICATED)
        if states is None:
            states = self._programs.start(*shared)
        else:
            _require_states(states, plan)
            states = place(states, plan.mesh, SPLIT)
        play = self._programs.play
        raises = params.config.action.invalid_action_policy == "raise"
        states, tally = _raise_readably(play, *shared, states) if raises else play(*shared, states)
        return Rollout(states, tally, plan.num_steps)


def rollout(
    env: Environment[Any],
    params: EnvParams,
    policy: Policy,
    key: PRNGKey,
    num_envs: int,
    num_steps: int,
    mesh: Mesh | None = None,
    states: PyTree[Array] | None = None,
    available_bytes: int | None = None,
) -> Rollout:
    """Play steps in a batch of environments, in one compiled program.

    Every random draw depends on the key, the number of the environment and the number of the step alone: the same key
    gives the same bits on any number of devices. Equal shapes compile once. On a CPU, call
    :func:`~jaxarc.parallel.use_host_cores` first, or one core does the work.

    Args:
        env: with auto-reset, as ``EpisodeStatistics(AutoReset(env))``; without it, episodes that end stay ended.
        params: tasks and rules; :func:`~jaxarc.parallel.replicate` them once to save copying on every call.
        policy: ``policy(key, observation) -> action`` of one environment. A module with new arrays runs the same
            program; a new function compiles anew.
        key: another one for every call.
        num_envs: B, a multiple of the number of devices.
        num_steps: S, steps of each environment in this call.
        mesh: has an axis ``"data"``; all devices of this process when left out.
        states: of an earlier rollout of B environments, to go on; new episodes when left out.
        available_bytes: free memory over all devices; found out when left out.

    Raises:
        NotEnoughMemoryError: the batch does not fit in memory; nothing has been started.
        ValueError: ``num_envs`` cannot be split evenly, ``num_steps`` is below 1, or the states are not those of B
            environments of this kind.
        RuntimeError: an action is invalid, with the invalid-action policy ``"raise"``.
    """
    compiled = compile_rollout(env, params, policy, num_envs, num_steps, mesh, states, available_bytes)
    return compiled(params, policy, key, states)


def compile_rollout(
    env: Environment[Any],
    params: EnvParams,
    policy: Policy,
    num_envs: int,
    num_steps: int,
    mesh: Mesh | None = None,
    states: PyTree[Array] | None = None,
    available_bytes: int | None = None,
) -> CompiledRollout:
    """Compile what :func:`rollout` runs and check that it fits in memory; nothing is played.

    Arguments and errors are those of :func:`rollout`. States that are given count as memory already in use.
    """
    mesh = data_mesh() if mesh is None else mesh
    plan, _ = make_plan(env, params, policy, num_envs, num_steps, mesh)
    shapes = state_shapes(plan)
    free = available_memory(mesh) if available_bytes is None else available_bytes
    if states is None:  # a lower bound, before anything is allocated or compiled
        least = sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(shapes))
        require_memory(num_envs, least, free, num_devices=mesh.shape[DATA], growth=_GROWTH)
    else:
        _require_states(states, plan)
    programs = compile_programs(plan)
    if programs.bytes_per_device is not None:
        needed = mesh.size * programs.bytes_per_device - _bytes_on(mesh, (env, params, policy, states))
        require_memory(num_envs, needed, free, num_devices=mesh.shape[DATA])
    return CompiledRollout(env, plan, programs)


def _require_states(states: PyTree[Array], plan: Plan) -> None:
    """Raise when states are not those of a batch of the plan."""
    wanted = state_shapes(plan)
    if jax.tree.structure(states) != jax.tree.structure(wanted):
        raise ValueError("the states come from another environment or config; start with states=None")
    for given, shape in zip(jax.tree.leaves(states), jax.tree.leaves(wanted), strict=True):
        if (given.shape, given.dtype) != (shape.shape, shape.dtype):
            raise ValueError(
                f"the states must be those of {plan.num_envs} environments of this kind: an array has "
                f"{given.dtype}{given.shape} where {shape.dtype}{shape.shape} is expected; start with states=None"
            )


def _raise_readably(program: Callable[..., Any], *args: Any) -> Any:
    """Wait for a program, and raise what ``equinox.error_if`` says inside it as one line."""
    try:
        return jax.block_until_ready(program(*args))
    except jax.errors.JaxRuntimeError as error:
        said = re.search(r"^_EquinoxRuntimeError: (.*)$", str(error), re.MULTILINE)
        if said is None:
            raise
        raise RuntimeError(said[1]) from None


def _words(key: PRNGKey) -> UInt32[Array, " words"]:
    """Turn any key into words of a threefry key, its own if it is one."""
    words = jax.random.key_data(as_typed_key(key))
    return words if words.shape == KEY.shape else jax.random.bits(as_typed_key(key), KEY.shape, jnp.uint32)


def _bytes_on(mesh: Mesh, tree: PyTree) -> int:
    """Bytes that the arrays of a tree already take on the devices of the mesh."""
    devices = set(mesh.devices.flat)
    arrays = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]
    return sum(shard.data.nbytes for x in arrays for shard in x.addressable_shards if shard.device in devices)
