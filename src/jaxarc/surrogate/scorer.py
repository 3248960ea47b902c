"""The surrogate of an expert: one forward pass from the data to a logit of each candidate."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxarc.config.surrogate import SurrogateNetworkConfig
from jaxarc.nn.layers import MLP, Dense, gelu_mlp, lecun_scale
from jaxarc.surrogate.candidates import CandidateSet
from jaxarc.surrogate.reading import Reading, make_reading
from jaxarc.surrogate.trunk import Trunk
from jaxarc.types import PRNGKey


class CandidateScorer(eqx.Module):
    """Scores the candidates of one example; ``jax.vmap`` scores a batch.

    A candidate is judged by the cells in its region and by its own features, and not by its place among the
    candidates: when they change places, so do the logits.
    """

    reading: Reading
    trunk: Trunk
    gate: Dense  # from a candidate's features to what counts in its region
    judge: MLP

    def __init__(
        self, key: PRNGKey, config: SurrogateNetworkConfig, num_features: int, grid_shape: tuple[int, int] = (1, 1)
    ):
        """Make a fresh scorer.

        Args:
            key: random key.
            config: size and reading.
            num_features: F, of a candidate.
            grid_shape: (N, d) of a grid of colors; samples take any.
        """
        key_reading, key_trunk, key_gate, key_judge = jax.random.split(key, 4)
        size = config.latent_size
        self.reading = make_reading(key_reading, config, grid_shape)
        self.trunk = Trunk.create(key_trunk, config)
        self.gate = Dense(key_gate, num_features, 2 * size, lecun_scale(num_features))
        self.judge = gelu_mlp(key_judge, (4 * size + num_features, 2 * size, 1), 0.1)

    def __call__(self, data: Float[Array, "N d 3"], candidates: CandidateSet) -> Float[Array, " k"]:
        cells = self.trunk(self.reading(data))
        region = pool(cells, candidates)
        gated = region * self.gate(candidates.features)
        return self.judge(jnp.concatenate([region, gated, candidates.features], axis=-1))[..., 0]


def pool(cells: Float[Array, "R d C"], candidates: CandidateSet) -> Float[Array, "k 2C"]:
    """Return the sum over each candidate's region, in units of the grid's side, and its mean; 0 of an empty region."""
    along_rows = jnp.einsum("kr,rdc->kdc", candidates.rows, cells)
    total = jnp.einsum("kd,kdc->kc", candidates.columns, along_rows)
    area = candidates.rows.sum(axis=-1) * candidates.columns.sum(axis=-1)
    mean = total / jnp.where(area > 0, area, jnp.ones_like(area))[:, None]
    return jnp.concatenate([total / (cells.shape[0] * cells.shape[1]) ** 0.5, mean], axis=-1)
