"""A few episodes of random actions in a batch of environments, and where two results differ."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, PyTree, UInt32

from jaxarc.interface import Environment
from jaxarc.prng import from_key_data


class EpisodeStart(NamedTuple):
    """What a reset returns, with what the environment says of the state."""

    state: PyTree  # [B, ...]
    observation: PyTree
    info: dict[str, Any]  # env.info of the state
    observation_in_space: Bool[np.ndarray, " B"]


class RandomSteps(NamedTuple):
    """What steps take and return, with what the environment says of the state after them."""

    action: PyTree  # [S, B, ...]
    state: PyTree
    observation: PyTree
    reward: Float32[np.ndarray, "S B"]
    done: Bool[np.ndarray, "S B"]
    info: dict[str, Any]
    view: PyTree  # env.observe of the state
    view_info: dict[str, Any]  # env.info of the state
    action_in_space: Bool[np.ndarray, "S B"]
    observation_in_space: Bool[np.ndarray, "S B"]


class RandomRollout(NamedTuple):
    """NumPy arrays of S steps of B environments, and of a ``reset_next`` after them, all from one compiled program."""

    keys: UInt32[Array, "B words"]  # data of the key of each environment
    first: EpisodeStart
    steps: RandomSteps
    following: EpisodeStart  # reset_next of the last states


RolloutFunction = Callable[[Any, UInt32[Array, "B words"]], RandomRollout]


def compile_rollout(env: Environment[Any, Any], num_steps: int) -> RolloutFunction:
    """Return a function that plays random actions: vmap over environments inside a scan over steps, under jit.

    The actions of an environment depend on its own key alone: action ``n`` is drawn with ``fold_in(key, n)``.
    """

    @jax.jit
    def play(params: Any, keys: UInt32[Array, "B words"]) -> RandomRollout:
        actions = env.action_space(params)
        observations = env.observation_space(params)
        typed = jax.vmap(from_key_data)(keys)

        def step(states: PyTree, number: Array) -> tuple[PyTree, RandomSteps]:
            drawn = jax.vmap(lambda key: actions.sample(jax.random.fold_in(key, number)))(typed)
            states, *results = jax.vmap(env.step, (0, 0, None))(states, drawn, params)
            views = [jax.vmap(view, (0, None))(states, params) for view in (env.observe, env.info)]
            inside = [jax.vmap(actions.contains)(drawn), jax.vmap(observations.contains)(results[0])]
            records: list[Any] = [*results, *views, *inside]
            return states, RandomSteps(drawn, states, *records)

        def started(states: PyTree, shown: PyTree) -> EpisodeStart:
            inside: Any = jax.vmap(observations.contains)(shown)
            return EpisodeStart(states, shown, jax.vmap(env.info, (0, None))(states, params), inside)

        first = started(*jax.vmap(env.reset, (0, None))(typed, params))
        last, steps = jax.lax.scan(step, first.state, jnp.arange(num_steps, dtype=jnp.uint32))
        return RandomRollout(keys, first, steps, started(*jax.vmap(env.reset_next, (0, None))(last, params)))

    return lambda params, keys: to_host(play(params, keys))


def differences(ours: PyTree, theirs: PyTree, tolerance: float = 0) -> list[str]:
    """Return a phrase for each leaf that differs in type or value, or one for the structure; NaN equals NaN.

    Args:
        ours: a pytree of arrays, or of ``jax.ShapeDtypeStruct`` where only types are compared.
        theirs: one to compare it with.
        tolerance: of floating values, relative and absolute; 0 for equal bits.
    """
    if jax.tree.structure(ours) != jax.tree.structure(theirs):
        mine, others = (", ".join(_leaves(tree)) for tree in (ours, theirs))
        return [f"leaves {mine}, not {others}" if mine != others else "a static field or the type"]
    types = [jax.tree.leaves(jax.eval_shape(lambda tree: tree, tree)) for tree in (ours, theirs)]
    found = []
    for (name, mine), other, *pair in zip(_leaves(ours).items(), jax.tree.leaves(theirs), *types, strict=True):
        kinds = [type_of(kind) for kind in pair]
        if kinds[0] != kinds[1]:
            found.append(f"{name} ({kinds[0]}, not {kinds[1]})")
        elif not isinstance(mine, jax.ShapeDtypeStruct) and not _equal(as_numpy(mine), as_numpy(other), tolerance):
            found.append(name)
    return found


def type_of(leaf: jax.ShapeDtypeStruct) -> str:
    """Name dtype, shape and weak type of a leaf."""
    return f"{leaf.dtype.name}{list(leaf.shape)}{' (weak type)' if leaf.weak_type else ''}"


def infinite_leaves(tree: PyTree) -> list[str]:
    """Name the leaves that hold NaN or an infinity."""
    leaves = {name: as_numpy(leaf) for name, leaf in _leaves(tree).items()}
    return [name for name, x in leaves.items() if np.issubdtype(x.dtype, np.inexact) and not np.isfinite(x).all()]


def as_numpy(leaf: Any) -> np.ndarray:
    """Return a leaf as a NumPy array; of a random key its words."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def to_host(tree: PyTree) -> PyTree:
    """Return a copy of a tree as NumPy arrays; typed random keys stay, because NumPy does not know them."""
    return jax.tree.map(lambda leaf: leaf if _is_key(leaf) else np.array(leaf), tree)


def to_device(tree: PyTree) -> PyTree:
    """Return a tree of JAX arrays."""
    return jax.tree.map(jnp.asarray, tree)


def at(tree: PyTree, *index: Any) -> PyTree:
    """Index every leaf."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _equal(mine: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    if tolerance and np.issubdtype(mine.dtype, np.floating):
        return np.allclose(mine, other, rtol=tolerance, atol=tolerance, equal_nan=True)
    return mine.tobytes() == other.tobytes()  # then -0.0 differs from 0.0, and NaN equals itself


def _leaves(tree: PyTree) -> dict[str, Any]:
    """Return each leaf by its path."""
    return {jax.tree_util.keystr(path) or "the value": leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
