"""What was played, as short text that processes can compare: any bit that differs gives another text."""

import contextlib
import hashlib

import jax
import numpy as np
from small_world import CANVAS, filling, make_world

from jaxarc.constants import COPY_INPUT, FILL, NEXT_DEMO_PAIR, SUBMIT
from jaxarc.datasets import TaskSet
from jaxarc.parallel import RandomPolicy, data_mesh, rollout
from jaxarc.tasks import RawTask
from jaxarc.tasks.procedural import procedural_tasks

NUM_STEPS = 13  # two episodes and more, and no whole number of chunks


def fingerprint(tree):
    """Text of 64 digits for a tree of arrays that this process can read whole."""
    bits = hashlib.sha256()
    for leaf in jax.tree.leaves(jax.device_get(tree)):
        bits.update(f"{leaf.dtype}{leaf.shape}".encode() + np.ascontiguousarray(leaf).tobytes())
    return bits.hexdigest()


def fingerprints_by_environment(result):
    """One for each environment of a recorded rollout: its last state, its counts, all its actions and rewards."""
    whole = result.gather()
    column = lambda i: jax.tree.map(lambda x: x[:, i], whole.trajectory)
    row = lambda i: jax.tree.map(lambda x: x[i], (whole.carry.states, whole.carry.metrics))
    return [fingerprint((row(i), column(i))) for i in range(result.num_envs)]


def play(
    num_envs,
    num_devices=None,
    mesh=None,
    chunk_steps=None,
    executor="auto",
    seed=7,
    world="filling",
    is_explicit=False,
):
    """Play a small world on so many devices of this process, or on a mesh, and return what can be compared.

    With ``is_explicit`` JAX tracks the axis of the mesh in types, as it does by default, and the mesh is also the one
    that ``jax.set_mesh`` sets.

    Returns:
        Plain types: ``environments``, ``metrics`` (lists of counts and sums of each environment), ``totals``, ``tasks``
        (episodes, solved) and ``used``, the number of devices that hold states.
    """
    env, params, policy = WORLDS[world](executor)
    if is_explicit:
        mesh = jax.make_mesh((num_devices,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))
    mesh = data_mesh(num_devices) if mesh is None else mesh
    key = jax.random.key(seed)
    with jax.set_mesh(mesh) if is_explicit else contextlib.nullcontext():
        result = rollout(
            env, params, policy, key, num_envs, NUM_STEPS, mesh, chunk_steps=chunk_steps, record=True, count_tasks=True
        )
    totals = result.totals
    return {
        "environments": fingerprints_by_environment(result),
        "metrics": [counts.tolist() for counts in result.gather().carry.metrics],
        "totals": [totals.episodes, totals.solved, totals.reward_sum, totals.return_sum, totals.steps],
        "tasks": [counts.tolist() for counts in result.task_counts],
        "used": max(leaf.sharding.num_devices for leaf in jax.tree.leaves(result.carry.states)),
    }


def _filling_world(executor):
    return *make_world(executor=executor), filling()


def _loading_world(executor):
    """A world in which every step may load a grid: tasks of several pairs, turned and recolored, are walked through."""
    grid = lambda color: np.full((1 + color % 2, 3), color)
    pair = lambda color: (grid(color), grid(color + 1))
    tasks = TaskSet(
        "walks", tuple(RawTask(f"walks/{i}", tuple(pair(i + p) for p in range(1 + i)), (pair(i),)) for i in range(3))
    )
    env, params = make_world(
        tasks,
        executor=executor,
        allowed_operations=(FILL, COPY_INPUT, NEXT_DEMO_PAIR, SUBMIT),
        symmetries="flips",
        recolor="all",
        shuffle_demos=True,
        task_order="in_turn",
        include_demonstrations=True,
    )
    return env, params, RandomPolicy(env.action_space(params))


def _generated_world(executor):
    return *make_world(procedural_tasks("color-map", CANVAS, side=(2, 2)), executor=executor), filling()


WORLDS = {"filling": _filling_world, "loading": _loading_world, "generated": _generated_world}
