"""Names of candidates and variables as nested tuples: hashable, in one order, and back without loss."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

ParentSets: TypeAlias = tuple[tuple[tuple[str, ...], ...], ...]
"""Of each example, of each of its candidates, the names in it, sorted."""
VariableOrders: TypeAlias = tuple[tuple[str, ...], ...]
TargetVariables: TypeAlias = tuple[str, ...]


def to_static(parent_sets: Sequence[Sequence[Iterable[str]]]) -> ParentSets:
    """Turn lists of lists of sets of names into nested tuples; equal sets give equal tuples.

    Raises:
        TypeError: a name is not a string, or a string stands where a list or set of names belongs.
        ValueError: an example has no candidate or one of them twice, or a name stands twice in a candidate.
    """
    return tuple(
        _candidates(candidates, f"parent_sets[{example}]")
        for example, candidates in enumerate(_items(parent_sets, "parent_sets"))
    )


def from_static(parent_sets: ParentSets) -> list[list[frozenset[str]]]:
    """Turn nested tuples back into lists of lists of sets: the inverse of :func:`to_static`."""
    return [[frozenset(names) for names in candidates] for candidates in parent_sets]


def static_orders(variable_orders: Sequence[Sequence[str]]) -> VariableOrders:
    """Turn lists of names into tuples, in the order given.

    Raises:
        TypeError: a name is not a string, or a string stands where a list of names belongs.
        ValueError: a name stands twice in an order.
    """
    places = enumerate(_items(variable_orders, "variable_orders"))
    return tuple(_names(names, f"variable_orders[{example}]") for example, names in places)


def static_targets(target_variables: Sequence[str]) -> TargetVariables:
    """Turn one name per example into a tuple.

    Raises:
        TypeError: a name is not a string, or a string stands where a list of names belongs.
    """
    places = enumerate(_items(target_variables, "target_variables"))
    return tuple(_name(name, f"target_variables[{example}]") for example, name in places)


def _candidates(candidates: Any, where: str) -> tuple[tuple[str, ...], ...]:
    found = tuple(
        tuple(sorted(_names(names, f"{where}[{place}]"))) for place, names in enumerate(_items(candidates, where))
    )
    if not found:
        raise ValueError(
            f"{where} is empty; an example needs at least one candidate, and 'no parents' is the candidate frozenset()"
        )
    if len(set(found)) < len(found):
        twice = next(names for names in found if found.count(names) > 1)
        raise ValueError(f"{where} holds the candidate {twice} twice; add its probabilities and name it once")
    return found


def _names(names: Any, where: str) -> tuple[str, ...]:
    found = tuple(_name(name, where) for name in _items(names, where))
    if len(set(found)) < len(found):
        raise ValueError(f"{where} names a variable twice, got {found}; name each once")
    return found


def _name(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{where}: a label must be a string, got {name!r} of type {type(name).__name__}; pass its name")
    return name


def _items(values: Any, where: str) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{where} must be a list or a set, got {values!r}; put it into brackets")
    return tuple(values)
