"""How the weights of a model, and what its optimizer knows of each, lie on the devices of a mesh."""

from typing import Any, Final, TypeVar

import jax
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import KeyPath, keystr, tree_map_with_path

from jaxarc.parallel.mesh import MODEL, REPLICATED, STAGE, is_array

Tree = TypeVar("Tree")

_LAYERS: Final = "trunk.layers."  # in the names of arrays with a leading axis of layers


def place_weights(weights: Tree, mesh: Mesh) -> Tree:
    """Put the arrays of a model, or of a state of its optimizer, on a mesh; those that lie there are not copied.

    Along ``"stage"`` the layers of a trunk are split. Along ``"model"`` each matrix is split by its outputs, and its
    bias with it. What cannot be split evenly is on all devices, and so is all that is no part of an affine map.

    Args:
        weights: a tree whose fields have the names of the model's; an optimizer names its moments so too.
        mesh: of any axes.
    """
    put = lambda path, leaf: jax.device_put(leaf, _sharding(path, leaf, mesh)) if is_array(leaf) else leaf
    return tree_map_with_path(put, weights)


def keep_placement(optimizer: optax.GradientTransformation, mesh: Mesh) -> optax.GradientTransformation:
    """Return an optimizer whose updates and state lie as the weights do, whatever the compiler would prefer."""
    hold = lambda path, leaf: jax.lax.with_sharding_constraint(leaf, _sharding(path, leaf, mesh))

    def update(updates: Any, state: optax.OptState, params: Any = None) -> tuple[Any, optax.OptState]:
        return tree_map_with_path(hold, optimizer.update(tree_map_with_path(hold, updates), state, params))

    return optax.GradientTransformation(optimizer.init, update)


def _sharding(path: KeyPath, leaf: Any, mesh: Mesh) -> NamedSharding:
    """Say how an array lies, by the name of its field."""
    name = keystr(path, simple=True, separator=".")
    axes: list[str | None] = [None] * leaf.ndim
    if STAGE in mesh.shape and _LAYERS in name:
        axes[0] = STAGE
    # To split every second matrix by its inputs instead moved a fifth more bytes: queries, keys and values of a head
    # are not neighbors among the outputs, so they have to travel.
    if MODEL in mesh.shape and name.endswith(("weight", "bias")) and leaf.shape[-1] % mesh.shape[MODEL] == 0:
        axes[-1] = MODEL
    return NamedSharding(mesh, PartitionSpec(*axes) if any(axes) else REPLICATED)
