"""A trunk whose layers lie on several devices."""

from typing import Any, TypeVar

import equinox as eqx
import jax
from jax.custom_batching import custom_vmap
from jax.sharding import Mesh
from jaxtyping import Array, Float

from jaxarc.nn.layers import rms_norm
from jaxarc.parallel.mesh import STAGE
from jaxarc.parallel.pipeline import pipeline
from jaxarc.surrogate.trunk import AxialLayer, Trunk, apply_layers

Model = TypeVar("Model")


class PipelinedTrunk(eqx.Module):
    """The layers of a :class:`Trunk`, an equal part of them on each device along the mesh axis ``"stage"``.

    It is called with one example, as a trunk is. What ``jax.vmap`` makes of it sends the batch through a
    :func:`~jaxarc.parallel.pipeline.pipeline`.

    Raises:
        ValueError: the batch cannot be cut into the parts, or ``jax.vmap`` maps over the weights.
    """

    layers: AxialLayer  # every array has a leading axis of layers
    remat_every: int = eqx.field(static=True)
    mesh: Mesh = eqx.field(static=True)
    num_parts: int = eqx.field(static=True)

    def __call__(self, cells: Float[Array, "R d C"]) -> Float[Array, "R d C"]:
        arrays, rest = eqx.partition(self.layers, eqx.is_array)
        each = lambda arrays, cells: apply_layers(eqx.combine(arrays, rest), cells, self.remat_every)
        along = custom_vmap(each)

        @along.def_vmap
        def _(axis_size: int, is_batched: tuple, arrays: AxialLayer, batch: Array) -> tuple[Array, bool]:
            if any(jax.tree.leaves(is_batched[0])):
                raise ValueError("a trunk over stages takes one set of weights for a batch; train one seed at a time")
            stage = lambda arrays, part: jax.vmap(each, (None, 0))(arrays, part)
            return pipeline(stage, arrays, batch, self.mesh, self.num_parts), True

        return rms_norm(along(arrays, cells))


def over_stages(model: Model, mesh: Mesh, num_parts: int) -> Model:
    """Return a model whose trunk lies on the devices along the mesh axis ``"stage"``; its numbers stay the same.

    Args:
        model: has a :class:`~jaxarc.surrogate.trunk.Trunk`, and is not placed yet; see
            :func:`~jaxarc.surrogate.create_mesh_train_step`.
        mesh: has the axis ``"stage"``, and of others at most ``"data"``.
        num_parts: that a batch is cut into; see :func:`~jaxarc.parallel.pipeline`.

    Raises:
        ValueError: the mesh has no stages, the model has no trunk, or the stages cannot have as many layers each.
    """
    if STAGE not in mesh.shape:
        raise ValueError(f"the mesh must have an axis {STAGE!r}, got {mesh.axis_names}; see create_mesh")
    trunks = [part for part in jax.tree.leaves(model, is_leaf=_is_trunk) if isinstance(part, Trunk)]
    if not trunks:
        raise ValueError(f"{type(model).__name__} has no trunk whose layers could lie over stages, or they do already")
    num_stages = mesh.shape[STAGE]
    for trunk in trunks:
        if trunk.num_layers % (num_stages * (trunk.remat_every or 1)):
            raise ValueError(
                f"num_layers must be a multiple of stages times remat_every (or 1), got {trunk.num_layers}, "
                f"{num_stages} and {trunk.remat_every}"
            )
    spread = lambda part: PipelinedTrunk(part.layers, part.remat_every, mesh, num_parts)
    return jax.tree.map(lambda part: spread(part) if isinstance(part, Trunk) else part, model, is_leaf=_is_trunk)


def in_one_piece(model: Model) -> Model:
    """Return a copy of a model on the default device, with a trunk whose layers lie there together."""
    unite = lambda part: Trunk(part.layers, part.remat_every) if isinstance(part, PipelinedTrunk) else part
    arrays, rest = eqx.partition(jax.tree.map(unite, model, is_leaf=_is_trunk), eqx.is_array)
    return eqx.combine(jax.device_put(arrays, jax.devices()[0]), rest)


def _is_trunk(part: Any) -> bool:
    return isinstance(part, Trunk | PipelinedTrunk)
