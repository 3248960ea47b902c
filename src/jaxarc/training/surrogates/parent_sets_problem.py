"""The posterior over parent sets as something to learn: the expert is exact."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float32

from jaxarc.config import ParentSetsConfig
from jaxarc.surrogate import (
    CandidateScorer,
    StructuralModelConfig,
    SurrogateNetworkConfig,
    candidates_of,
    draw_parent_sets,
)
from jaxarc.surrogate.train_step import Model
from jaxarc.training.surrogates.agreement import Agreement, agreement
from jaxarc.training.surrogates.problem import ExpertBatch
from jaxarc.types import PRNGKey

_LEARNED, _HELD_OUT = 0, 1  # streams of random numbers that never meet


class ParentSetsProblem:
    """Linear structural models, and which variables are the parents of each of their variables.

    A :class:`SurrogateProblem`. Batch i of a seed has a generator of its own, so it is the same whenever it is made.
    """

    def __init__(self, config: ParentSetsConfig, models: StructuralModelConfig, network: SurrogateNetworkConfig):
        self.config, self.models, self.network = config, models, network
        self._held_out = self._draw(config.measured_models, _HELD_OUT)

    def make_model(self, key: PRNGKey) -> CandidateScorer:
        """Make a fresh scorer, whose one feature of a candidate is the share of variables in it."""
        return eqx.filter_jit(CandidateScorer)(key, self.network, num_features=1)

    def batch(self, seed: int, step: int) -> ExpertBatch:
        """Draw models and their samples, and compute the posteriors."""
        return self._draw(self.config.models_per_batch, _LEARNED, seed, step)

    def measure(self, model: Model) -> Agreement:
        """Compare with the exact posteriors of models that are never learned from."""
        examples, candidates = self._held_out
        logits = _scores(model, self._held_out)
        return agreement(*map(np.asarray, (logits, examples.expert_probs, candidates.is_real)))

    def _draw(self, num_models: int, *place: int) -> ExpertBatch:
        examples = draw_parent_sets(np.random.default_rng(place), num_models, self.models)
        return ExpertBatch(examples, candidates_of(examples))


@eqx.filter_jit
def _scores(model: Model, batch: ExpertBatch) -> Float32[Array, "B k"]:
    return jax.vmap(model)(batch.examples.observational_data, batch.candidates)
