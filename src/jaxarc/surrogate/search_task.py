"""The program search as an expert: which words the programs have that explain a task's demonstrations.

The examples are recorded once (:mod:`jaxarc.search.word_examples`). A batch takes some of them, each under one of the
eight symmetries: what is said of ``half(left)`` is then said of ``half(right)``. Other colors change nothing that the
network sees. The trained weights are written for :mod:`jaxarc.search.guidance`, which evaluates them in NumPy.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxarc.config import SearchConfig, SearchExpertConfig
from jaxarc.datasets import load_tasks
from jaxarc.files import user_cache
from jaxarc.jobs import host_cores
from jaxarc.nn.update import predict
from jaxarc.search.descriptions import MOST_PAIRS, vocabulary_digest, word_keys
from jaxarc.search.guidance import Guide, Weights
from jaxarc.search.turned_words import NUM_SYMMETRIES, turned_keys
from jaxarc.search.word_examples import ExpertExamples, fold_of, record
from jaxarc.surrogate.agreement import Agreement, agreement
from jaxarc.surrogate.batch import TrainingBatchJAX
from jaxarc.surrogate.candidate_features import CandidateSet
from jaxarc.surrogate.surrogate_task import ExpertBatch, SurrogateTask
from jaxarc.surrogate.train_step import Model
from jaxarc.types import PRNGKey

_UNITS: Final = 32  # of a task, and of the head
_KEY_UNITS: Final = 16
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
    """Examples of an expert, the search, split into those to learn from and the held-out fold of tasks.

    Attributes:
        train: examples to learn from, dreams too.
        held_out: of the tasks of the held-out fold, no dreams; of all tasks where no fold is held out.
    """

    def __init__(self, recorded: ExpertExamples, config: SearchExpertConfig):
        self.config = config
        folds = np.array([fold_of(str(one)) for one in recorded.task_ids])
        is_held_out = folds == config.fold if config.fold >= 0 else np.zeros(len(folds), np.bool_)
        self.train = _chosen(recorded, ~is_held_out)
        self.held_out = _chosen(recorded, (is_held_out | (config.fold < 0)) & ~recorded.is_dreamed)
        if not len(self.train.probs) or not len(self.held_out.probs):
            raise ValueError(
                f"fold {config.fold} leaves {len(self.train.probs)} examples to learn from and "
                f"{len(self.held_out.probs)} to measure; record more tasks"
            )
        # Dreams are many, so that each kind is drawn as often as the config says.
        share = np.where(self.train.is_dreamed, config.dreamed_share, 1 - config.dreamed_share)
        counts = np.where(self.train.is_dreamed, self.train.is_dreamed.sum(), (~self.train.is_dreamed).sum())
        self._weights = share / np.maximum(counts, 1)
        self._weights /= self._weights.sum()

    @classmethod
    def load(
        cls, config: SearchExpertConfig, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> "SearchExpertTask":
        """Read the recorded examples, and record them before if they are not there.

        Args:
            config: where they are, or how they are recorded.
            progress: called with the searches that are done and all there are.

        Raises:
            UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
            ExpertExamplesError: the file holds no examples of this vocabulary.
            ValueError: there are too few examples.
        """
        name = f"{config.dataset.replace('/', '_')}-{vocabulary_digest()}.npz"
        path = Path(config.recording) if config.recording else user_cache("search") / name
        if not path.exists():
            limits = SearchConfig(max_cost=4, max_states=config.max_states, seconds=config.seconds)
            processes = config.processes or host_cores()
            record(list(load_tasks(config.dataset)), limits, config.num_dreams, processes, progress).save(path)
        return cls(ExpertExamples.load(path), config)

    def make_model(self, key: PRNGKey) -> WordScorer:
        """Make a fresh scorer."""
        return WordScorer(key, self.train.pairs[0, 0].size, self.train.words.shape[-1])

    def batch(self, seed: int, step: int) -> ExpertBatch:
        """Draw recorded examples, and turn each."""
        random = np.random.default_rng((_STREAM, seed, step))
        rows = random.choice(len(self._weights), self.config.num_examples, p=self._weights)
        symmetries = random.integers(0, NUM_SYMMETRIES if self.config.symmetries else 1, len(rows))
        return _batch_of(self.train, rows, symmetries)

    def evaluate(self, model: Model) -> Agreement:
        """Compare with the expert on held-out examples, as they are."""
        rows = np.arange(len(self.held_out.probs))
        examples, candidates = _batch_of(self.held_out, rows, np.zeros(len(rows), int))
        logits = predict(model, examples.observational_data, candidates)
        return agreement(np.asarray(logits), np.asarray(examples.expert_probs), np.asarray(candidates.is_real))

    def write(self, model: Model, folder: Path) -> list[str]:
        weights = folder / "guidance.npz"
        self.guide(model).save(weights)
        return [f"For the search: jaxarc search TASK --guidance {weights}"]

    @staticmethod
    def guide(model: Model) -> Guide:
        """Return a trained scorer as the search evaluates it."""
        return Guide(Weights(*(np.asarray(array, np.float32) for array in model.weights)))


def _chosen(recorded: ExpertExamples, mask: np.ndarray) -> ExpertExamples:
    return ExpertExamples(*(array[mask] for array in recorded))


def _batch_of(recorded: ExpertExamples, rows: np.ndarray, symmetries: np.ndarray) -> ExpertBatch:
    """Take examples under symmetries: what a key is described by and its probability go to its counterpart.

    A key without a counterpart is not tried under the symmetry, and its probability is lost. An example of which more
    than half would be lost is left as it is.
    """
    num_keys = len(word_keys())
    sources = np.stack([_sources(symmetry) for symmetry in range(NUM_SYMMETRIES)])
    kept = np.take_along_axis(recorded.probs[rows], np.maximum(sources[symmetries], 0), 1) * (sources[symmetries] >= 0)
    chosen = np.where(kept.sum(1) < 0.5, 0, symmetries)
    order = sources[chosen]  # of each key the one whose counterpart it is
    places = np.maximum(order, 0)
    is_tried = np.take_along_axis(recorded.is_tried[rows], places, 1) & (order >= 0)
    probs = np.where(is_tried, np.take_along_axis(recorded.probs[rows], places, 1), 0.0)
    probs /= probs.sum(1, keepdims=True)
    words = np.take_along_axis(recorded.words[rows], places[:, :, None], 1)
    examples = TrainingBatchJAX(recorded.pairs[rows], probs, recorded.accuracies[rows])
    candidates = CandidateSet(
        rows=jnp.zeros((len(rows), num_keys, MOST_PAIRS), jnp.float32),  # a key is no region of the data
        columns=jnp.zeros((len(rows), num_keys, recorded.pairs.shape[2]), jnp.float32),
        features=jnp.asarray(words),
        is_real=jnp.asarray(is_tried),
    )
    return ExpertBatch(examples, candidates)


def _sources(symmetry: int) -> np.ndarray:
    """Return of each key the place of the key that turns into it, and -1 where none does."""
    counterparts = np.array(turned_keys(symmetry))
    sources = np.full(len(counterparts), -1)
    there = counterparts >= 0
    sources[counterparts[there]] = np.flatnonzero(there)
    return sources
