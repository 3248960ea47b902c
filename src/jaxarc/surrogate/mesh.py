"""One update of a surrogate on many devices: examples split over them, weights too where the mesh says so.

How the weights of a model, and what its optimizer knows of each, lie on the devices of a mesh.
"""

from typing import Any, Final, TypeVar

import jax
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.stages import Compiled
from jax.tree_util import KeyPath, keystr, tree_map_with_path

from jaxarc.config import SurrogateTrainingConfig
from jaxarc.parallel.mesh import DATA, MODEL, REPLICATED, SPLIT, STAGE, is_array, place
from jaxarc.surrogate.batch import TrainingBatchJAX
from jaxarc.surrogate.candidates import CandidateSet, candidates_of
from jaxarc.surrogate.train_step import LossFunction, Metrics, Model, create_jax_surrogate_train_step


class MeshTrainStep:
    """A compiled step on a mesh; see :func:`create_mesh_train_step`.

    Attributes:
        mesh: that it runs on.
    """

    def __init__(
        self,
        model: Model,
        optimizer: optax.GradientTransformation,
        loss_fn: LossFunction,
        config: SurrogateTrainingConfig,
        mesh: Mesh,
    ):
        if DATA not in mesh.shape:
            raise ValueError(f"the mesh must have an axis {DATA!r}, got {mesh.axis_names}; give it one of size 1")
        self.mesh, self._parts = mesh, config.accumulation_steps
        self._step = create_jax_surrogate_train_step(model, keep_placement(optimizer, mesh), loss_fn, config)

    def __call__(
        self, model: Model, opt_state: optax.OptState, batch: TrainingBatchJAX, candidates: CandidateSet | None = None
    ) -> tuple[Model, optax.OptState, Metrics]:
        """Do what :class:`~jaxarc.surrogate.TrainStep` says; what is not on the mesh yet is put there first."""
        return self._step(*self.place(model, opt_state, batch, candidates))

    def compile(
        self, model: Model, opt_state: optax.OptState, batch: TrainingBatchJAX, candidates: CandidateSet | None = None
    ) -> Compiled:
        """Compile for these arguments and run nothing; see :func:`jaxarc.profiling.count_collectives`."""
        return self._step.compile(*self.place(model, opt_state, batch, candidates))

    def place(
        self, model: Model, opt_state: optax.OptState, batch: TrainingBatchJAX, candidates: CandidateSet | None
    ) -> tuple[Model, optax.OptState, TrainingBatchJAX, CandidateSet]:
        """Put everything where the step takes it, so that nothing is copied when it is called.

        Raises:
            ValueError: the batch cannot be split evenly.
        """
        count, slices = batch.expert_probs.shape[0], self.mesh.shape[DATA]
        if count % (slices * self._parts):
            raise ValueError(
                f"a batch of {count} examples cannot be split evenly over {slices} device(s) in accumulation_steps="
                f"{self._parts} parts; take a multiple of {slices * self._parts}"
            )
        described = candidates_of(batch) if candidates is None else candidates
        model, opt_state = place_weights((model, opt_state), self.mesh)
        return model, opt_state, place(batch, self.mesh, SPLIT), place(described, self.mesh, SPLIT)


def create_mesh_train_step(
    model: Model,
    optimizer: optax.GradientTransformation,
    loss_fn: LossFunction,
    config: SurrogateTrainingConfig,
    mesh: Mesh,
) -> MeshTrainStep:
    """Make a step that is compiled as one program for all devices of a mesh.

    It computes what :func:`create_jax_surrogate_train_step` does, but for rounding: the compiler chooses how the
    devices' sums are put together. Model and state are donated where they lie on the mesh already, as those that it
    returns do.

    Args:
        model: with a trunk over stages (:func:`over_stages`) where the mesh has the axis ``"stage"``.
        optimizer: of the model's floating-point arrays.
        loss_fn: of one example.
        config: of precision, accumulation and weights.
        mesh: along ``"data"`` the examples are split, along ``"model"`` and ``"stage"`` the weights; see
            :func:`~jaxarc.surrogate.place_weights`.

    Raises:
        ValueError: the mesh has no axis ``"data"``.
    """
    return MeshTrainStep(model, optimizer, loss_fn, config, mesh)


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
