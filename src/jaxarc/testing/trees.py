"""Two pytrees side by side: where do they differ?"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

FLOAT_TOLERANCE = 1e-5  # relative; programs that are compiled differently may round differently


def mismatches(ours: PyTree, theirs: PyTree) -> Iterator[str]:
    """Yield one phrase for each leaf that differs in shape, dtype or weak type; or one for the structure."""
    if jax.tree.structure(ours) != jax.tree.structure(theirs):
        mine, others = _paths(ours), _paths(theirs)
        yield f"its leaves are {mine}, not {others}" if mine != others else "a static field or the type differs"
        return
    for (path, mine), other in zip(jax.tree_util.tree_leaves_with_path(ours), jax.tree.leaves(theirs), strict=True):
        if (mine.shape, mine.dtype, mine.weak_type) != (other.shape, other.dtype, other.weak_type):
            yield f"{_name(path)} is {kind_of(mine)}, not {kind_of(other)}"


def kind_of(leaf: jax.ShapeDtypeStruct) -> str:
    """Name dtype, shape and weak type of a leaf."""
    return f"{leaf.dtype.name}{list(leaf.shape)}{' (weak type)' if leaf.weak_type else ''}"


def differing_leaves(ours: PyTree, theirs: PyTree, exact: bool = True) -> list[str]:
    """Name the leaves of two trees of one structure whose values differ; NaN equals NaN."""
    pairs = zip(jax.tree_util.tree_leaves_with_path(ours), jax.tree.leaves(theirs), strict=True)
    return [_name(path) for (path, mine), other in pairs if not _equal(as_numpy(mine), as_numpy(other), exact)]


def not_finite_leaves(tree: PyTree) -> list[str]:
    """Name the leaves that hold NaN or an infinity."""
    leaves = [(path, as_numpy(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]
    return [_name(path) for path, x in leaves if np.issubdtype(x.dtype, np.inexact) and not np.isfinite(x).all()]


def as_numpy(leaf: Any) -> np.ndarray:
    """Turn a leaf into a NumPy array, a random key into its words."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def to_host(tree: PyTree) -> PyTree:
    """Return a copy of a tree as NumPy arrays, but for typed random keys, which NumPy does not know."""
    return jax.tree.map(lambda leaf: leaf if _is_key(leaf) else np.array(leaf), tree)


def to_device(tree: PyTree) -> PyTree:
    """Return a tree of JAX arrays."""
    return jax.tree.map(jnp.asarray, tree)


def at(tree: PyTree, *index: Any) -> PyTree:
    """Index every leaf."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _equal(mine: np.ndarray, other: np.ndarray, exact: bool) -> bool:
    if exact or not np.issubdtype(mine.dtype, np.floating):
        return mine.shape == other.shape and mine.tobytes() == other.tobytes()
    return np.allclose(mine, other, rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE, equal_nan=True)


def _paths(tree: PyTree) -> str:
    return f"[{', '.join(_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree))}]"


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path) or "the value"
