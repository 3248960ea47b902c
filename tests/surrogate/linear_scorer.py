"""A model of a few numbers, and batches for it: what the tests of train steps learn."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.surrogate import TrainingBatchJAX

NAMES = ("A", "B", "C")
SETS = ((), ("A",), ("B",), ("A", "B"))


class LinearScorer(eqx.Module):
    """Scores a candidate by the mean of its variables' values."""

    weight: jax.Array
    bias: jax.Array

    def __init__(self, key):
        self.weight = jax.random.normal(key, (3, 2), jnp.float32)
        self.bias = jnp.zeros((2,), jnp.float32)

    def __call__(self, data, candidates):
        cells = data.mean(axis=0).astype(self.weight.dtype) @ self.weight + self.bias[None]
        return (candidates.columns @ cells)[:, 0] + candidates.features[:, 0] * self.bias[1]


class BranchingScorer(LinearScorer):
    """Asks for a value, which compiled code cannot tell."""

    def __call__(self, data, candidates):
        if data.sum() > -1e9:
            return super().__call__(data, candidates)
        raise AssertionError


def make_batch(seed=0, count=4, names=NAMES):
    generator = np.random.default_rng(seed)
    renamed = dict(zip(NAMES, names, strict=True))
    sets = [[renamed[name] for name in chosen] for chosen in SETS]
    return TrainingBatchJAX(
        generator.normal(size=(count, 5, 3, 3)),
        generator.dirichlet(np.ones(len(SETS)), count),
        generator.random(count),
        [sets] * count,
        [names] * count,
        [names[-1]] * count,
    )
