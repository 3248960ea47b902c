"""The trunk of a surrogate: layers of axial attention on a grid of cells, on one device or in a pipeline over several.

:class:`Trunk` holds the layers on one device. :class:`PipelinedTrunk` computes the same on a mesh with stages;
:func:`over_stages` and :func:`in_one_piece` turn one into the other.
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
    """Attention within each column, then within each row, then a perceptron on each cell.

    This is axial attention (Ho et al. 2019, https://arxiv.org/abs/1912.12180). On a 30x30 grid a cell attends to 30 +
    30 cells instead of 900, and after both passes it depends on every cell: cell (2, 7) reads (2, 4) in the row pass,
    which has read (9, 4) in the column pass. The layer has no positions of its own, so when rows or columns change
    places, the results change places with them.
    """

    columns_in: Dense
    columns_out: Dense
    rows_in: Dense
    rows_out: Dense
    perceptron: MLP
    num_heads: int = eqx.field(static=True)

    def __init__(self, key: PRNGKey, config: SurrogateNetworkConfig):
        size = config.latent_size
        # All layers add to the same cells, so each adds less the more there are: 8 have a gain of 16 ** -0.5 = 1/4.
        gain = (2 * config.num_layers) ** -0.5
        keys = jax.random.split(key, 5)
        self.columns_in = Dense(keys[0], size, 3 * size, lecun_scale(size))
        self.columns_out = Dense(keys[1], size, size, lecun_scale(size, gain))
        self.rows_in = Dense(keys[2], size, 3 * size, lecun_scale(size))
        self.rows_out = Dense(keys[3], size, size, lecun_scale(size, gain))
        self.perceptron = gelu_mlp(keys[4], (size, 2 * size, size), gain)
        self.num_heads = config.num_heads

    def __call__(self, cells: Float[Array, "R d C"]) -> Float[Array, "R d C"]:
        # Each of the three parts normalizes the cells, computes, and adds its result to them. ``_attend`` mixes along
        # the second axis: that of rows after the swap, so a cell first reads its column; then that of columns, its row.
        by_column = cells.swapaxes(0, 1)
        cells = cells + self.columns_out(self._attend(self.columns_in(rms_norm(by_column)))).swapaxes(0, 1)
        cells = cells + self.rows_out(self._attend(self.rows_in(rms_norm(cells))))
        return cells + self.perceptron(rms_norm(cells))

    def _attend(self, projected: Float[Array, "R d 3C"]) -> Float[Array, "R d C"]:
        """Attend along the second axis; the last one holds queries, keys and values."""
        # [R, d, 3C] -> [R, d, 3, heads, C / heads]: one product of matrices has made queries, keys and values.
        heads = projected.reshape(*projected.shape[:-1], 3, self.num_heads, -1)
        values = attention(heads[..., 0, :, :], heads[..., 1, :, :], heads[..., 2, :, :])
        return values.reshape(*values.shape[:-2], -1)


class Trunk(eqx.Module):
    """Layers of the same shape, one after the other in one compiled loop.

    With ``remat_every`` the gradient keeps the activations after every so many layers and recomputes those in between.
    ``jax.checkpoint`` must wrap the loop's body: around the whole trunk it would recompute all layers at once, and
    keep all their activations while it does.
    """

    layers: AxialLayer  # every array has a leading axis of layers
    remat_every: int = eqx.field(static=True)

    @classmethod
    def create(cls, key: PRNGKey, config: SurrogateNetworkConfig) -> Self:
        """Make a fresh trunk."""
        # Each array of the layers gets a leading axis, one entry for each key.
        layers = eqx.filter_vmap(lambda key: AxialLayer(key, config))(jax.random.split(key, config.num_layers))
        return cls(layers, config.remat_every)

    @property
    def num_layers(self) -> int:
        """How many layers there are."""
        return self.layers.columns_in.bias.shape[0]

    def __call__(self, cells: Float[Array, "R d C"]) -> Float[Array, "R d C"]:
        return rms_norm(apply_layers(self.layers, cells, self.remat_every))


def apply_layers(layers: AxialLayer, cells: Float[Array, "R d C"], remat_every: int) -> Float[Array, "R d C"]:
    """Apply layers one after the other; each of their arrays has a leading axis of layers.

    The body of the loop applies ``remat_every`` layers, or one: six layers with ``remat_every=2`` are a loop of three
    bodies, and the gradient keeps three activations instead of six times those inside a layer.
    """
    # [layers, ...] -> [layers / body_size, body_size, ...]: each turn of the loop takes one group of layers. Only
    # arrays can be scanned, so the static fields stay outside and are put back for each layer.
    arrays, rest = eqx.partition(layers, eqx.is_array)
    body_size = remat_every or 1
    groups = jax.tree.map(lambda x: x.reshape(-1, body_size, *x.shape[1:]), arrays)

    def apply(cells: Array, group: AxialLayer) -> tuple[Array, None]:
        for index in range(body_size):
            layer = eqx.combine(jax.tree.map(lambda x, index=index: x[index], group), rest)
            cells = layer(cells)
        return cells, None

    # A scan keeps the recomputation apart from the first computation by itself, so ``prevent_cse`` is not needed.
    body = jax.checkpoint(apply, prevent_cse=False) if remat_every else apply
    return jax.lax.scan(body, cells, groups)[0]


Model = TypeVar("Model")


class PipelinedTrunk(eqx.Module):
    """The layers of a :class:`Trunk`, split evenly over the devices along the mesh axis ``"stage"``.

    It is called with one example, as a trunk is, but only a whole batch can fill a pipeline. So it is a
    ``custom_vmap``: called with one example it applies all layers, and under ``jax.vmap`` it sends the whole batch
    through :func:`~jaxarc.parallel.pipeline.pipeline`. With 2 stages and a batch cut into 4 parts::

        beat       1    2    3    4    5
        stage 0    a    b    c    d            layers 0 .. 2
        stage 1         a    b    c    d       layers 3 .. 5

    Raises:
        ValueError: the batch cannot be cut into the parts, or ``jax.vmap`` maps over the weights.
    """

    layers: AxialLayer  # every array has a leading axis of layers
    remat_every: int = eqx.field(static=True)
    mesh: Mesh = eqx.field(static=True)
    num_parts: int = eqx.field(static=True)

    def __call__(self, cells: Float[Array, "R d C"]) -> Float[Array, "R d C"]:
        # ``custom_vmap`` maps arrays only, so the static fields reach the layers from outside.
        arrays, rest = eqx.partition(self.layers, eqx.is_array)

        def apply_to_one(arrays: AxialLayer, cells: Float[Array, "R d C"]) -> Float[Array, "R d C"]:
            return apply_layers(eqx.combine(arrays, rest), cells, self.remat_every)

        def apply_stage(arrays: AxialLayer, part: Float[Array, "B R d C"]) -> Float[Array, "B R d C"]:
            return jax.vmap(apply_to_one, (None, 0))(arrays, part)

        pipelined = custom_vmap(apply_to_one)

        # ``jax.vmap`` calls this rule instead of mapping ``apply_to_one``, with the whole batch at once.
        @pipelined.def_vmap
        def _(
            axis_size: int, is_batched: tuple, arrays: AxialLayer, batch: Float[Array, "B R d C"]
        ) -> tuple[Float[Array, "B R d C"], bool]:
            if any(jax.tree.leaves(is_batched[0])):
                raise ValueError("a trunk over stages takes one set of weights for a batch; train one seed at a time")
            return pipeline(apply_stage, arrays, batch, self.mesh, self.num_parts), True

        return rms_norm(pipelined(arrays, cells))


def over_stages(model: Model, mesh: Mesh, num_parts: int) -> Model:
    """Return a model whose trunk is split over the devices along the mesh axis ``"stage"``, with the same weights.

    Args:
        model: has a :class:`~jaxarc.surrogate.trunk.Trunk`, and is not placed yet; see
            :class:`~jaxarc.surrogate.MeshPlacement`.
        mesh: has the axis ``"stage"``, and of others at most ``"data"``.
        num_parts: number of parts of a batch; see :func:`~jaxarc.parallel.pipeline`.

    Raises:
        ValueError: the mesh has no stages, the model has no trunk, or the stages cannot have as many layers each.
    """
    if STAGE not in mesh.shape:
        raise ValueError(f"the mesh must have an axis {STAGE!r}, got {mesh.axis_names}; see create_mesh")
    trunks = [part for part in jax.tree.leaves(model, is_leaf=_is_trunk) if isinstance(part, Trunk)]
    if not trunks:
        raise ValueError(f"{type(model).__name__} has no trunk, or one that is split over stages already")
    num_stages = mesh.shape[STAGE]
    # A stage has whole bodies of the loop. Six layers over 2 stages work with remat_every=3, one body a stage, and not
    # with remat_every=2, since three bodies cannot be shared equally.
    for trunk in trunks:
        if trunk.num_layers % (num_stages * (trunk.remat_every or 1)):
            raise ValueError(
                f"num_layers must be a multiple of stages times remat_every (or 1), got {trunk.num_layers}, "
                f"{num_stages} and {trunk.remat_every}"
            )

    def split(part: Any) -> Any:
        return PipelinedTrunk(part.layers, part.remat_every, mesh, num_parts) if isinstance(part, Trunk) else part

    return jax.tree.map(split, model, is_leaf=_is_trunk)


def in_one_piece(model: Model) -> Model:
    """Return a copy of a model on the default device, trunk included: the inverse of :func:`over_stages`."""

    def join(part: Any) -> Any:
        return Trunk(part.layers, part.remat_every) if isinstance(part, PipelinedTrunk) else part

    arrays, rest = eqx.partition(jax.tree.map(join, model, is_leaf=_is_trunk), eqx.is_array)
    return eqx.combine(jax.device_put(arrays, jax.devices()[0]), rest)


def _is_trunk(part: Any) -> bool:
    return isinstance(part, Trunk | PipelinedTrunk)
