"""A model of the edges of a causal graph, from samples of its variables."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32

from jaxarc.config import SurrogateNetworkConfig
from jaxarc.config.surrogate import MAX_VARIABLES
from jaxarc.nn.layers import MLP, gelu_mlp
from jaxarc.nn.update import predict
from jaxarc.surrogate.encoders import MomentEncoder
from jaxarc.surrogate.structural_models import describe_samples
from jaxarc.surrogate.trunk import Trunk
from jaxarc.types import PRNGKey


class EdgeScorer(eqx.Module):
    """Scores each ordered pair of variables: is the first a parent of the second? ``jax.vmap`` scores a batch.

    The encoder makes a cell of each pair, and the trunk mixes the cells. The weights fit any number of samples and
    variables, and are good for those that they were trained on.
    """

    encoder: MomentEncoder
    trunk: Trunk
    head: MLP
    max_variables: int = eqx.field(static=True)  # that edge_probabilities accepts

    def __init__(self, key: PRNGKey, config: SurrogateNetworkConfig, max_variables: int = MAX_VARIABLES):
        key_encoder, key_trunk, key_head = jax.random.split(key, 3)
        size = config.latent_size
        self.encoder = MomentEncoder(key_encoder, size, higher=True)
        self.trunk = Trunk.create(key_trunk, config)
        self.head = gelu_mlp(key_head, (size, size, 1), 0.1)
        self.max_variables = max_variables

    def __call__(self, data: Float[Array, "N d 3"]) -> Float[Array, "d d"]:
        """Return a logit of each edge i -> j; those of the diagonal mean nothing."""
        return self.head(self.trunk(self.encoder(data)))[..., 0]


@runtime_checkable
class _PandasFrame(Protocol):
    index: Any
    columns: Any
    iloc: Any


def edge_probabilities(
    model: EdgeScorer, values: Float[np.ndarray, "N d"] | Any, is_set: Bool[np.ndarray, "N d"] | Any | None = None
) -> Float32[np.ndarray, "d d"] | Any:
    """Return the probability of each edge i -> j, given samples; 0 on the diagonal.

    The probabilities are those of a prior like the one that the model was trained on: its mechanisms, its number of
    variables and of samples.

    Args:
        model: a trained one.
        values: N samples of d variables, in any units; an array, or a data frame of d columns.
        is_set: where a value is set by an intervention; nowhere by default.

    Returns:
        An array, in the order of the columns; of a data frame of pandas a data frame, whose rows (causes) and columns
        (effects) have the labels of its columns. :func:`~jaxarc.surrogate.causal_graph` takes either.

    Raises:
        TypeError: the model is of another type.
        ValueError: there are more variables than the model is for; see also :func:`describe_samples`.
    """
    data = describe_samples(values, is_set)
    if data.ndim != 3:
        raise ValueError(f"values must have the shape (N, d), got {data.shape[:-1]}")
    if not isinstance(model, EdgeScorer):
        raise TypeError(f"model must be an EdgeScorer, got {type(model).__name__}")
    if data.shape[1] > model.max_variables:
        raise ValueError(
            f"the model is for at most {model.max_variables} variables, got {data.shape[1]}; leave some out, or train "
            f"one with more structural_models.num_variables, of which {MAX_VARIABLES} are the most"
        )
    probs = np.array(predict_edges(model, jnp.asarray(data[None]))[0])
    np.fill_diagonal(probs, 0.0)
    if isinstance(values, _PandasFrame):
        frame: Any = type(values)
        return frame(probs, index=list(values.columns), columns=list(values.columns))
    return probs


@eqx.filter_jit
def predict_edges(model: Callable[..., Array], data: Float32[Array, "B N d 3"]) -> Float32[Array, "B d d"]:
    """Return the probabilities of the edges of a batch of models; those of the diagonal mean nothing."""
    return jax.nn.sigmoid(predict(model, data))
