"""Draw the task of an episode: weights on the device, one draw per key."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int32

from jaxarc.fusion import compiles_for_cpu, compute_once
from jaxarc.prng import as_typed_key
from jaxarc.types import PRNGKey

# What the largest weight has to be. A processor may take numbers below 1e-38 for 0, and lose what matters beside less.
SMALLEST_WEIGHT = 1e-30
FEW_TASKS = 2048  # up to so many an accelerator compares a draw with all, by one kernel, instead of searching by three


def sample_task(key: PRNGKey, weights: Float[Array, " T"]) -> Int32[Array, ""]:
    """Draw a task with probability proportional to its weight.

    A task whose weight is not positive is never drawn. Weights need not sum to one; one below about 1e-7 of the sum
    (float32) may be lost to rounding, so a table of equal weights may hold millions of tasks. If no weight is positive
    the draw is task 0: :func:`jaxarc.datasets.task_weights` refuses such weights.
    """
    return sample_task_index(jax.random.uniform(as_typed_key(key), (), jnp.float32), weights)


def sample_task_index(fraction: Float32[Array, ""], weights: Float[Array, " T"]) -> Int32[Array, ""]:
    """Find the task at a fraction, in [0, 1), of the cumulative weights; see :func:`sample_task`.

    The weights 1, 0, 3 have the sums 1, 1, 4. The fraction 0.2 is the threshold 0.8, and the first sum above it is that
    of task 0; 0.25 is the threshold 1.0, and the first sum above that is task 2. Task 1 adds nothing, so no threshold
    falls to it. Under ``vmap`` over fractions the sums are built once, and a draw costs O(log T); on an accelerator
    O(T) up to ``FEW_TASKS``.
    """
    steps = cumulative_weights(weights)
    threshold = fraction * steps[-1]
    # The product may round up to the whole sum, past which no task is: then the last task of positive weight is drawn,
    # the first at the whole sum.
    if not compiles_for_cpu() and weights.shape[0] <= FEW_TASKS:
        # Sums never fall, so those at or below the threshold and below the whole sum stand in front of the task drawn.
        is_before = ~(steps > compute_once(threshold)) & (steps < steps[-1])
        return jnp.sum(is_before, dtype=jnp.int32)
    drawn = jnp.searchsorted(steps, threshold, side="right", method=_search_method())
    last_positive = jnp.searchsorted(steps, steps[-1], side="left", method=_search_method())
    return jnp.minimum(drawn, last_positive).astype(jnp.int32)


def next_task_index(previous: Int32[Array, ""], weights: Float[Array, " T"]) -> Int32[Array, ""]:
    """Find the next task of positive weight; after the last comes the first.

    The next task is the first whose cumulative weight is above that of the previous one: with the sums 1, 1, 4 task 2
    follows task 0. After task 2 there is none, and the first sum above 0 is that of task 0.
    """
    steps = cumulative_weights(weights)

    def first_above(level: Float[Array, ""]) -> Int32[Array, ""]:
        return jnp.searchsorted(steps, level, side="right", method=_search_method()).astype(jnp.int32)

    # Past the last task the search returns T, so it starts again at the first sum above 0.
    following = first_above(steps[previous])
    return jnp.where(following < weights.shape[0], following, first_above(jnp.zeros_like(steps[0])))


def cumulative_weights(weights: Float[Array, " T"]) -> Float32[Array, " T"]:
    """Sum the positive weights from the left; the sum never falls, and stays the same where a weight is not positive.

    The sums are of :func:`scaled_weights`, in float32: in bfloat16 the sum of 400 ones would be 256.

    A parallel cumulative sum rounds differently from entry to entry: without the running maximum an entry of weight 0
    could stand a hair above its left neighbor and be drawn.
    """
    # Weights 1, 0, 3: the sums 1, 1, 4 with the middle one set to 0 are 1, 0, 4, and the running maximum is 1, 1, 4.
    weights = scaled_weights(weights)
    positive = weights > 0
    zeros = jnp.zeros_like(weights)
    sums = jnp.cumsum(jnp.where(positive, weights, zeros))
    return jax.lax.cummax(jnp.where(positive, sums, zeros))


def scaled_weights(weights: Float[Array, " T"]) -> Float32[Array, " T"]:
    """Divide weights by a power of two, so that the largest is in [1/2, 1) and no sum overflows; nothing is rounded.

    Of float64 only what float32 holds of their ratios is kept.
    """
    if weights.dtype.itemsize > 4:
        weights = weights / jnp.max(weights)
    weights = weights.astype(jnp.float32)
    # The exponent stands above 23 bits of fraction; it is 126 for 1/2 and 254 for 3e38. As 2**-128 is not normal,
    # the division is made in two steps, each by half of the exponent.
    bits = jax.lax.bitcast_convert_type(jnp.maximum(jnp.max(weights), 0), jnp.int32)
    exponent = (bits >> 23) - 126
    half = exponent >> 1
    power = lambda exponent: jax.lax.bitcast_convert_type((127 - exponent) << 23, jnp.float32)
    return weights * power(half) * power(exponent - half)


def uniform_weights(num_tasks: int) -> Float32[Array, " T"]:
    """Give every task the same weight; the weights sum to one.

    Raises:
        ValueError: there is no task.
    """
    if num_tasks < 1:
        raise ValueError(f"num_tasks must be at least 1, got {num_tasks}; load a dataset that has tasks")
    return jnp.asarray(np.full(num_tasks, 1.0 / num_tasks, np.float32))


def _search_method() -> str:
    """Return how a binary search is compiled: on a CPU as a loop, which compiles fast; elsewhere written out."""
    return "scan" if compiles_for_cpu() else "scan_unrolled"
