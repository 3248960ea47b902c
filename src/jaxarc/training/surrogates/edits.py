"""The lookahead expert and steps of the environment as one task, for a scorer that predicts what candidates make."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import equinox as eqx
import jax
import optax

from jaxarc.config import EditStepsConfig, SurrogateTrainingConfig
from jaxarc.surrogate.edit_scorer import EditBatch, EditScorer, create_edit_train_step
from jaxarc.surrogate.train_step import Step
from jaxarc.training.surrogates.agreement import Agreement
from jaxarc.training.surrogates.dynamics import TransitionDataset
from jaxarc.training.surrogates.lookahead import LookaheadTask
from jaxarc.types import PRNGKey


class EditTask:
    """Examples of the lookahead expert, each beside steps of the environment; a :class:`SurrogateTask`.

    Attributes:
        lookahead: gives the examples, and the held-out ones.
        transitions: gives the steps, of the same pairs.
    """

    metric_fields: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "total_loss": "total_loss",
            "top1_agreement": "batch_top1_agreement",
            "exact_grids": "transition_exact_grids",
            "gradient_norm": "gradient_norm",
        }
    )

    def __init__(self, lookahead: LookaheadTask, steps: EditStepsConfig):
        self.lookahead = lookahead
        self.transitions = TransitionDataset(
            lookahead.train_params, lookahead.eval_params, steps, lookahead.network, lookahead.num_left_out
        )

    @property
    def num_left_out(self) -> int:
        """Return how many pairs of the held-out data set training holds."""
        return self.lookahead.num_left_out

    def make_model(self, key: PRNGKey) -> EditScorer:
        """Make a fresh scorer."""
        return eqx.filter_jit(EditScorer)(key, self.lookahead.network)

    def training_config(self, config: SurrogateTrainingConfig) -> SurrogateTrainingConfig:
        """Return the run's config with the learning rates of ``edit_steps``."""
        return self.transitions.training_config(config)

    def make_step(
        self, model: EditScorer, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig
    ) -> Step:
        """Make a step that learns steps of the environment and the expert."""
        return create_edit_train_step(model, optimizer, config)

    def batch(self, seed: int, step: int) -> EditBatch:
        """Ask the expert in states of training pairs, and take random steps in others."""
        examples, candidates = self.lookahead.batch(seed, step)
        # 128 steps beside 8 examples are 16 for each of them.
        shape = (len(examples.expert_probs), -1)
        steps = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), self.transitions.batch(seed, step))
        return EditBatch(examples.observational_data, candidates, examples.expert_probs, steps)

    def evaluate(self, model: EditScorer) -> Agreement:
        """Compare a model with the expert on held-out pairs."""
        return self.lookahead.evaluate(model)
