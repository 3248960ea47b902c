"""The batch of a surrogate: data, the expert's probabilities of candidates, and labels of the candidates.

Labels are names of variables as nested tuples (:func:`to_static`): hashable, in one order, and back without loss. Equal
labels are equal static parts of the pytree, so batches of equal labels share one compiled program::

    [[{"B", "A"}, set()]]  ->  ((("A", "B"), ()),)      # one example with two candidates
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float32

from jaxarc.device_arrays import device_array
from jaxarc.host_arrays import HiddenValuesError, to_numpy

ParentSets: TypeAlias = tuple[tuple[tuple[str, ...], ...], ...]
"""Sorted names of each candidate of each example."""
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
    """Turn lists of names into tuples, in the order given."""
    examples = enumerate(_items(variable_orders, "variable_orders"))
    return tuple(_names(names, f"variable_orders[{example}]") for example, names in examples)


def static_targets(target_variables: Sequence[str]) -> TargetVariables:
    """Turn one name per example into a tuple."""
    examples = enumerate(_items(target_variables, "target_variables"))
    return tuple(_name(name, f"target_variables[{example}]") for example, name in examples)


def _candidates(candidates: Any, where: str) -> tuple[tuple[str, ...], ...]:
    # Labels are static fields, by which compiled programs are found again: sorted names make equal sets equal tuples.
    found = tuple(
        tuple(sorted(_names(names, f"{where}[{index}]"))) for index, names in enumerate(_items(candidates, where))
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


CHANNELS: Final = 3
TOLERANCE: Final = 1e-4  # how far from 1 the sum of an example's probabilities may be


class TrainingBatchJAX(eqx.Module):
    """Examples of an expert's distribution over candidates: a pytree of three arrays, whose labels are static.

    An example has up to ``k`` candidates; the columns after its own are padding, with probability 0. All three labels
    are given or none: without them arrays describe the candidates, see :class:`CandidateSet`.

    Values are checked when a batch is made outside of compiled code, of arrays that this process can read whole.

    Raises:
        TypeError: a label is not a string.
        ValueError: shapes or labels disagree, a value is not finite, an example has no candidate, or probabilities
            do not sum to 1.
    """

    observational_data: Float32[Array, "B N d 3"] = eqx.field(converter=lambda x: _float32(x, "observational_data"))
    expert_probs: Float32[Array, "B k"] = eqx.field(converter=lambda x: _float32(x, "expert_probs"))  # 0 .. 1
    expert_accuracies: Float32[Array, " B"] = eqx.field(
        converter=lambda x: _float32(x, "expert_accuracies")
    )  # 0 .. 1, the weight of the example
    parent_sets: ParentSets = eqx.field(converter=to_static, static=True, default=())  # up to k per example
    variable_orders: VariableOrders = eqx.field(converter=static_orders, static=True, default=())  # d names each
    target_variables: TargetVariables = eqx.field(converter=static_targets, static=True, default=())  # one each

    @property
    def num_examples(self) -> int:
        """B."""
        return self.expert_probs.shape[0]

    @property
    def num_candidates(self) -> int:
        """k, padding included."""
        return self.expert_probs.shape[-1]

    def __check_init__(self) -> None:
        # Shapes first, since the other checks index by them. Values only where they can be read here.
        _check_shapes(self)
        if self.parent_sets or self.variable_orders or self.target_variables:
            _check_labels(self)
        for name in ("observational_data", "expert_probs", "expert_accuracies"):
            if is_visible(getattr(self, name)):
                _check_finite(name, np.asarray(getattr(self, name)))
        if is_visible(self.expert_probs):
            _check_probabilities(np.asarray(self.expert_probs), [len(candidates) for candidates in self.parent_sets])
        if is_visible(self.expert_accuracies):
            _check_range("expert_accuracies", np.asarray(self.expert_accuracies))


class GraphBatch(eqx.Module):
    """B structural models over d variables: described samples, and the true graph."""

    data: Float32[Array, "B N d 3"] = eqx.field(converter=device_array)  # of describe_samples
    adjacency: Bool[Array, "B d d"] = eqx.field(converter=device_array)  # [i, j]: variable i is a parent of variable j


def require_batch(batch: Any) -> None:
    """Refuse what is no batch, before an attribute of it is missed."""
    if not isinstance(batch, TrainingBatchJAX | GraphBatch):
        raise TypeError(
            f"a train step takes a batch of the type TrainingBatchJAX or GraphBatch, got {type(batch).__name__}; make "
            "one with jaxarc.surrogate.TrainingBatchJAX, of labelled data after jaxarc.surrogate.to_arrays"
        )


def is_visible(array: Array) -> bool:
    """Return whether this process can read all values: not in compiled code, nor if other processes hold a part."""
    return not isinstance(array, Tracer) and array.is_fully_addressable


def _float32(values: Any, field: str) -> Array:
    if isinstance(values, jax.Array) and not jnp.issubdtype(values.dtype, jax.dtypes.prng_key):
        return values.astype(jnp.float32)  # it stays on its devices
    return device_array(_float32_on_host(values, field))


def _float32_on_host(values: Any, field: str) -> np.ndarray:
    try:
        return to_numpy(values, np.float32)
    except (TypeError, HiddenValuesError) as error:
        raise ValueError(f"{field} must be an array of numbers, got {type(values).__name__}: {error}") from None


def _check_shapes(batch: TrainingBatchJAX) -> None:
    data = batch.observational_data
    probs = batch.expert_probs
    accuracies = batch.expert_accuracies
    if data.ndim != 4 or data.shape[-1] != CHANNELS or 0 in data.shape:
        raise ValueError(f"observational_data must have the shape (B, N, d, {CHANNELS}) without a 0, got {data.shape}")
    if probs.ndim != 2 or probs.shape[0] != data.shape[0]:
        raise ValueError(
            f"expert_probs must have the shape (B, k) with B = {data.shape[0]} as in observational_data, "
            f"got {probs.shape}"
        )
    if not probs.shape[1]:
        raise ValueError("expert_probs has no candidates, k = 0; an example needs at least one")
    if accuracies.shape != data.shape[:1]:
        raise ValueError(
            f"expert_accuracies must have the shape (B,) = {data.shape[:1]} as in observational_data, "
            f"got {accuracies.shape}"
        )


def _check_labels(batch: TrainingBatchJAX) -> None:
    for name in ("parent_sets", "variable_orders", "target_variables"):
        if len(getattr(batch, name)) != batch.num_examples:
            raise ValueError(
                f"{name} names {len(getattr(batch, name))} examples of {batch.num_examples}; give parent_sets, "
                "variable_orders and target_variables for every example, or none of them"
            )
    num_variables = batch.observational_data.shape[2]
    # Each example by itself: as many names as columns, a target among them, and candidates of the other variables.
    labels = zip(batch.parent_sets, batch.variable_orders, batch.target_variables, strict=True)
    for example, (candidates, order, target) in enumerate(labels):
        if len(order) != num_variables:
            raise ValueError(
                f"variable_orders[{example}] names {len(order)} variables, but observational_data has d = "
                f"{num_variables}; name each column once"
            )
        if target not in order:
            raise ValueError(f"target_variables[{example}] is {target!r}, which is none of the variables {order}")
        if len(candidates) > batch.num_candidates:
            raise ValueError(
                f"parent_sets[{example}] holds {len(candidates)} candidates, but expert_probs has k = "
                f"{batch.num_candidates}; give one probability per candidate"
            )
        # A variable is not its own parent, so the target is taken out of what a candidate may name.
        allowed = set(order) - {target}
        for index, names in enumerate(candidates):
            if strange := sorted(set(names) - allowed):
                raise ValueError(
                    f"parent_sets[{example}][{index}] holds {strange[0]!r}; a parent is one of the other variables, "
                    f"here {sorted(allowed)}"
                )


def _check_finite(field: str, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{field} must be finite, got {values[where]} at {where}; leave such examples out")


def _check_range(field: str, values: np.ndarray) -> None:
    wrong = (values < 0) | (values > 1)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(f"{field} must be in [0, 1], got {values[where]} at {where}")


def _check_probabilities(probs: np.ndarray, counts: list[int]) -> None:
    _check_range("expert_probs", probs)
    # In float64, so that the sum itself adds no error of the size of the tolerance.
    sums = probs.sum(axis=-1, dtype=np.float64)
    wrong = np.abs(sums - 1) > TOLERANCE
    if wrong.any():
        example = int(np.argmax(wrong))
        raise ValueError(
            f"expert_probs[{example}] sums to {sums[example]:.6g}; the probabilities of an example must sum to 1 "
            f"within {TOLERANCE}, so divide them by their sum"
        )
    # With k = 4 and three candidates, entry 3 is padding.
    for example, count in enumerate(counts):
        if probs[example, count:].any():
            raise ValueError(
                f"expert_probs[{example}] gives weight to padding: parent_sets[{example}] holds {count} candidates, "
                f"so the entries from {count} on must be 0"
            )
