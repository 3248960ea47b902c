"""The learned posterior over words: a small network in NumPy, which says what words a task probably needs.

``jaxarc train surrogate=search`` learns it from drawn rules, whose words are known, and writes its weights with the
digest of the vocabulary. The search looks for longer programs of the likeliest words.
"""

import functools
import io
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from jaxtyping import Float32

from jaxarc.errors import JaxarcWarning, UsageError
from jaxarc.search.descriptions import Described, keys_of, vocabulary_digest, word_keys
from jaxarc.search.words import Word

_TRAINED: Final = Path(__file__).parent / "guidance.npz"  # what comes with the package; docs/search.md says of what
_DIGEST: Final = "vocabulary"
_NEVER: Final = -30.0  # log-probability of a key that is not tried


class GuidanceError(UsageError, ValueError):
    """A file holds no weights of guidance."""


class GuidanceWarning(JaxarcWarning):
    """Weights do not fit the words of this version, so the search runs unguided."""


class Weights(NamedTuple):
    """The arrays of the network; C units for a task, E for a key, of which there are k."""

    pair_in: Float32[np.ndarray, "3d C"]
    pair_in_bias: Float32[np.ndarray, " C"]
    pair_out: Float32[np.ndarray, "C C"]
    pair_out_bias: Float32[np.ndarray, " C"]
    keys: Float32[np.ndarray, "k E"]
    key_bias: Float32[np.ndarray, " k"]
    head: Float32[np.ndarray, "F+E+C H"]
    head_bias: Float32[np.ndarray, " H"]
    last: Float32[np.ndarray, " H"]


class Guide:
    """The posterior over the words of programs that explain a task."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def log_probs(self, described: Described) -> Float32[np.ndarray, " k"]:
        """Return the log-probability of each key of :func:`~jaxarc.search.descriptions.word_keys`."""
        w = self.weights
        pairs = described.pairs.reshape(len(described.pairs), -1)
        is_there = described.pairs[:, 0, :1]
        each = np.maximum(np.maximum(pairs @ w.pair_in + w.pair_in_bias, 0) @ w.pair_out + w.pair_out_bias, 0)
        task = (each * is_there).sum(0) / max(is_there.sum(), 1)
        seen = np.concatenate([described.words, w.keys, np.broadcast_to(task, (len(w.keys), len(task)))], 1)
        logits = np.maximum(seen @ w.head + w.head_bias, 0) @ w.last + w.key_bias
        logits = np.where(described.is_tried, logits, -np.inf)
        shifted = logits - logits.max()
        return np.maximum(shifted - np.log(np.exp(shifted).sum()), _NEVER).astype(np.float32)

    def save(self, path: str | Path) -> None:
        """Write the weights to a file, with the digest of the vocabulary."""
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {name: np.asarray(one, np.float32) for name, one in self.weights._asdict().items()}
        arrays[_DIGEST] = np.array(vocabulary_digest())
        np.savez_compressed(buffer, **arrays)
        Path(path).write_bytes(buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Self | None:
        """Read weights; None, with a warning, where they are of another vocabulary.

        Warns:
            GuidanceWarning: they were trained with other words than this version has.

        Raises:
            GuidanceError: there is no such file, or it holds no such weights.
        """
        try:
            with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
                digest = str(file[_DIGEST])
                weights = Weights(*(file[name] for name in Weights._fields))
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no archive of their arrays"
            raise GuidanceError(
                f"{path} holds no weights of guidance: {why}; give those of jaxarc train surrogate=search"
            ) from error
        if digest == vocabulary_digest() and weights.keys.shape[0] == len(word_keys()):
            return cls(weights)
        warnings.warn(
            f"{path} was trained with the vocabulary {digest}, and this version has {vocabulary_digest()}: the search "
            "runs unguided; train anew by jaxarc train surrogate=search",
            GuidanceWarning,
            stacklevel=2,
        )
        return None


@functools.lru_cache(maxsize=8)
def guide_of(guidance: str) -> Guide | None:
    """Return the guide that ``search.guidance`` names: ``trained``, which comes with the package, ``none``, or a path.

    Raises:
        GuidanceError: see :meth:`Guide.load`.
    """
    return None if guidance == "none" else Guide.load(_TRAINED if guidance == "trained" else guidance)


def likely_words(log_probs: Float32[np.ndarray, " k"], words: Sequence[Word], share: float) -> list[Word]:
    """Return the words whose key is among the likeliest of the keys that these words have, a share of them."""
    keys = [next(iter(keys_of([word]))) for word in words]
    tried = sorted(set(keys), key=lambda key: -float(log_probs[key]))
    kept = set(tried[: max(int(len(tried) * share), 1)])
    return [word for word, key in zip(words, keys, strict=True) if key in kept]


def expected_words(log_probs: Float32[np.ndarray, " k"], count: int = 10) -> tuple[tuple[str, float], ...]:
    """Return the likeliest keys with their probabilities."""
    order = np.argsort(-log_probs)[:count]
    return tuple((word_keys()[one], float(np.exp(log_probs[one]))) for one in order)
