"""Many environments at once: how to, how fast, and how much memory.

    python examples/advanced/batch_processing_demo.py --sizes 1 64 1024 --steps 100

Every number is measured when this runs.
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import console, nbytes, print_table, say, section, warm_seconds

from jaxarc.constants import SUBMIT
from jaxarc.envs import JaxArcConfig, arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs.action_space import action_space
from jaxarc.envs.structured_actions import PointAction
from jaxarc.testing import create_mock_task, create_test_config
from jaxarc.types import JaxArcTask


def basic_batch(config: JaxArcConfig, task: JaxArcTask, size: int) -> None:
    section("1. A batch")
    keys = jax.random.split(jax.random.key(42), size)  # one key per environment
    states, _ = batch_reset(keys, config, task)
    index = jnp.arange(size)
    # A different action in every environment; a choice by data is an array too, and not a Python if.
    wanted = jnp.maximum(states.target_grid[:, 2, 2], 0).astype(jnp.int32)
    actions = PointAction(jnp.where(index % 2 == 0, wanted, index % 10), row=index % 5, col=jnp.full(size, 3))
    states, observations, rewards, dones, infos = batch_step(states, actions, config)
    leaves = {"observations": observations, "rewards": rewards, "dones": dones, "similarity": infos["similarity"]}
    rows = [(name, value.shape, value.dtype) for name, value in leaves.items()]
    print_table("every leaf has a leading axis", ["what", "shape", "dtype"], rows)
    repeated, _ = batch_reset(jnp.stack([keys[0]] * size), config, task)
    say(f"pairs drawn with {size} keys: {states.pair_index.tolist()}")
    say(f"pairs drawn with one key {size} times: {repeated.pair_index.tolist()}: split keys, never repeat them")


@eqx.filter_jit
def random_rollout(key, config: JaxArcConfig, task: JaxArcTask, size: int, steps: int):
    """Return the rewards of random actions; reset, sampling and steps are one compiled call."""
    key_reset, key_steps = jax.random.split(key)
    states, _ = batch_reset(jax.random.split(key_reset, size), config, task)
    sample = jax.vmap(action_space(config).sample)

    def step(states, key):
        states, _, rewards, dones, _ = batch_step(states, sample(jax.random.split(key, size)), config)
        return states, (rewards, dones)

    return jax.lax.scan(step, states, jax.random.split(key_steps, steps))[1]


def batch_scaling(config: JaxArcConfig, task: JaxArcTask, sizes: list[int], steps: int, runs: int) -> None:
    section("2. Speed and memory by batch size")
    # Submit is left out, so every environment is still playing when the clock stops.
    config = config.with_fields(allowed_operations=tuple(range(SUBMIT)), max_episode_steps=steps + 1)
    rows = []
    key = jax.random.key(0)
    for size in sizes:
        speed = size * steps / warm_seconds(lambda size=size: random_rollout(key, config, task, size, steps), runs)
        states = jax.eval_shape(lambda size=size: batch_reset(jax.random.split(key, size), config, task)[0])
        of_tasks = nbytes(states.task_data)
        of_states = nbytes(states) - of_tasks
        rows.append((size, f"{speed:,.0f}", f"{1e6 / speed:.2f}", f"{of_states:,}", f"{of_tasks:,}"))
    columns = ["batch", "steps/s", "us per environment and step", "bytes of the states", "of their copies of the task"]
    print_table(f"{steps} random steps inside one lax.scan", columns, rows)
    say("In this API each state carries its task. jaxarc.make keeps the tasks once, in params, whatever the batch.")


def early_termination(config: JaxArcConfig, task: JaxArcTask, size: int) -> None:
    section("3. Early termination")

    @eqx.filter_jit
    def until_all_are_done(states, key):
        def step(carry):
            states, key, count = carry
            key, key_actions = jax.random.split(key)
            actions = jax.vmap(action_space(config).sample)(jax.random.split(key_actions, size))
            return batch_step(states, actions, config)[0], key, count + 1

        return jax.lax.while_loop(lambda carry: ~jnp.all(carry[0].done), step, (states, key, jnp.int32(0)))

    states, _ = batch_reset(jax.random.split(jax.random.key(1), size), config, task)
    after, _, count = until_all_are_done(states, jax.random.key(2))
    lengths = after.step_count.tolist()
    say(f"early termination: the loop took {int(count)} steps, episodes lasted {min(lengths)} to {max(lengths)}")


def batch_against_sequential(config: JaxArcConfig, task: JaxArcTask, size: int, runs: int) -> None:
    section("4. Batch against a Python loop")
    keys = jax.random.split(jax.random.key(3), size)
    states, _ = batch_reset(keys, config, task)
    index = jnp.arange(size)
    actions = PointAction(operation=index % 34, row=index % 5, col=index % 4)
    singles = [arc_reset(key, config, task)[0] for key in keys]
    single_actions = [jax.tree.map(lambda x, i=i: x[i], actions) for i in range(size)]

    def loop():
        return [arc_step(*pair, config) for pair in zip(singles, single_actions, strict=True)]

    together = warm_seconds(lambda: batch_step(states, actions, config), runs)
    one_by_one = warm_seconds(loop, max(1, runs // 4))
    rows = [
        ("batch_step", f"{1000 * together:.3f}", "1.0x"),
        ("arc_step in a loop", f"{1000 * one_by_one:.3f}", f"{one_by_one / together:.1f}x"),
    ]
    print_table(f"one step of {size} environments", ["how", "ms", "ratio"], rows)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *loop())
    say(f"the results are equal bit for bit: {bool(eqx.tree_equal(stacked, batch_step(states, actions, config)))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canvas", type=int, default=30, help="side of the canvas, 5..30")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 8, 64, 512])
    parser.add_argument("--steps", type=int, default=50, help="steps of a timed rollout")
    parser.add_argument("--runs", type=int, default=5, help="repeats of a timed call")
    args = parser.parse_args()

    console.print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind} ({jax.default_backend()})")
    config = create_test_config(grid_shape=(args.canvas, args.canvas), invalid_action_policy="noop")
    task = create_mock_task(args.canvas, args.canvas)
    basic_batch(config, task, size=32)
    batch_scaling(config, task, args.sizes, args.steps, args.runs)
    early_termination(config, task, size=32)
    batch_against_sequential(config, task, 32, args.runs)


if __name__ == "__main__":
    main()
