"""The lookahead expert as something to learn: which of k candidate edits it likes, on pairs of ARC."""

from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32

from jaxarc.config import JaxArcConfig, LookaheadConfig, SurrogateNetworkConfig, TaskConfig
from jaxarc.envs.params import EnvParams
from jaxarc.experts.candidates import require_count
from jaxarc.surrogate import CandidateScorer, CandidateSet, TrainingBatchJAX
from jaxarc.surrogate.candidates import NUM_ACTION_FEATURES, describe_boxes
from jaxarc.surrogate.scorers import CountingScorer
from jaxarc.surrogate.train_step import Model
from jaxarc.training.pairs import load_pairs, shared_ids
from jaxarc.training.surrogates.agreement import Agreement, agreement
from jaxarc.training.surrogates.contest import held_out_params
from jaxarc.training.surrogates.lookahead_examples import LookaheadExamples, draw_examples
from jaxarc.training.surrogates.problem import ExpertBatch
from jaxarc.training.updates import make_params
from jaxarc.types import PRNGKey

_HELD_OUT: Final = 2**31 - 1  # seed of the measured examples, beyond those of runs
_MEASURED_AT_ONCE: Final = 256  # held-out examples in a batch, or as many as one episode gives


class LookaheadProblem:
    """States on the way from input to target, and what the expert thinks of candidate boxes there.

    A :class:`SurrogateProblem`. Batch i of a seed has a key of its own, so it is the same whenever it is made. The
    expert's scores are exact, so every example has an accuracy of 1. Its regret is the score of the best candidate
    minus that of the surrogate's first choice: a similarity, where a right submit counts 2 and a wrong one -1.

    Attributes:
        learned: pairs that are learned from, and rules.
        measured: pairs that are not, as they stand in the data.
    """

    def __init__(
        self, learned: EnvParams, measured: EnvParams, config: LookaheadConfig, network: SurrogateNetworkConfig
    ):
        self.learned, self.measured, self.config, self.network = learned, measured, config, network
        self._held_out: list[LookaheadExamples] = []

    @classmethod
    def load(
        cls, task: TaskConfig, rules: JaxArcConfig, config: LookaheadConfig, network: SurrogateNetworkConfig
    ) -> "LookaheadProblem":
        """Load both data sets.

        Raises:
            UnknownDatasetError, TaskFormatError: see :func:`jaxarc.training.load_pairs`.
            ValueError: no task is small enough, the data sets share pairs, or there are too few candidates.
        """
        require_count(config.num_candidates, rules)
        pairs = load_pairs(task, rules.grid_shape)
        if shared := shared_ids(pairs):
            raise ValueError(
                f"task.evaluation_dataset={task.evaluation_dataset} is held out, but shares {len(shared)} pairs with "
                f"task.train_dataset={task.train_dataset}, such as {min(shared)}; choose another one"
            )
        plain = rules.with_fields(recolor="none", symmetries="none")
        return cls(make_params(pairs.learned, rules), held_out_params(pairs, plain), config, network)

    def make_model(self, key: PRNGKey) -> Model:
        """Make the fresh scorer that the config names; its features of a candidate tell the operation."""
        if self.config.scorer == "counts":
            return CountingScorer(key)
        shape = self.learned.config.grid_shape
        return eqx.filter_jit(CandidateScorer)(key, self.network, NUM_ACTION_FEATURES, shape)

    def batch(self, seed: int, step: int) -> ExpertBatch:
        """Play in pairs that are learned from, and ask the expert."""
        key = jax.random.fold_in(jax.random.key(seed), step)
        examples = _draw(key, self.learned, self.config)
        labeled = TrainingBatchJAX(examples.data, examples.probs, jnp.ones((len(examples.probs),), jnp.float32))
        return ExpertBatch(labeled, _describe(examples))

    def held_out(self) -> list[LookaheadExamples]:
        """Return the examples that models are measured on, in batches: always the same, whatever is learned from."""
        if not self._held_out:
            key = jax.random.key(_HELD_OUT)
            self._held_out = [
                _draw(jax.random.fold_in(key, i), self.measured, self.config.replace(num_examples=size))
                for i, size in enumerate(_batch_sizes(self.config.num_measured, self.config.episode_steps))
            ]
        return self._held_out

    def measure(self, model: Model) -> Agreement:
        """Compare with the expert on pairs that are never learned from."""
        batches = self.held_out()
        logits = [np.asarray(_score(model, examples)) for examples in batches]
        probs, is_real, scores = (
            np.concatenate([np.asarray(part) for part in parts])
            for parts in zip(*((each.probs, each.is_real, each.scores) for each in batches), strict=True)
        )
        return agreement(np.concatenate(logits), probs, is_real, scores)


def _batch_sizes(num_examples: int, episode_steps: int) -> list[int]:
    """Cut examples into batches of whole episodes; only the last one may be smaller."""
    size = max(_MEASURED_AT_ONCE // episode_steps, 1) * episode_steps
    whole, rest = divmod(num_examples, size)
    return [size] * whole + [rest] * (rest > 0)


@eqx.filter_jit
def _draw(key: PRNGKey, params: EnvParams, config: LookaheadConfig) -> LookaheadExamples:
    return draw_examples(key, params, config)


@jax.jit
def _describe(examples: LookaheadExamples) -> CandidateSet:
    _, height, width, _ = examples.data.shape
    return describe_boxes(examples.actions, examples.is_real, (height, width))


@eqx.filter_jit
def _score(model: Model, examples: LookaheadExamples) -> Float32[Array, "B k"]:
    return jax.vmap(model)(examples.data, _describe(examples))
