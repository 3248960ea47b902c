"""Which words the programs of tasks have: drawn rules are programs, so their words are known without a search.

A batch takes some rules, and describes each by its demonstrations and what each word makes of them on the first level
of a search. The trained weights are written for :mod:`jaxarc.search.guidance`, which evaluates them in NumPy.
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxarc.config import SearchExpertConfig, TaskConfig
from jaxarc.config.build import ConfigValidationError
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.nn.update import predict
from jaxarc.search.descriptions import MOST_PAIRS, NO_WORD, Described, key_indices, keys_of, word_keys
from jaxarc.search.guidance import Guide, Weights
from jaxarc.search.programs import GridProgram, ProgramError
from jaxarc.search.solve import described
from jaxarc.surrogate.agreement import Agreement, agreement
from jaxarc.surrogate.batch import TrainingBatchJAX
from jaxarc.surrogate.candidate_features import CandidateSet
from jaxarc.surrogate.surrogate_task import ExpertBatch, SurrogateTask
from jaxarc.surrogate.train_step import Model
from jaxarc.tasks.raw_task import RawTask
from jaxarc.types import PRNGKey

_UNITS: Final = 64  # of a task, and of the head
_KEY_UNITS: Final = 32
_STREAM: Final = 2  # first word of the seeds of batches


class WordScorer(eqx.Module):
    """Scores the keys of the vocabulary: the network of :class:`jaxarc.search.guidance.Guide`, to be trained.

    A perceptron sees each demonstration, and the mean over them is the task. A second one sees what a key's first
    states make of the demonstrations, a learned vector of the key, and the task.
    """

    weights: Weights

    def __init__(self, key: PRNGKey, num_numbers: int, num_features: int):
        """Draw the weights.

        Args:
            key: random key.
            num_numbers: d * 3, of a demonstration.
            num_features: F, of a key.
        """
        key_in, key_out, key_keys, key_head, key_last = jax.random.split(key, 5)
        seen = num_features + _KEY_UNITS + _UNITS

        def drawn(key: PRNGKey, inputs: int, outputs: int) -> Any:
            return jax.random.normal(key, (inputs, outputs), jnp.float32) * jnp.float32((2 / inputs) ** 0.5)

        arrays: dict[str, Any] = {  # of JAX, in the place of NumPy's
            "pair_in": drawn(key_in, num_numbers, _UNITS),
            "pair_in_bias": jnp.zeros(_UNITS, jnp.float32),
            "pair_out": drawn(key_out, _UNITS, _UNITS),
            "pair_out_bias": jnp.zeros(_UNITS, jnp.float32),
            "keys": jax.random.normal(key_keys, (len(word_keys()), _KEY_UNITS), jnp.float32) * jnp.float32(0.1),
            "key_bias": jnp.zeros(len(word_keys()), jnp.float32),
            "head": drawn(key_head, seen, _UNITS),
            "head_bias": jnp.zeros(_UNITS, jnp.float32),
            "last": drawn(key_last, _UNITS, 1)[:, 0] * jnp.float32(0.1),
        }
        self.weights = Weights(**arrays)

    def __call__(self, data: Float[Array, "N d 3"], candidates: CandidateSet) -> Float[Array, " k"]:
        w = self.weights
        dtype = w.head.dtype
        pairs = data.reshape(len(data), -1).astype(dtype)
        is_there = pairs[:, :1]  # the first number of a demonstration is 1, of a place without one 0
        hidden = jax.nn.relu(pairs @ w.pair_in + w.pair_in_bias[None])
        each = jax.nn.relu(hidden @ w.pair_out + w.pair_out_bias[None])
        task = (each * is_there).sum(0) / jnp.maximum(is_there.sum(), jnp.ones((), dtype))
        tasks = jnp.broadcast_to(task[None], (len(w.keys), len(task)))
        seen = jnp.concatenate([candidates.features.astype(dtype), w.keys, tasks], 1)
        return jax.nn.relu(seen @ w.head + w.head_bias[None]) @ w.last + w.key_bias


class SearchExpertTask(SurrogateTask):
    """Drawn rules to learn from, and others that are measured; a rule's words are all alike likely."""

    def __init__(self, config: SearchExpertConfig, learned: TaskSet, measured: Sequence[TaskSet]):
        self.config = config
        self.learned = learned
        self.measured = measured

    @classmethod
    def load(cls, config: SearchExpertConfig) -> "SearchExpertTask":
        """Load the sets by their names.

        Raises:
            UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        """
        return cls(config, load_tasks(config.learned), [load_tasks(name) for name in config.measured])

    def make_model(self, key: PRNGKey) -> WordScorer:
        """Make a fresh scorer."""
        examples, candidates = self.batch(0, 0)
        return WordScorer(key, examples.observational_data[0, 0].size, candidates.features.shape[-1])

    def batch(self, seed: int, step: int) -> ExpertBatch:
        """Draw rules, and describe each."""
        random = np.random.default_rng((_STREAM, seed, step))
        rows = random.integers(0, len(self.learned), self.config.num_examples)
        return _batch_of([self.learned[row] for row in rows.tolist()])

    def about(self, task: TaskConfig) -> list[str]:
        measured = ", ".join(f"{len(tasks):,} of {tasks.name}" for tasks in self.measured)
        return [f"{len(self.learned):,} rules of {self.learned.name}; measured on {measured}."]

    def evaluate(self, model: Model) -> Agreement:
        """Compare with the words of the rules that are not learned from."""
        examples, candidates = self._held_out
        logits = predict(model, examples.observational_data, candidates)
        return agreement(np.asarray(logits), np.asarray(examples.expert_probs), np.asarray(candidates.is_real))

    @functools.cached_property
    def _held_out(self) -> ExpertBatch:
        return _batch_of([task for tasks in self.measured for task in tasks])

    def write(self, model: Model, folder: Path) -> list[str]:
        weights = folder / "guidance.npz"
        self.guide(model).save(weights)
        return [f"For the search: jaxarc search TASK --guidance {weights}"]

    @staticmethod
    def guide(model: Model) -> Guide:
        """Return a trained scorer as the search evaluates it."""
        return Guide(Weights(*(np.asarray(array, np.float32) for array in model.weights)))


def _batch_of(tasks: Sequence[RawTask]) -> ExpertBatch:
    seen = [described(task.train, task.test[0][0]) for task in tasks]
    pairs, words, is_tried = map(np.stack, zip(*seen, strict=True))
    probs = np.stack([_probabilities(task, one) for task, one in zip(tasks, seen, strict=True)])
    examples = TrainingBatchJAX(pairs, probs, np.ones(len(tasks), np.float32))
    candidates = CandidateSet(
        rows=jnp.zeros((*is_tried.shape, MOST_PAIRS), jnp.float32),  # a key is no region of the data
        columns=jnp.zeros((*is_tried.shape, pairs.shape[2]), jnp.float32),
        features=jnp.asarray(words),
        is_real=jnp.asarray(is_tried),
    )
    return ExpertBatch(examples, candidates)


def _probabilities(task: RawTask, seen: Described) -> np.ndarray:
    try:
        keys = keys_of(GridProgram.parse(task.title).all_words)
    except ProgramError as error:
        raise ConfigValidationError(
            f"task {task.task_id} has no program in its title: {error}; search_expert.learned and measured name sets "
            "of jaxarc tasks generate rules"
        ) from error
    probs = np.zeros(len(word_keys()), np.float32)
    probs[[key for key in keys if seen.is_tried[key]] or [key_indices()[NO_WORD]]] = 1.0
    return probs / probs.sum()
