"""Task buffers too large for one device: each device holds a part of the grids, and they ask one another."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array

from jaxarc.envs.params import EnvParams
from jaxarc.parallel.mesh import DATA, REPLICATED, SPLIT, place
from jaxarc.tasks.buffer import RowSplit, TaskBuffer


def shard_tasks(params: EnvParams, mesh: Mesh) -> EnvParams:
    """Spread the grids of a task buffer over the devices of a mesh; what a rollout plays stays the same, bit for bit.

    Take it instead of :func:`~jaxarc.parallel.replicate` when the buffer is too large for a device. Only rollouts on
    this mesh play such params. Each device holds ``1 / D`` of the grids, and pays for it in every step: wherever the
    rules load a grid, each device tells all others which row each of its environments wants, and gets it from the one
    that holds it. With B environments in all a load sends ``B * H * W`` bytes to and from each device and needs as much
    working memory there; a step has three loads, more where observations show inputs. So it saves memory only where the
    buffer has more pairs than there are environments. The executor is the dense one, in which all devices load at the
    same time. The whole buffer has to fit into the memory of the host: pack it under ``jax.default_device`` of a CPU.

    Raises:
        ValueError: the mesh has no axis ``"data"``, the tasks are made by a generator, or they are spread already.
    """
    if DATA not in mesh.shape:
        raise ValueError(f"the mesh must have an axis {DATA!r}, got the axes {mesh.axis_names}; see data_mesh")
    if not isinstance(params, EnvParams):
        raise TypeError(f"params must be the EnvParams that jaxarc.make returns, got {type(params).__name__}")
    tasks = params.tasks
    if not isinstance(tasks, TaskBuffer):
        kind = type(tasks).__name__
        raise ValueError(f"only the grids of a task buffer can be spread, got {kind}, which holds none; replicate it")
    if tasks.split is not None:
        raise ValueError("the tasks are spread already; start from the params that make returned")
    num_rows = tasks.inputs.shape[0]
    missing = ((0, -num_rows % mesh.shape[DATA]), (0, 0))
    inputs, outputs = (np.pad(np.asarray(grids), missing) for grids in _grids(params))
    tasks = dataclasses.replace(tasks, inputs=inputs, outputs=outputs, split=RowSplit(DATA, num_rows))
    spread = dataclasses.replace(params, tasks=tasks, config=params.config.with_fields(executor="dense"))
    return jax.tree.map(lambda leaf, spec: place(leaf, mesh, spec), spread, task_specs(spread))


def task_specs(params: EnvParams) -> Any:
    """Say how the arrays of params lie on the devices: of the same structure, a ``PartitionSpec`` for each array."""
    everywhere = jax.tree.map(lambda _: REPLICATED, params)
    if isinstance(params.tasks, TaskBuffer) and params.tasks.split is not None:
        return eqx.tree_at(_grids, everywhere, (SPLIT, SPLIT))
    return everywhere


def _grids(params: Any) -> tuple[Array, Array]:
    return params.tasks.inputs, params.tasks.outputs
