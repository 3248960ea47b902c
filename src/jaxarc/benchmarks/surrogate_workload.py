"""What a surrogate learns in a benchmark: a model of some size, and a batch for it."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.config import StructuralModelConfig, SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.surrogate import (
    CandidateScorer,
    CandidateSet,
    TrainingBatchJAX,
    candidates_of,
    draw_parent_sets,
    init_optimizer,
    make_surrogate_optimizer,
)
from jaxarc.surrogate.batch import CHANNELS
from jaxarc.types import PRNGKey

GRID_SIDE: Final = 10
GRID_CANDIDATES: Final = 64


@dataclass(frozen=True)
class Workload:
    """A model, and B examples: parent sets of variables, or boxes on grids of colors, as its reading says."""

    network: SurrogateNetworkConfig
    num_examples: int  # B; of parent sets a multiple of the number of variables
    training: SurrogateTrainingConfig = field(default_factory=SurrogateTrainingConfig)
    structure: StructuralModelConfig = field(default_factory=StructuralModelConfig)

    def batch(self) -> tuple[TrainingBatchJAX, CandidateSet]:
        """Draw the examples, the same each time."""
        if self.network.reading == "colors":
            return _boxes(self.num_examples)
        batch = draw_parent_sets(
            np.random.default_rng(0), self.num_examples // self.structure.num_variables, self.structure
        )
        return batch, candidates_of(batch)


class Learner:
    """Takes steps on the same batch, one after the other."""

    def __init__(self, workload: Workload, create: Callable[..., Any], loss_fn: Callable[..., Any]):
        """Make a fresh model and a step for it.

        Args:
            workload: the work.
            create: makes the step, such as :func:`create_jax_surrogate_train_step`.
            loss_fn: of one example.
        """
        self.batch, self.candidates = workload.batch()
        self.model, self.state = jax.tree.map(jnp.copy, _start(workload))  # a compiled step takes them away
        self.step = create(self.model, make_surrogate_optimizer(workload.training), loss_fn, workload.training)
        self.metrics: dict[str, Any] = {}

    def learn(self) -> None:
        """Take a step."""
        self.model, self.state, self.metrics = self.step(self.model, self.state, self.batch, self.candidates)

    def wait(self) -> None:
        """Wait until all steps are done."""
        jax.block_until_ready((self.model, self.state, self.metrics))


@functools.lru_cache(maxsize=32)
def _start(workload: Workload) -> tuple[CandidateScorer, Any]:
    num_features = workload.batch()[1].features.shape[-1]

    @jax.jit
    def make(key: PRNGKey) -> tuple[CandidateScorer, Any]:
        model = CandidateScorer(key, workload.network, num_features, (GRID_SIDE, GRID_SIDE))
        return model, init_optimizer(make_surrogate_optimizer(workload.training), model)

    return make(jax.random.key(0))


def _boxes(num_examples: int) -> tuple[TrainingBatchJAX, CandidateSet]:
    """Draw random grids, random boxes filled with a color as candidates, and an opinion on them."""
    generator = np.random.default_rng(0)
    shape = (num_examples, GRID_CANDIDATES)
    data = generator.integers(PADDING, NUM_COLORS, (num_examples, GRID_SIDE, GRID_SIDE, CHANNELS))
    corners = np.sort(generator.integers(0, GRID_SIDE, (2, *shape, 2)), axis=-1)
    place = np.arange(GRID_SIDE)
    rows, columns = ((place >= corners[..., :1]) & (place <= corners[..., 1:])).astype(np.float32)
    features = np.eye(NUM_COLORS, dtype=np.float32)[generator.integers(0, NUM_COLORS, shape)]
    probs = generator.dirichlet(np.ones(GRID_CANDIDATES), num_examples)
    batch = TrainingBatchJAX(data, probs, np.ones(num_examples))
    return batch, CandidateSet(*map(jnp.asarray, (rows, columns, features, np.ones(shape, np.bool_))))
