"""Train on a mesh of devices: examples are split over the axis ``"data"``, weights over ``"model"`` or ``"stage"``.

Say a mesh has the axes data=2 and model=2, and a matrix has the shape (64, 192). The devices of one row of the mesh
then hold all columns of the matrix between them, 96 each, and half of the examples; both rows hold the same weights.
"""

from typing import Any, Final, Self, TypeVar

import jax
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import KeyPath, keystr, tree_map_with_path

from jaxarc.config import SurrogateMeshConfig
from jaxarc.device_arrays import own_arrays
from jaxarc.parallel import create_mesh
from jaxarc.parallel.mesh import DATA, MODEL, REPLICATED, SPLIT, STAGE, is_array, place
from jaxarc.surrogate.train_step import Model
from jaxarc.surrogate.trunk import in_one_piece, over_stages

Tree = TypeVar("Tree")

_LAYERS: Final = "trunk.layers."  # in the names of arrays with a leading axis of layers


class MeshPlacement:
    """Puts models, optimizer states and batches on the devices of a mesh; without a mesh everything stays as it is.

    A train step on arrays that lie on a mesh is one program for all its devices. It computes what it does on one device
    but for rounding: the compiler chooses in which order it adds the devices' sums. Model and state are donated where
    they are on the mesh already, as those that a step returns are.

    Attributes:
        mesh: of the devices; None for the default device.
    """

    def __init__(self, mesh: Mesh | None, accumulation_steps: int = 1, num_parts: int = 1):
        """Remember the mesh, and what batches must be a multiple of.

        Args:
            mesh: has the axis ``"data"``.
            accumulation_steps: of a train step.
            num_parts: of the pipeline over the axis ``"stage"``, if there is one.

        Raises:
            ValueError: the mesh has no axis ``"data"``.
        """
        if mesh is not None and DATA not in mesh.shape:
            raise ValueError(f"the mesh must have an axis {DATA!r}, got {mesh.axis_names}; give it one of size 1")
        self.mesh = mesh
        self._accumulation_steps = accumulation_steps
        self._num_parts = num_parts

    @classmethod
    def from_config(cls, config: SurrogateMeshConfig, accumulation_steps: int = 1) -> Self:
        """Make the mesh of a config, if it asks for several devices.

        Raises:
            ValueError: there are fewer devices than the config asks for.
        """
        if config.num_devices == 1:
            return cls(None, accumulation_steps)
        if config.stages > 1:
            mesh = create_mesh((config.data_devices, config.stages), (DATA, STAGE))
            return cls(mesh, accumulation_steps, config.parts)
        return cls(create_mesh((config.data_devices, config.model_devices), (DATA, MODEL)), accumulation_steps)

    @property
    def batch_sharding(self) -> NamedSharding | None:
        """How the arrays of a batch are split; None for the default device."""
        return None if self.mesh is None else NamedSharding(self.mesh, SPLIT)

    def split_layers(self, model: Model) -> Model:
        """Return a fresh model whose layers are split over the stages, where the mesh has stages.

        Raises:
            ValueError: the stages cannot have the same number of layers.
        """
        if self.mesh is None or STAGE not in self.mesh.shape:
            return model
        return over_stages(model, self.mesh, self._num_parts)

    def keep(self, optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
        """Return an optimizer whose updates stay on the devices of the weights."""
        return optimizer if self.mesh is None else keep_placement(optimizer, self.mesh)

    def place_weights(self, weights: Tree) -> Tree:
        """Put models and optimizer states on the devices; see :func:`place_weights`."""
        return weights if self.mesh is None else place_weights(weights, self.mesh)

    def place_batch(self, batch: Tree) -> Tree:
        """Split a batch over the devices.

        Raises:
            ValueError: the examples cannot be split evenly.
        """
        if self.mesh is None:
            return batch
        # Each device has an equal share of every part of every accumulation step: 2 devices, 4
        # steps and 3 parts need a multiple of 24.
        count = len(jax.tree.leaves(batch)[0])
        num_slices = self.mesh.shape[DATA]
        divisor = num_slices * self._accumulation_steps * self._num_parts
        if count % divisor:
            raise ValueError(
                f"a batch of {count} examples cannot be split evenly over {num_slices} device(s) in accumulation_steps="
                f"{self._accumulation_steps} of {self._num_parts} pipeline part(s); take a multiple of {divisor}"
            )
        return place(batch, self.mesh, SPLIT)

    def gather(self, model: Model) -> Model:
        """Return the model on one device, to be evaluated."""
        return model if self.mesh is None else in_one_piece(model)


def place_weights(weights: Tree, mesh: Mesh) -> Tree:
    """Put the arrays of a model, or of its optimizer's state, on a mesh; arrays that are there are not copied.

    Along ``"stage"`` the layers of a trunk are split. Along ``"model"`` each matrix is split by its outputs, and its
    bias with it. All devices hold what cannot be split evenly, and what is no part of a dense layer.

    Args:
        weights: a tree whose fields have the names of the model's, as the moments of an optimizer do.
        mesh: of any axes.
    """
    put = lambda path, leaf: jax.device_put(own_arrays(leaf), _sharding(path, leaf, mesh)) if is_array(leaf) else leaf
    return tree_map_with_path(put, weights)


def keep_placement(optimizer: optax.GradientTransformation, mesh: Mesh) -> optax.GradientTransformation:
    """Return an optimizer whose updates and state are split as the weights are, whatever the compiler would choose."""
    hold = lambda path, leaf: jax.lax.with_sharding_constraint(leaf, _sharding(path, leaf, mesh))

    def update(updates: Any, state: optax.OptState, params: Any = None) -> tuple[Any, optax.OptState]:
        # The gradients are put on the weights' devices first, so that the optimizer
        # computes there, and then its results.
        return tree_map_with_path(hold, optimizer.update(tree_map_with_path(hold, updates), state, params))

    return optax.GradientTransformation(optimizer.init, update)


def _sharding(path: KeyPath, leaf: Any, mesh: Mesh) -> NamedSharding:
    """Return how an array is split, by the name of its field."""
    # On a mesh with stages ``trunk.layers.columns_in.weight`` [6, 64, 192] is split along its first
    # axis, the layers; on one with the axis "model" along its last, the outputs. The state of an
    # optimizer has the same names behind a prefix.
    name = keystr(path, simple=True, separator=".")
    axes: list[str | None] = [None] * leaf.ndim
    if STAGE in mesh.shape and _LAYERS in name:
        axes[0] = STAGE
    # To split every second matrix by its inputs instead moved a fifth more bytes: queries, keys and values of a head
    # are not neighbors among the outputs, so they have to travel.
    if MODEL in mesh.shape and name.endswith(("weight", "bias")) and leaf.shape[-1] % mesh.shape[MODEL] == 0:
        axes[-1] = MODEL
    return NamedSharding(mesh, PartitionSpec(*axes) if any(axes) else REPLICATED)
