"""The trunk of a surrogate: layers in which the cells of a grid look along their rows and columns.

A trunk whose layers lie on several devices.
"""

from typing import Any, Self, TypeVar

import equinox as eqx
import jax
from jax.custom_batching import custom_vmap
from jax.sharding import Mesh
from jaxtyping import Array, Float

from jaxarc.config import SurrogateNetworkConfig
from jaxarc.nn.layers import MLP, Dense, attention, gelu_mlp, lecun_scale, rms_norm
from jaxarc.parallel.mesh import STAGE
from jaxarc.parallel.pipeline import pipeline
from jaxarc.types import PRNGKey


class AxialLayer(eqx.Module):
    """Attention within each column, within each row, and a perceptron on each cell (Ho et al. 2019).

    It knows no order: when rows or columns change places, so does its result. https://arxiv.org/abs/1912.12180
    """

    columns_in: Dense
    columns_out: Dense
    rows_in: Dense
    rows_out: Dense
    perceptron: MLP
    num_heads: int = eqx.field(static=True)

    def __init__(self, key: PRNGKey, config: SurrogateNetworkConfig):
        size, gain = config.latent_size, (2 * config.num_layers) ** -0.5
        keys = jax.random.split(key, 5)
        self.columns_in = Dense(keys[0], size, 3 * size, lecun_scale(size))
        self.columns_out = Dense(keys[1], size, size, lecun_scale(size, gain))
        self.rows_in = Dense(keys[2], size, 3 * size, lecun_scale(size))
        self.rows_out = Dense(keys[3], size, size, lecun_scale(size, gain))
        self.perceptron = gelu_mlp(keys[4], (size, 2 * size, size), gain)
        self.num_heads = config.num_heads

    def __call__(self, cells: Float[Array, "R d C"]) -> Float[Array, "R d C"]:
        turned = cells.swapaxes(0, 1)
        cells = cells + self.columns_out(self._look(self.columns_in(rms_norm(turned)))).swapaxes(0, 1)
        cells = cells + self.rows_out(self._look(self.rows_in(rms_norm(cells))))
        return cells + self.perceptron(rms_norm(cells))

    def _look(self, mixed: Float[Array, "R d 3C"]) -> Float[Array, "R d C"]:
        heads = mixed.reshape(*mixed.shape[:-1], 3, self.num_heads, -1)
        seen = attention(heads[..., 0, :, :], heads[..., 1, :, :], heads[..., 2, :, :])
        return seen.reshape(*seen.shape[:-2], -1)


class Trunk(eqx.Module):
    """Equal layers, one after the other in one compiled loop.

    With ``remat_every`` the gradient keeps the activations after every so many layers and computes those in between
    once more. It has to be the loop's body that is recomputed: around the whole trunk it would save nothing.
    """

    layers: AxialLayer  # every array has a leading axis of layers
    remat_every: int = eqx.field(static=True)

    @classmethod
    def create(cls, key: PRNGKey, config: SurrogateNetworkConfig) -> Self:
        """Make a fresh trunk."""
        layers = eqx.filter_vmap(lambda key: AxialLayer(key, config))(jax.random.split(key, config.num_layers))
        return cls(layers, config.remat_every)

    @property
    def num_layers(self) -> int:
        """How many layers there are."""
        return self.layers.columns_in.bias.shape[0]

    def __call__(self, cells: Float[Array, "R d C"]) -> Float[Array, "R d C"]:
        return rms_norm(apply_layers(self.layers, cells, self.remat_every))


def apply_layers(layers: AxialLayer, cells: Float[Array, "R d C"], remat_every: int) -> Float[Array, "R d C"]:
    """Send cells through layers, whose arrays have a leading axis of layers, one after the other."""
    arrays, rest = eqx.partition(layers, eqx.is_array)
    together = remat_every or 1
    groups = jax.tree.map(lambda x: x.reshape(-1, together, *x.shape[1:]), arrays)

    def apply(cells: Array, group: AxialLayer) -> tuple[Array, None]:
        for place in range(together):
            layer = eqx.combine(jax.tree.map(lambda x, place=place: x[place], group), rest)
            cells = layer(cells)
        return cells, None

    body = jax.checkpoint(apply, prevent_cse=False) if remat_every else apply
    return jax.lax.scan(body, cells, groups)[0]


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
