"""A few episodes of random actions in a batch of environments, and where two results differ."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, PyTree, UInt32

from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.prng import from_key_data


class RandomRollout(NamedTuple):
    """NumPy arrays of S steps of B environments, all from one compiled program: also what spaces and views return."""

    keys: UInt32[Array, "B words"]  # data of the key of each environment
    first_states: PyTree  # [B, ...]
    first_observations: PyTree
    first_reported: dict[str, Any]  # env.info of the first states
    first_in_space: Bool[np.ndarray, " B"]
    actions: PyTree  # [S, B, ...]
    states: PyTree  # after the step
    observations: PyTree
    rewards: Float32[np.ndarray, "S B"]
    dones: Bool[np.ndarray, "S B"]
    infos: dict[str, Any]
    shown: PyTree  # env.observe of the state
    reported: dict[str, Any]  # env.info of the state
    action_in_space: Bool[np.ndarray, "S B"]
    observation_in_space: Bool[np.ndarray, "S B"]

    @property
    def num_steps(self) -> int:
        return self.dones.shape[0]

    @property
    def num_envs(self) -> int:
        return self.dones.shape[1]

    def state_before(self, step: int, env: int) -> PyTree:
        """The state of an environment before a step, as JAX arrays."""
        return to_device(at(self.first_states, env) if step == 0 else at(self.states, step - 1, env))

    def action(self, step: int, env: int) -> PyTree:
        """The action of an environment in a step, as JAX arrays."""
        return to_device(at(self.actions, step, env))


RolloutFunction = Callable[[EnvParams, UInt32[Array, "B words"]], RandomRollout]


def compile_rollout(env: Environment[Any], num_steps: int) -> RolloutFunction:
    """Return a function that plays random actions: vmap over environments inside a scan over steps, under jit.

    The actions of an environment depend on its own key alone: action ``n`` is drawn with ``fold_in(key, n)``.
    """

    @jax.jit
    def play(params: EnvParams, keys: UInt32[Array, "B words"]) -> RandomRollout:
        actions = env.action_space(params)
        observations = env.observation_space(params)
        typed = jax.vmap(from_key_data)(keys)
        first, shown_first = jax.vmap(env.reset, (0, None))(typed, params)

        def step(states: PyTree, number: Array) -> tuple[PyTree, tuple[Any, ...]]:
            # The action depends on the environment's own key and the number of the step, so
            # a reversed batch draws the same ones.
            drawn = jax.vmap(lambda key: actions.sample(jax.random.fold_in(key, number)))(typed)
            states, *results = jax.vmap(env.step, (0, 0, None))(states, drawn, params)
            views = [jax.vmap(view, (0, None))(states, params) for view in (env.observe, env.info)]
            inside = [jax.vmap(actions.contains)(drawn), jax.vmap(observations.contains)(results[0])]
            return states, (drawn, states, *results, *views, *inside)

        _, records = jax.lax.scan(step, first, jnp.arange(num_steps, dtype=jnp.uint32))
        first_inside: Any = jax.vmap(observations.contains)(shown_first)
        reported = jax.vmap(env.info, (0, None))(first, params)
        return RandomRollout(keys, first, shown_first, reported, first_inside, *records)

    return lambda params, keys: to_host(play(params, keys))


FLOAT_TOLERANCE = 1e-5  # relative: two compiled programs may round differently


def mismatches(ours: PyTree, theirs: PyTree) -> Iterator[str]:
    """Yield one phrase for each leaf that differs in shape, dtype or weak type; or one for the structure."""
    if jax.tree.structure(ours) != jax.tree.structure(theirs):
        mine = _paths(ours)
        others = _paths(theirs)
        yield f"its leaves are {mine}, not {others}" if mine != others else "a static field or the type differs"
        return
    for (path, mine), other in zip(jax.tree_util.tree_leaves_with_path(ours), jax.tree.leaves(theirs), strict=True):
        if (mine.shape, mine.dtype, mine.weak_type) != (other.shape, other.dtype, other.weak_type):
            yield f"{_name(path)} is {kind_of(mine)}, not {kind_of(other)}"


def kind_of(leaf: jax.ShapeDtypeStruct) -> str:
    """Name dtype, shape and weak type of a leaf."""
    return f"{leaf.dtype.name}{list(leaf.shape)}{' (weak type)' if leaf.weak_type else ''}"


def differing_leaves(ours: PyTree, theirs: PyTree, exact: bool = True) -> list[str]:
    """Name the leaves of two trees whose shapes or values differ; NaN equals NaN."""
    if jax.tree.structure(ours) != jax.tree.structure(theirs):
        return sorted(set(_names(ours)) ^ set(_names(theirs))) or ["the type"]
    pairs = zip(jax.tree_util.tree_leaves_with_path(ours), jax.tree.leaves(theirs), strict=True)
    return [_name(path) for (path, mine), other in pairs if not _equal(as_numpy(mine), as_numpy(other), exact)]


def not_finite_leaves(tree: PyTree) -> list[str]:
    """Name the leaves that hold NaN or an infinity."""
    leaves = [(path, as_numpy(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]
    return [_name(path) for path, x in leaves if np.issubdtype(x.dtype, np.inexact) and not np.isfinite(x).all()]


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


def _equal(mine: np.ndarray, other: np.ndarray, exact: bool) -> bool:
    # Bytes and not values: then -0.0 differs from 0.0, and NaN equals itself.
    if mine.shape != other.shape:
        return False
    if exact or not np.issubdtype(mine.dtype, np.floating):
        return mine.tobytes() == other.tobytes()
    return np.allclose(mine, other, rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE, equal_nan=True)


def _paths(tree: PyTree) -> str:
    return f"[{', '.join(_names(tree))}]"


def _names(tree: PyTree) -> list[str]:
    return [_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path) or "the value"
