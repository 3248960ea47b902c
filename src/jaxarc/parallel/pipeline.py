"""Pipeline parallelism: the layers of a model are split over devices, and parts of a batch follow one another.

Three stages and four parts, 0 .. 3, take six beats (``.`` is a beat without work)::

    beat       0 1 2 3 4 5
    stage 0    0 1 2 3 . .
    stage 1    . 0 1 2 3 .
    stage 2    . . 0 1 2 3     its outputs from beat 2 on are the results
"""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float

from jaxarc.parallel.mesh import DATA, STAGE

Weights: TypeAlias = Any
Stage: TypeAlias = Callable[[Weights, Float[Array, "b *C"]], Float[Array, "b *C"]]
"""From the weights of some layers and a part of a batch to the output of these layers, of the same shape."""


def pipeline(
    stage: Stage, weights: Weights, batch: Float[Array, "B *C"], mesh: Mesh, num_parts: int
) -> Float[Array, "B *C"]:
    """Send a batch through layers that are split over the mesh axis ``"stage"``; differentiable.

    Each device holds an equal part of the layers. The batch is cut into parts, and while a device works on one, the
    device before it works on the next (GPipe, Huang et al. 2019, https://arxiv.org/abs/1811.06965). With S stages and
    M parts this takes M + S - 1 beats, in S - 1 of which a device is idle: a share of
    ``(S - 1) / (M + S - 1)`` is lost, so M should be several times S. On a mesh with an axis ``"data"`` there is such
    a pipeline for each of its slices, and the batch is split over them first.

    Args:
        stage: the work of a device; it gets the weights of its layers.
        weights: arrays with a leading axis of layers, which the number of stages divides.
        batch: the output of a layer has the shape of its input.
        mesh: has the axis ``"stage"``, and of others at most ``"data"``.
        num_parts: M, of the batch of a slice of the mesh.

    Returns:
        The same as ``stage(weights, batch)`` on one device, but for rounding.

    Raises:
        ValueError: the mesh has other axes, or layers or batch cannot be cut evenly.
    """
    num_slices = _check(weights, batch, mesh, num_parts)
    # [B, ...] -> [slices, parts, b, ...]: a batch of 16 with 2 slices and 4 parts has parts of 2.
    rows = jnp.reshape(batch, (num_slices, num_parts, -1, *batch.shape[1:]))
    split = PartitionSpec(DATA) if DATA in mesh.shape else PartitionSpec()
    run = jax.shard_map(
        functools.partial(_run_stage, stage, mesh.shape[STAGE]),
        mesh=mesh,
        in_specs=(PartitionSpec(STAGE), split),
        out_specs=PartitionSpec(STAGE, *split),
    )
    return run(weights, rows)[-1].reshape(batch.shape)


def _run_stage(
    stage: Stage, num_stages: int, weights: Weights, rows: Float[Array, "1 M b *C"]
) -> Float[Array, "1 1 M b *C"]:
    """Do the work of one device in all beats; the outputs of the last stage are the result."""
    parts = rows[0]
    num_parts = parts.shape[0]
    # Each stage sends to the next one; the last sends to none. Stage 0 gets zeros, which it does not read.
    number = lax.axis_index(STAGE)
    following = [(device, device + 1) for device in range(num_stages - 1)]

    def beat(arriving: Array, time: Array) -> tuple[Array, Array]:
        # Stage 0 takes part t in beat t; the others take what arrived. After its last part stage 0 repeats it, and no
        # one reads the result: it would arrive behind the end.
        fresh = parts[jnp.minimum(time, num_parts - 1)]
        done = stage(weights, jnp.where(number == 0, fresh, arriving))
        return lax.ppermute(done, STAGE, following), done

    # Before the first part arrives, a device works on a copy of it and drops the result. Zeros could overflow there
    # (a division by a norm, say), and a NaN would spoil the gradient even though its result is dropped.
    idle = lax.pcast(parts[0], STAGE, to="varying")
    _, done = lax.scan(beat, idle, jnp.arange(num_parts + num_stages - 1, dtype=jnp.int32))
    # Part m leaves the last stage in beat m + S - 1, so its first S - 1 results are of no part. With 2 stages and 4
    # parts the beats 1 .. 4 hold the parts a .. d.
    return done[num_stages - 1 :][None, None]


def _check(weights: Weights, batch: Array, mesh: Mesh, num_parts: int) -> int:
    """Return how many slices of the mesh have a pipeline of their own."""
    if STAGE not in mesh.shape or not set(mesh.axis_names) <= {DATA, STAGE}:
        raise ValueError(
            f"a pipeline needs a mesh with the axis {STAGE!r}, and {DATA!r} where there is another, got the axes "
            f"{mesh.axis_names}; see create_mesh"
        )
    num_stages = mesh.shape[STAGE]
    num_slices = dict(mesh.shape).get(DATA, 1)
    depths = sorted({leaf.shape[0] for leaf in jax.tree.leaves(weights)})
    if len(depths) != 1 or depths[0] % num_stages:
        raise ValueError(
            f"the layers must be a multiple of the {num_stages} stages, as each device has as many, got "
            f"{' and '.join(map(str, depths)) or 'none'}; change the number of layers or of stages"
        )
    if num_parts < 1 or batch.shape[0] % (num_slices * num_parts):
        raise ValueError(
            f"a batch of {batch.shape[0]} cannot be cut into {num_parts} equal parts for each of {num_slices} "
            "pipeline(s); change one of them"
        )
    return num_slices
