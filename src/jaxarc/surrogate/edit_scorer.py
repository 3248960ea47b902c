"""A scorer that predicts the grid that each candidate edit leaves, and compares it with the target; and its train step.

The scorer of counts, :class:`jaxarc.surrogate.CountingScorer`, knows fills exactly, and of other operations only how
often they are best. This one asks a :class:`jaxarc.surrogate.TransitionModel` about each candidate, so it knows how far
a flood spreads and what a turn or a move of the whole grid makes, once the model has learned it. It computes some ten
thousand products for each cell of each candidate, where the scorer of counts takes a few words of bits.
"""

from typing import Any, Final

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float, Float32

from jaxarc import constants as c
from jaxarc.config import SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.constants import PADDING
from jaxarc.fusion import compiles_for_cpu
from jaxarc.nn.precision import DTYPES, cast_floats
from jaxarc.surrogate.candidates import CandidateSet
from jaxarc.surrogate.losses import kl_divergence_loss_jax, mask_padding
from jaxarc.surrogate.train_step import Metrics, Model, Step, create_example_train_step
from jaxarc.surrogate.transition_model import TransitionBatch, TransitionModel, step_loss
from jaxarc.types import PRNGKey

_PERCENT: Final = 100.0  # similarities are in percent, so that weights of about 1 separate scores by one cell of 10x10
_SCORED_AT_ONCE: Final = 8  # candidates whose numbers fit a CPU's cache


class EditScorer(eqx.Module):
    """Scores candidate boxes by the similarity of predicted next grid and target; ``jax.vmap`` scores a batch.

    A logit is a weight times that similarity; of a submit it is one of two constants, the second where the grid is
    right already. So edits that are predicted to leave the same grid have the same logit, to the bit. The clipboard is
    taken to be empty.
    """

    transition: TransitionModel
    similarity_weight: Float[Array, ""]
    submit_weights: Float[Array, " 2"]  # of a wrong grid, and of a right one

    def __init__(self, key: PRNGKey, config: SurrogateNetworkConfig):
        """Draw the weights; of the config only ``latent_size`` counts."""
        self.transition = TransitionModel(key, config)
        self.similarity_weight = jnp.float32(0.5)
        self.submit_weights = jnp.zeros(2, jnp.float32)

    def __call__(self, data: Float[Array, "N d 3"], candidates: CandidateSet) -> Float[Array, " k"]:
        # ``custom_vmap`` maps arrays only, so the static fields reach the function from outside.
        arrays, static = eqx.partition(self, eqx.is_array)
        score = custom_vmap(lambda arrays, *state: eqx.combine(arrays, static).score(*state))

        @score.def_vmap
        def _(size: int, is_batched: tuple, arrays: EditScorer, *states: Any) -> tuple[Float[Array, "B k"], bool]:
            if any(jax.tree.leaves(is_batched[0])):
                raise ValueError("an EditScorer takes one set of weights for a batch; train one seed at a time")
            lead = lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape))
            states = jax.tree.map(lead, states, tuple(is_batched[1:]))
            one = lambda state: eqx.combine(arrays, static).score(*state)
            # On a CPU one state after the other, a few candidates at a time, so that their arrays stay in the cache.
            return jax.lax.map(one, states) if compiles_for_cpu() else jax.vmap(one)(states), True

        return score(arrays, data, candidates)

    def score(self, data: Float[Array, "N d 3"], candidates: CandidateSet) -> Float[Array, " k"]:
        """Return the logits of one state's candidates."""
        grid, target, _ = jnp.moveaxis(jnp.round(data).astype(jnp.int32), -1, 0)
        clipboard = jnp.full((*grid.shape, 1), PADDING, data.dtype)
        with_clipboard = jnp.concatenate([data, clipboard], axis=-1)
        weight = self.similarity_weight.astype(jnp.float32)
        submit = self.submit_weights.astype(jnp.float32)[(grid == target).all().astype(jnp.int32)]

        def score(candidate: CandidateSet) -> Float[Array, ""]:
            after = self.transition.network(with_clipboard, candidate).grid.similarity(target)
            return _PERCENT * jnp.where(candidate.features[c.SUBMIT] > 0, submit, weight * after)

        num_at_once = _SCORED_AT_ONCE if compiles_for_cpu() else len(candidates.is_real)
        return jax.lax.map(score, candidates, batch_size=num_at_once)


class EditBatch(eqx.Module):
    """B states with k candidate edits each, and for each of them m steps of the environment, from any other states."""

    data: Float32[Array, "B N d 3"]  # working grid, target and input: -1 .. 9
    candidates: CandidateSet  # leaves [B, k, ...]
    probs: Float32[Array, "B k"]  # of the expert; 0 of padding
    steps: TransitionBatch  # leaves [B, m, ...]


def create_edit_train_step(
    model: EditScorer, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig
) -> Step:
    """Make a compiled step that learns steps of the environment and an expert; see :func:`create_example_train_step`.

    The transition model learns from the steps alone. The weights that turn similarities into logits learn from the KL
    divergence to the expert, which takes the predicted grids as they are: its gradient through all candidates would
    cost several times as much, and by itself it did not teach floods.

    Args:
        model: an :class:`EditScorer`; it gives the structure only.
        optimizer: of the model's floating-point arrays.
        config: of precision and accumulation.

    Returns:
        The step, of batches of :class:`EditBatch`. Its metrics are ``total_loss``, ``top1_agreement``, ``exact_grids``
        and ``gradient_norm``, arrays.
    """
    dtype = DTYPES[config.precision]

    def example_loss(model: Model, example: EditBatch) -> tuple[Array, Metrics]:
        fixed = eqx.tree_at(lambda model: model.transition, model, jax.lax.stop_gradient(model.transition))
        logits = fixed(example.data, cast_floats(example.candidates, dtype))
        logits = mask_padding(logits, example.candidates.is_real)
        # Several candidates may share the expert's highest probability.
        agrees = example.probs[jnp.argmax(logits)] == example.probs.max()
        losses, metrics = jax.vmap(lambda step: step_loss(model.transition, step, dtype))(example.steps)
        loss = kl_divergence_loss_jax(logits, example.probs) + losses.mean()
        return loss, {"top1_agreement": agrees.astype(jnp.float32), "exact_grids": metrics["exact_grids"].mean()}

    return create_example_train_step(model, optimizer, example_loss, config, EditBatch)
