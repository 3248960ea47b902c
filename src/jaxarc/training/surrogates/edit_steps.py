"""Steps of the environment as something to learn: what an action makes of a grid, and what it pays."""

from collections.abc import Iterator
from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxarc.config import EditStepsConfig, JaxArcConfig, SurrogateNetworkConfig, TaskConfig
from jaxarc.envs.params import EnvParams
from jaxarc.surrogate import TransitionModel
from jaxarc.surrogate.candidates import NUM_ACTION_FEATURES
from jaxarc.surrogate.transition_model import TransitionBatch
from jaxarc.training.pairs import load_pairs
from jaxarc.training.surrogates.contest import held_out_params
from jaxarc.training.surrogates.walks import draw_walks, walked_operations
from jaxarc.training.updates import make_params
from jaxarc.types import PRNGKey

_HELD_OUT: Final = 2**31 - 1  # seed of the measured steps, beyond those of runs


class EditSteps:
    """Short walks with any operations on any boxes; a :class:`TransitionProblem`.

    Batch i of a seed has a key of its own, so it is the same whenever it is made.

    Attributes:
        learned: pairs that are learned from, and rules.
        measured: pairs that are not.
    """

    def __init__(
        self, learned: EnvParams, measured: EnvParams, config: EditStepsConfig, network: SurrogateNetworkConfig
    ):
        self.learned, self.measured, self.config, self.network = learned, measured, config, network
        self._operations = jnp.array(walked_operations(learned.config), jnp.int32)
        self._measured_steps: TransitionBatch | None = None

    @classmethod
    def load(
        cls, task: TaskConfig, rules: JaxArcConfig, config: EditStepsConfig, network: SurrogateNetworkConfig
    ) -> "EditSteps":
        """Load both data sets.

        Raises:
            UnknownDatasetError, TaskFormatError, ValueError: see :func:`jaxarc.training.load_pairs`.
        """
        pairs = load_pairs(task, rules.grid_shape)
        plain = rules.with_fields(recolor="none", symmetries="none")
        return cls(make_params(pairs.learned, rules), held_out_params(pairs, plain), config, network)

    def make_model(self, key: PRNGKey) -> TransitionModel:
        """Make a fresh model, whose features of an action tell the operation."""
        shape = self.learned.config.grid_shape
        return eqx.filter_jit(TransitionModel)(key, self.network, NUM_ACTION_FEATURES, shape)

    def batch(self, seed: int, step: int) -> TransitionBatch:
        """Walk in pairs that are learned from."""
        key = jax.random.fold_in(jax.random.key(seed), step)
        return _walk(key, self.learned, self._operations, self.config.walk_steps, self.config.num_examples)

    def held_out(self) -> TransitionBatch:
        """Walk in pairs that are not, always in the same way."""
        if self._measured_steps is None:
            key, config = jax.random.key(_HELD_OUT), self.config
            self._measured_steps = _walk(key, self.measured, self._operations, config.walk_steps, config.num_measured)
        return self._measured_steps

    def walks(self) -> Iterator[TransitionBatch]:
        """Walk in pairs that are not learned from, with each operation by itself; always in the same way."""
        shape = self.config.drift_steps, self.config.drift_walks
        for operation in walked_operations(self.measured.config):
            key = jax.random.fold_in(jax.random.key(_HELD_OUT), operation)
            yield _walk_in(key, jnp.full(shape, operation, jnp.int32), self.measured)


@eqx.filter_jit
def _walk(key: PRNGKey, params: EnvParams, operations: jax.Array, num_steps: int, count: int) -> TransitionBatch:
    key_operations, key_walks = jax.random.split(key)
    drawn = jax.random.randint(key_operations, (num_steps, count // num_steps), 0, len(operations), jnp.int32)
    chosen = operations[drawn]
    walks = draw_walks(key_walks, chosen, params)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), walks)


_walk_in = eqx.filter_jit(draw_walks)
