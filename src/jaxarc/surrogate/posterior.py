"""All graphs of up to five variables, and the exact posterior over the parent sets of each variable.

Three variables X0 -> X1 -> X2, for example. The parent sets of X1 are {}, {X0}, {X2} and {X0, X2}. The data of the
chain are about as likely under the reversed chain, so {X0}, {X2} and {X0, X2} share the
probability, unless samples with an intervention tell the directions apart.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int16, Int64

from jaxarc.config import StructuralModelConfig
from jaxarc.config.surrogate import MAX_LISTED_VARIABLES


class Graphs(NamedTuple):
    """All directed acyclic graphs over d variables, each once."""

    parents: Bool[np.ndarray, "d S d"]  # the S parent sets of each variable, by size and then by index
    choice: Int16[np.ndarray, "G d"]  # index of the parent set of each variable


@functools.lru_cache(maxsize=8)
def all_graphs(num_variables: int, max_parents: int) -> Graphs:
    """List the acyclic graphs in which a variable has at most ``max_parents`` parents.

    Without that bound there are 25, 543 and 29 281 of 3, 4 and 5 variables. A graph is one choice of a parent set for
    each variable, so all S^d choices are listed, and those with a cycle are dropped.
    """
    if num_variables > MAX_LISTED_VARIABLES:
        raise ValueError(
            f"all graphs are listed of at most {MAX_LISTED_VARIABLES} variables, got num_variables={num_variables}; "
            "learn the edges of larger graphs with surrogate=graphs"
        )
    # Three variables have 4 parent sets each, {}, two of one and one of two, so 64 choices; 25 of them have no cycle.
    parents = np.stack([_parent_sets(variable, num_variables, max_parents) for variable in range(num_variables)])
    num_sets = parents.shape[1]
    choice = np.indices((num_sets,) * num_variables, np.int16).reshape(num_variables, -1).T
    bits = (parents << np.arange(num_variables)).sum(axis=-1)  # {X0, X2} is 0b101
    parent_bits = np.stack([bits[variable, choice[:, variable]] for variable in range(num_variables)], axis=-1)
    return Graphs(parents, choice[_is_acyclic(parent_bits)])


def _parent_sets(variable: int, num_variables: int, max_parents: int) -> Bool[np.ndarray, "S d"]:
    others = [other for other in range(num_variables) if other != variable]
    # Of three variables X0 gets {}, {X1}, {X2}, {X1, X2}.
    sets = [chosen for size in range(max_parents + 1) for chosen in itertools.combinations(others, size)]
    members = np.zeros((len(sets), num_variables), np.bool_)
    for index, chosen in enumerate(sets):
        members[index, list(chosen)] = True
    return members


def _is_acyclic(parent_bits: Int64[np.ndarray, "G d"]) -> Bool[np.ndarray, " G"]:
    """Return where the variables have a topological order; the parents of each are the bits of a number.

    ``placed`` holds the variables that are placed already, all graphs at once. A variable can be placed when all its
    parents are: with parents (0b000, 0b001, 0b010), a chain, the sweep places X0, X1 and X2; with (0b010, 0b001), a
    cycle of two, it places none. d sweeps place every variable that can be placed.
    """
    num_variables = parent_bits.shape[1]
    placed = np.zeros(len(parent_bits), parent_bits.dtype)
    for _ in range(num_variables):
        for variable in range(num_variables):
            # A bit of the parents that is not placed makes this nonzero: parents 0b101 and placed 0b001 leave 0b100.
            can_be_placed = parent_bits[:, variable] & ~placed == 0
            placed |= can_be_placed.astype(parent_bits.dtype) << variable
    return placed == (1 << num_variables) - 1


def parent_posterior(
    values: Float64[np.ndarray, "M N d"], is_set: Bool[np.ndarray, "M N d"], config: StructuralModelConfig
) -> Float64[np.ndarray, "M d S"]:
    """Return the probabilities of the parent sets of each variable, in the order of :func:`all_graphs`.

    The prior is uniform over graphs; weights and noise are normal as the config says. The likelihood of a graph is a
    product over its variables, each factor that of the variable's samples given its parent set, with the weights
    integrated out (:func:`local_scores`). Samples in which a variable is set by an intervention are left out of its
    own factor.

    The posterior of a parent set is the sum over all graphs that hold it. With G graphs, d variables and S sets this
    is one product of matrices, [M, G] times a 0/1 matrix [G, d * S].

    Args:
        values: N samples of each of M models.
        is_set: where a value is set by an intervention.
        config: the prior.
    """
    graphs = all_graphs(config.num_variables, config.max_parents)
    scores = local_scores(values, is_set, config)
    # The log-likelihood of each graph [M, G] is the sum of the scores of the sets that it chose. The largest is set to
    # 0 before the exponential, so that it does not underflow; the factor cancels in the division below.
    log_graph = sum(scores[:, variable, graphs.choice[:, variable]] for variable in range(config.num_variables))
    likelihood = np.exp(log_graph - np.max(log_graph, axis=1, keepdims=True))
    # [M, G] @ [G, d * S]: a set gets the likelihoods of all graphs that hold it.
    # The sets of one variable share all of it.
    mass = likelihood.astype(np.float32) @ _membership(config.num_variables, config.max_parents)
    mass = mass.reshape(scores.shape).astype(np.float64)
    return mass / mass.sum(axis=-1, keepdims=True)


def local_scores(
    values: Float64[np.ndarray, "M N d"], is_set: Bool[np.ndarray, "M N d"], config: StructuralModelConfig
) -> Float64[np.ndarray, "M d S"]:
    """Return the log marginal likelihood of each variable's samples given each of its parent sets.

    This is Bayesian linear regression with known noise (Bishop 2006, 3.5.1). With X the parents' samples, y the
    variable's, noise s and prior deviation w of the weights, it needs only sums of products of two variables::

        A = X'X + (s/w)^2 I                                   # d x d; rows of non-parents are those of (s/w)^2 I
        log p = -1/2 [ log|A| - d log (s/w)^2 + n log(2 pi s^2) + (y'y - y'X A^-1 X'y) / s^2 ]

    So all parent sets of a variable share the sums of products, and differ in which rows and columns they keep.
    """
    parents = all_graphs(config.num_variables, config.max_parents).parents
    # ``products[m, j, i, k]`` is the sum of x_i x_k over the samples in which x_j was not set: all X'X, X'y and
    # y'y of variable j are among its entries.
    counts = ~is_set * 1.0  # which samples enter the factor of each variable
    products = np.einsum("mnj,mni,mnk->mjik", counts, values, values)  # j: the variable whose factor it is
    ridge = (config.noise_scale / config.weight_scale) ** 2
    # ``both`` [d, S, d, d] keeps the rows and columns of parents; others have (s/w)^2 on the diagonal, so that they add
    # nothing to the solution, and log (s/w)^2 to the determinant, which is taken off again.
    both = parents[..., :, None] & parents[..., None, :]
    matrix = products[:, :, None] * both + ridge * np.eye(config.num_variables)
    # X'y [M, d, S, d], 0 for non-parents; then y'X A^-1 X'y and y'y for each set.
    with_target = np.einsum("mjij->mji", products)[:, :, None] * parents
    explained = (with_target * np.linalg.solve(matrix, with_target[..., None])[..., 0]).sum(axis=-1)
    squares = np.einsum("mjjj->mj", products)[..., None]
    log_determinant = np.linalg.slogdet(matrix)[1] - config.num_variables * np.log(ridge)
    log_noise = counts.sum(axis=1)[..., None] * np.log(2 * np.pi * config.noise_scale**2)
    return -0.5 * (log_noise + log_determinant + (squares - explained) / config.noise_scale**2)


@functools.lru_cache(maxsize=8)
def _membership(num_variables: int, max_parents: int) -> Float32[np.ndarray, "G d*S"]:
    """Return 1 where a graph has a parent set of a variable, else 0."""
    graphs = all_graphs(num_variables, max_parents)
    member = graphs.choice[:, :, None] == np.arange(graphs.parents.shape[1])
    return member.reshape(len(member), -1).astype(np.float32)
