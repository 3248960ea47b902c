"""Candidates as a model sees them: where each of them acts, and what it is."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32

from jaxarc.surrogate.batch import TrainingBatchJAX
from jaxarc.surrogate.labels import ParentSets, TargetVariables, VariableOrders


class CandidateSet(eqx.Module):
    """k candidates of each example, each a region of a grid of R x d cells and a few numbers.

    A region is the product of row and column weights: a box of a canvas, whose R is N, or a set of variables, taken
    with itself in a grid of d x d pairs of variables.
    """

    rows: Float32[Array, "*B k R"]  # 0 .. 1
    columns: Float32[Array, "*B k d"]  # 0 .. 1
    features: Float32[Array, "*B k F"]
    is_real: Bool[Array, "*B k"]  # false for padding


def candidates_of(batch: TrainingBatchJAX) -> CandidateSet:
    """Describe the parent sets that a batch names: the region of one is its variables and the target.

    Its only feature is the share of variables in it. Batches of equal labels share the arrays.

    Raises:
        ValueError: the batch has no labels.
    """
    if not batch.parent_sets:
        raise ValueError("the batch names no parent_sets; name them, or pass the candidates as a CandidateSet")
    return _describe(batch.parent_sets, batch.variable_orders, batch.target_variables, batch.num_candidates)


@functools.lru_cache(maxsize=32)
def _describe(
    parent_sets: ParentSets, variable_orders: VariableOrders, target_variables: TargetVariables, k: int
) -> CandidateSet:
    members = np.zeros((len(parent_sets), k, len(variable_orders[0])), np.float32)
    sizes = np.zeros((len(parent_sets), k, 1), np.float32)
    is_real = np.zeros((len(parent_sets), k), np.bool_)
    for example, candidates in enumerate(parent_sets):
        place = {name: index for index, name in enumerate(variable_orders[example])}
        for candidate, names in enumerate(candidates):
            members[example, candidate, [place[name] for name in (*names, target_variables[example])]] = 1
            sizes[example, candidate] = len(names) / len(place)
        is_real[example, : len(candidates)] = True
    with jax.ensure_compile_time_eval():  # what is kept must outlive the trace in which it was first asked for
        shared = jnp.asarray(members)
        return CandidateSet(shared, shared, jnp.asarray(sizes), jnp.asarray(is_real))
