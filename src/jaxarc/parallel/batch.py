"""The rows of a batch: which device plays which environment, and the padding where the devices do not divide it."""

import functools
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jaxtyping import Array, Bool, Int32

from jaxarc.parallel.mesh import DATA, REPLICATED, is_array

Tree = TypeVar("Tree")


def envs_per_device(num_envs: int, mesh: Mesh) -> int:
    """Return how many environments each device plays; where the devices do not divide B, the last ones play padding.

    Raises:
        ValueError: the mesh has no axis ``"data"``, or there is no environment.
    """
    if DATA not in mesh.shape:
        raise ValueError(f"the mesh must have an axis {DATA!r}, got the axes {mesh.axis_names}; see data_mesh")
    if num_envs < 1:
        raise ValueError(f"num_envs must be 1 or more, got num_envs={num_envs}; nothing can be played without one")
    return -(-num_envs // mesh.shape[DATA])


def padded_size(num_envs: int, mesh: Mesh) -> int:
    """Return B', the rows that the devices play together, padding included."""
    return mesh.shape[DATA] * envs_per_device(num_envs, mesh)


def local_rows(num_envs: int, mesh: Mesh) -> tuple[Int32[Array, " B"], Bool[Array, " B"]]:
    """Return the numbers of this device's environments in the whole batch, and which rows count; under ``shard_map``.

    A row of padding plays the last environment once more, so that it does nothing which an environment does not do.
    """
    count = envs_per_device(num_envs, mesh)
    row = jax.lax.axis_index(DATA) * count + jnp.arange(count, dtype=jnp.int32)
    return jnp.minimum(row, num_envs - 1), row < num_envs


def pad_rows(tree: Tree, num_envs: int, mesh: Mesh) -> Tree:
    """Repeat the last row of each array up to B' rows; arrays that have them stay as they are."""
    missing = padded_size(num_envs, mesh) - num_envs

    def pad(leaf: Any) -> Any:
        if leaf.shape[0] != num_envs or missing == 0:
            return leaf
        numbers = np if isinstance(leaf, np.ndarray) else jnp
        return numbers.concatenate([leaf, numbers.repeat(leaf[-1:], missing, axis=0)])

    return jax.tree.map(pad, tree)


def drop_padding(tree: Tree, num_envs: int, mesh: Mesh, axis: int = 0) -> Tree:
    """Keep the rows of environments. Arrays without padding stay where they are; others are copied to every device."""
    keep = _keep_rows(num_envs, mesh, axis)

    def drop(leaf: Any) -> Any:
        if leaf.shape[axis] == num_envs:
            return leaf
        return leaf[(slice(None),) * axis + (slice(num_envs),)] if isinstance(leaf, np.ndarray) else keep(leaf)

    return jax.tree.map(drop, tree)


def to_host(tree: Tree) -> Tree:
    """Copy arrays to NumPy, those too that are spread over several processes; each process gets the whole."""

    def fetch(leaf: Any) -> Any:
        spread = isinstance(leaf, jax.Array) and not (leaf.is_fully_addressable or leaf.is_fully_replicated)
        return multihost_utils.process_allgather(leaf, tiled=True) if spread else np.asarray(leaf)

    return jax.tree.map(lambda leaf: fetch(leaf) if is_array(leaf) else leaf, tree)


@functools.lru_cache(maxsize=64)
def _keep_rows(num_envs: int, mesh: Mesh, axis: int) -> Any:
    keep = lambda x: jax.lax.slice_in_dim(x, 0, num_envs, axis=axis)
    return jax.jit(keep, out_shardings=NamedSharding(mesh, REPLICATED))
