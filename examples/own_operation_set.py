"""A set of operations of your own: the same random agent with all 35 edits, and with the few that a task needs.

    python examples/own_operation_set.py --envs 256 --steps 100

The fewer the operations, the smaller the space that an agent has to search. Here the task is to paint a 3x3 grid in
one color.
"""

import argparse

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxarc
from jaxarc import constants as c
from jaxarc.datasets import TaskSet
from jaxarc.tasks import RawTask
from jaxarc.wrappers import AutoReset

SETS = {
    "all 35 edits": tuple(range(c.NUM_GRID_OPERATIONS)),
    "fills and submit": (*range(10), c.SUBMIT),
    "fill red and submit": (2, c.SUBMIT),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()

    blue, red = np.full((3, 3), 1), np.full((3, 3), 2)
    tasks = TaskSet("red", (RawTask("paint-it-red", ((blue, red),), ((blue, red),)),))
    table = Table("operations", "actions in the space", "episodes", "solved", title="a random agent")
    for name, allowed in SETS.items():
        env, params = jaxarc.make(
            tasks, selection_format="bbox", max_grid_height=3, max_grid_width=3, allowed_operations=allowed
        )
        episodes, solved = play(AutoReset(env), params, options.envs, options.steps)
        space = len(params.config.legal_operations) * 9 * 9
        table.add_row(name, f"{space:,}", f"{episodes:,}", f"{solved / max(episodes, 1):.1%}")
    Console().print(table)


def play(env: AutoReset, params: jaxarc.EnvParams, num_envs: int, num_steps: int) -> tuple[int, int]:
    """Count episodes that end, and those that end solved."""

    def rollout(key: jax.Array, params: jaxarc.EnvParams) -> tuple[jax.Array, jax.Array]:
        def step(states, key):
            actions = jax.vmap(env.action_space(params).sample)(jax.random.split(key, num_envs))
            states, _, _, done, info = jax.vmap(env.step, (0, 0, None))(states, actions, params)
            return states, (done.sum(), (done & info["success"]).sum())

        key_reset, key_steps = jax.random.split(key)
        states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(key_reset, num_envs), params)
        _, (ended, solved) = jax.lax.scan(step, states, jax.random.split(key_steps, num_steps))
        return ended.sum(), solved.sum()

    ended, solved = jax.jit(rollout)(jax.random.key(0), params)
    return int(ended), int(solved)


if __name__ == "__main__":
    main()
