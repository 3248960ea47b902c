"""Which candidate a surrogate likes best."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from jaxarc import constants as c
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.surrogate.bit_counts import Boxes
from jaxarc.surrogate.boxes import describe_boxes, describe_grids
from jaxarc.surrogate.counting_scorer import CountingScorer, Grids
from jaxarc.surrogate.scorer import CandidateScorer
from jaxarc.types import Observation


def choose_box(
    model: CountingScorer | CandidateScorer, observation: Observation, actions: BboxAction, is_real: Bool[Array, " k"]
) -> Int32[Array, ""]:
    """Return the place of the candidate that a model likes best, the first of equals.

    Args:
        model: of boxes.
        observation: of one environment, with ``working_grid``, ``target_grid`` and ``input_grid`` as planes.
        actions: k candidates.
        is_real: false for those that are not to be chosen.
    """
    grids = Grids(*(observation[name] for name in ("working_grid", "target_grid", "input_grid")))
    if isinstance(model, CountingScorer):
        operation = jnp.where(is_real, actions.operation, c.NO_OPERATION)
        logits = model.score(grids, operation, Boxes(actions.r1, actions.c1, actions.r2, actions.c2))
    else:
        height, width = grids.working.shape
        logits = model(describe_grids(*grids), describe_boxes(actions, is_real, (height, width)))
    return first_best(jnp.where(is_real, logits, -jnp.inf))


def first_best(logits: Float32[Array, " k"]) -> Int32[Array, ""]:
    """Do what ``argmax`` does, which a CPU takes several times as long for: once the best, then where it is."""
    logits = jax.lax.optimization_barrier(logits)  # or a CPU would compute all logits twice
    places = jnp.arange(logits.size, dtype=jnp.int32)
    return jnp.where(logits == jax.lax.optimization_barrier(logits.max()), places, logits.size - 1).min()
