"""What a surrogate trains on: a stream of batches, a train step, and held-out examples that measure a model.

The training loop knows only :class:`SurrogateTask`. Tasks whose batches hold an expert's distribution over candidates
share :class:`CandidateTask`; :class:`ParentSetsTask` is the one whose expert is an exact posterior.
"""

import abc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float32

from jaxarc.agents.updates import make_params
from jaxarc.config import JaxArcConfig, ParentSetsConfig, TaskConfig
from jaxarc.datasets import TaskSet
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.envs.params import EnvParams
from jaxarc.surrogate import (
    CandidateScorer,
    CandidateSet,
    StructuralModelConfig,
    SurrogateNetworkConfig,
    SurrogateTrainingConfig,
    TrainingBatchJAX,
    candidates_of,
    create_jax_surrogate_train_step,
    draw_parent_sets,
    kl_divergence_loss_jax,
)
from jaxarc.surrogate.train_step import Model, Step
from jaxarc.training.surrogates.agreement import Agreement, agreement
from jaxarc.types import PRNGKey

HELD_OUT_SEED: Final = 2**31 - 1  # of held-out examples; SurrogateConfig allows runs only the seeds below it
# First words of the seeds of parent sets, so that no two of them are equal.
_TRAIN_STREAM = 0
_EVAL_STREAM = 1


class EvaluationMetrics(Protocol):
    """The metrics of a task on held-out examples."""

    def numbers(self) -> dict[str, float]:
        """Return the numbers of a report, by the names of its fields."""
        ...


class SurrogateTask(Protocol):
    """A model and its examples, as the training loop sees them."""

    metric_fields: ClassVar[Mapping[str, str]]
    """From the name of a step's metric to the field of the report that holds its mean."""

    def make_model(self, key: PRNGKey) -> Model:
        """Make a fresh model, an Equinox module."""
        ...

    def make_step(self, model: Model, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig) -> Step:
        """Make the compiled step that learns from the batches."""
        ...

    def batch(self, seed: int, step: int) -> Any:
        """Make the batch of a step.

        It depends on the seed and the step alone, so that a resumed run sees the batches that it would have seen.
        The prefetcher's thread calls this ahead of time, steps in order. All batches have the same shapes and static
        parts.
        """
        ...

    def evaluate(self, model: Model) -> EvaluationMetrics:
        """Measure a model on held-out examples, in every call the same ones."""
        ...


class ExpertBatch(NamedTuple):
    """B examples of an expert's distribution, as a pytree."""

    examples: TrainingBatchJAX
    candidates: CandidateSet


class CandidateTask(abc.ABC):
    """A :class:`SurrogateTask` whose batches are :class:`ExpertBatch`; a task of your own subclasses this."""

    metric_fields: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"total_loss": "total_loss", "top1_agreement": "batch_top1_agreement", "gradient_norm": "gradient_norm"}
    )

    @abc.abstractmethod
    def make_model(self, key: PRNGKey) -> Model:
        """Make a fresh model that is called as a :class:`CandidateScorer` is."""

    @abc.abstractmethod
    def batch(self, seed: int, step: int) -> ExpertBatch:
        """Make the batch of a step; see :class:`SurrogateTask`."""

    @abc.abstractmethod
    def evaluate(self, model: Model) -> Agreement:
        """Compare a model with the expert on held-out examples."""

    def make_step(self, model: Model, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig) -> Step:
        """Make a step that minimizes the KL divergence to the expert."""
        # The loop hands over one batch; the step takes examples and candidates apart.
        step = create_jax_surrogate_train_step(model, optimizer, kl_divergence_loss_jax, config)

        def train_step(model: Model, opt_state: optax.OptState, batch: ExpertBatch) -> tuple:
            return step(model, opt_state, batch.examples, batch.candidates)

        return train_step


class ParentSetsTask(CandidateTask):
    """Which variables are the parents of each variable of a linear structural model; the expert is exact.

    Batch i of a seed has a NumPy generator of its own, seeded with the words (0, seed, i).
    """

    def __init__(self, config: ParentSetsConfig, models: StructuralModelConfig, network: SurrogateNetworkConfig):
        self.config = config
        self.models = models
        self.network = network
        self._held_out = self._draw(config.eval_models, _EVAL_STREAM)

    def make_model(self, key: PRNGKey) -> CandidateScorer:
        """Make a fresh scorer; the one feature of a candidate is the share of variables in it."""
        return eqx.filter_jit(CandidateScorer)(key, self.network, num_features=1)

    def batch(self, seed: int, step: int) -> ExpertBatch:
        """Draw models and their samples, and compute the posteriors."""
        return self._draw(self.config.models_per_batch, _TRAIN_STREAM, seed, step)

    def evaluate(self, model: Model) -> Agreement:
        """Compare with the exact posteriors of held-out models."""
        examples, candidates = self._held_out
        logits = _score_parent_sets(model, self._held_out)
        return agreement(np.asarray(logits), np.asarray(examples.expert_probs), np.asarray(candidates.is_real))

    def _draw(self, num_models: int, *seed_words: int) -> ExpertBatch:
        # The words of the seed are (0, seed, step) for training and (1,) for held-out
        # models, so no stream meets another.
        examples = draw_parent_sets(np.random.default_rng(seed_words), num_models, self.models)
        return ExpertBatch(examples, candidates_of(examples))


def load_params(task: TaskConfig, rules: JaxArcConfig) -> tuple[EnvParams, EnvParams, int]:
    """Load the pairs to learn from, and the held-out ones, each a task of its own and without augmentation.

    Returns:
        Both with the rules, and how many pairs of the held-out data set training holds, which are left out.

    Raises:
        UnknownDatasetError, TaskFormatError, ValueError: see :func:`jaxarc.training.pairs.load_pairs`.
    """
    pairs = load_pairs(task, rules.grid_shape, augmentation=rules.augmentation)
    held_out = TaskSet("held-out pairs", tuple(pairs.eval)[pairs.num_train :])
    plain = rules.with_fields(recolor="none", symmetries="none")
    return make_params(pairs.train, rules), make_params(held_out, plain), pairs.num_left_out


@eqx.filter_jit
def _score_parent_sets(model: Model, batch: ExpertBatch) -> Float32[Array, "B k"]:
    return jax.vmap(model)(batch.examples.observational_data, batch.candidates).astype(jnp.float32)
