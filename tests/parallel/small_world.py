"""A world of two tiny tasks, one of them solved by submitting at once, and what acts in it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32
from small_tasks import tasks_of

import jaxarc
from jaxarc.constants import SUBMIT
from jaxarc.envs import PointAction
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset, EpisodeStatistics

CANVAS = (2, 3)
KEY = jax.random.key(7)
OPERATIONS = (1, 3, 4, SUBMIT)  # few, for they compile fast
ONE, TWO = np.full((2, 2), 1), np.full((2, 2), 2)
TASKS = tasks_of((ONE, ONE), (ONE, TWO))


def make_world(tasks=TASKS, **fields):
    """Environment with auto-reset and statistics, and params; episodes last at most 5 steps."""
    config = create_test_config(5, "point", CANVAS, invalid_action_policy="noop", allowed_operations=OPERATIONS)
    env, params = jaxarc.make(tasks, config.with_fields(**fields))
    return EpisodeStatistics(AutoReset(env)), params


class Filling(eqx.Module):
    """Fills one cell with a color, and submits with some chance."""

    color: Int32[Array, ""]
    submit_chance: Array

    def __call__(self, key, observation):
        submits = jax.random.uniform(key) < self.submit_chance
        zero = jnp.int32(0)
        return PointAction(jnp.where(submits, jnp.int32(SUBMIT), self.color), zero, zero)


def filling(color=1, submit_chance=0.3):
    return Filling(jnp.int32(color), jnp.float32(submit_chance))
