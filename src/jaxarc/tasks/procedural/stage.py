"""Intermediate results that are kept: XLA's CPU backend would otherwise compute them again for every cell."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, PyTree

Values = TypeVar("Values", bound=PyTree[Array])


def materialized(values: Values) -> Values:
    """Return ``values``, arrays of integers, computed for the whole batch before anything that uses them.

    Fusion does not cross a branch, so on a CPU they pass through one that is always taken, which the compiler cannot
    know, and which stays one branch under ``vmap``. Elsewhere a branch would cost more than it saves.
    """
    return _through_branch(values) if jax.default_backend() == "cpu" else values


@custom_vmap
def _through_branch(values: Any) -> Any:
    first = jax.tree.leaves(values)[0].reshape(-1)[0]
    always = (first | jnp.ones((), first.dtype)) != 0
    # Never taken; made from the predicate, so that shard_map sees both branches vary over the same devices.
    nothing = lambda values: jax.tree.map(lambda x: jnp.full(x.shape, always.astype(x.dtype)), values)
    return jax.lax.cond(always, lambda values: values, nothing, values)


@_through_branch.def_vmap
def _through_one_branch(size: int, has_axis: Any, values: Any) -> tuple[Any, Any]:
    lead = lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape))
    values = jax.tree.map(lead, values, has_axis[0])
    return _through_branch(values), jax.tree.map(lambda _: True, values)
