"""All directed graphs without cycles over a few variables, as the parent set of each variable."""

import functools
import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int16


class Graphs(NamedTuple):
    """Every graph, each once."""

    parents: Bool[np.ndarray, "d S d"]  # of each variable its S parent sets, by size and then by place
    choice: Int16[np.ndarray, "G d"]  # which of its parent sets a variable has in each graph


@functools.lru_cache(maxsize=8)
def all_graphs(num_variables: int, max_parents: int) -> Graphs:
    """List the graphs of ``max_parents`` parents at most; without that bound 25, 543 and 29 281 of 3, 4 and 5."""
    parents = np.stack([_parent_sets(variable, num_variables, max_parents) for variable in range(num_variables)])
    num_sets = parents.shape[1]
    choice = np.indices((num_sets,) * num_variables, np.int16).reshape(num_variables, -1).T
    bits = (parents << np.arange(num_variables)).sum(axis=-1)
    wanted = np.stack([bits[variable, choice[:, variable]] for variable in range(num_variables)], axis=-1)
    return Graphs(parents, choice[_has_no_cycle(wanted)])


def _parent_sets(variable: int, num_variables: int, max_parents: int) -> Bool[np.ndarray, "S d"]:
    others = [other for other in range(num_variables) if other != variable]
    sets = [chosen for size in range(max_parents + 1) for chosen in itertools.combinations(others, size)]
    members = np.zeros((len(sets), num_variables), np.bool_)
    for place, chosen in enumerate(sets):
        members[place, list(chosen)] = True
    return members


def _has_no_cycle(wanted: np.ndarray) -> Bool[np.ndarray, " G"]:
    """Tell where all variables can be told one after the other, each after its parents, which are bits of a number."""
    num_variables = wanted.shape[1]
    told = np.zeros(len(wanted), wanted.dtype)
    for _ in range(num_variables):
        for variable in range(num_variables):
            told |= (wanted[:, variable] & ~told == 0).astype(wanted.dtype) << variable
    return told == (1 << num_variables) - 1
