"""Short episodes, told as a text in which every bit counts, so that processes in different modes can be compared.

``python -m short_episode`` prints it, in whatever mode the environment variables of JAX ask for. Those
whose names follow must have switched something on: ``JAX_ENABLE_X64``.
"""

import hashlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxarc
from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.parallel import RandomPolicy
from jaxarc.tasks import RawTask
from jaxarc.wrappers import AutoReset, EpisodeStatistics

_GRID = np.array([[1, 2, 0], [0, 4, 4]])
_TASKS = TaskSet(
    "short",
    (
        RawTask("short/mirror", ((_GRID, _GRID[:, ::-1]), (_GRID % 3, _GRID[:, ::-1] % 3)), ((_GRID, _GRID),)),
        RawTask("short/crop", ((_GRID, _GRID[:1, :2]),), ((_GRID % 2, _GRID[:1, :2]),)),
    ),
)
_RULES = JaxArcConfig().with_fields(
    selection_format="bbox",
    max_grid_height=3,
    max_grid_width=3,
    max_episode_steps=2,
    allowed_operations=(c.FILL + 1, c.FILL + 2, c.COPY, c.PASTE, c.RESIZE, c.SUBMIT),
    reveal_target=True,
    include_step_count=True,
    invalid_action_policy="noop",
    start_grid="partial",
    partial_probability=0.5,
    symmetries="all",
    recolor="all",
    shuffle_demos=True,
    executor="xla",
)


def play(num_envs: int = 2, num_steps: int = 3, **rules: Any) -> str:
    """Play augmented, partly solved episodes with random actions, past their ends, and return the digest of all."""
    env, params = jaxarc.make(_TASKS, _RULES.with_fields(**rules))
    env = EpisodeStatistics(AutoReset(env))
    policy = RandomPolicy(env.action_space(params))

    def once(carry: tuple, key: jax.Array) -> tuple:
        states, observations = carry
        actions = jax.vmap(policy)(jax.random.split(key, num_envs), observations)
        states, observations, *told = jax.vmap(env.step, (0, 0, None))(states, actions, params)
        return (states, observations), (observations, actions, told)

    key_start, key_play = jax.random.split(jax.random.key(0))
    start = jax.vmap(env.reset, (0, None))(jax.random.split(key_start, num_envs), params)
    return _digest((start, jax.lax.scan(once, start, jax.random.split(key_play, num_steps))))


def _digest(tree: Any) -> str:
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        value = np.asarray(leaf)
        digest.update(f"{jax.tree_util.keystr(path)} {value.dtype} {value.shape}".encode() + value.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    import conftest  # noqa: F401  strict promotion, and how tests compile

    off = [name for name in sys.argv[1:] if not jax.config.values[name.lower()]]
    sys.exit(f"JAX does not know of {off}") if off else sys.stdout.write(play() + "\n")
