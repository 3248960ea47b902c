"""Many environments at once: how to, how fast, and how much memory.

    python examples/advanced/batch_processing_demo.py --sizes 1 64 1024 --steps 100

Every number is measured when this runs.
"""

import argparse
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from measure import console, print_table, say, section, warm_seconds

from jaxarc.constants import SUBMIT
from jaxarc.envs import JaxArcConfig, arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs.spaces import action_space
from jaxarc.envs.structured_actions import PointAction
from jaxarc.testing import create_mock_task, create_test_config
from jaxarc.types import JaxArcTask


def basic_batch(config: JaxArcConfig, task: JaxArcTask, size: int) -> None:
    section("1. A batch")
    keys = jax.random.split(jax.random.key(42), size)  # one key per environment
    states, observations = batch_reset(keys, config, task)
    index = jnp.arange(size)
    actions = PointAction(operation=index % 10, row=index % 5, col=jnp.full(size, 3))
    states, observations, rewards, dones, infos = batch_step(states, actions, config)
    print_table(
        "every leaf has a leading axis",
        ["what", "shape", "dtype"],
        [
            (name, value.shape, value.dtype)
            for name, value in {
                "observations": observations,
                "rewards": rewards,
                "dones": dones,
                "infos['similarity']": infos["similarity"],
                "states.step_count": states.step_count,
            }.items()
        ],
    )
    same = jnp.stack([keys[0]] * size)
    repeated, _ = batch_reset(same, config, task)
    say(f"pairs drawn with {size} keys: {[int(i) for i in states.pair_index]}")
    say(
        f"pairs drawn with one key {size} times: {[int(i) for i in repeated.pair_index]}: split keys, never repeat them"
    )


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


def batch_scaling(config: JaxArcConfig, task: JaxArcTask, sizes: list[int], steps: int, runs: int) -> dict[int, float]:
    section("2. Speed by batch size")
    speed = {}
    for size in sizes:
        call = functools.partial(random_rollout, jax.random.key(0), config, task, size, steps)
        speed[size] = size * steps / warm_seconds(call, runs)
    print_table(
        f"{steps} random steps inside one lax.scan",
        ["batch", "steps/s", "us per environment and step", f"against batch {sizes[0]}"],
        [(n, f"{speed[n]:,.0f}", f"{1e6 / speed[n]:.2f}", f"{speed[n] / speed[sizes[0]]:.1f}x") for n in sizes],
    )
    say("Submit is left out here, so every environment is still playing when the clock stops.")
    return speed


def memory_scaling(config: JaxArcConfig, task: JaxArcTask, sizes: list[int]) -> None:
    section("3. Memory by batch size")
    rows = []
    for size in sizes:
        keys = jax.random.split(jax.random.key(0), size)
        states = jax.eval_shape(lambda keys=keys: batch_reset(keys, config, task)[0])  # shapes only, nothing is made
        all_bytes, task_bytes = (
            sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(t)) for t in (states, states.task_data)
        )
        rows.append((size, f"{all_bytes - task_bytes:,}", f"{task_bytes:,}"))
    print_table("bytes of the states", ["batch", "states without task", "their copies of the task"], rows)
    say("In this API each state carries its task. jaxarc.make keeps the tasks once, in params, whatever the batch.")


def advanced_patterns(config: JaxArcConfig, task: JaxArcTask, size: int) -> None:
    section("4. Patterns")
    states, _ = batch_reset(jax.random.split(jax.random.key(1), size), config, task)

    index = jnp.arange(size)
    different = PointAction(operation=index % 34, row=index % 5, col=index % 4)
    after, _, rewards, _, _ = batch_step(states, different, config)
    low, high = float(rewards.min()), float(rewards.max())
    say(f"a different action in every environment: rewards from {low:.3f} to {high:.3f}")

    # A choice by data is an array, not a Python if: every environment fills with its own target's color or with 0.
    wanted = jnp.maximum(states.target_grid[:, 2, 2], 0).astype(jnp.int32)
    is_low = states.similarity_score < jnp.median(states.similarity_score)
    chosen = PointAction(jnp.where(is_low, wanted, 0), jnp.full(size, 2), jnp.full(size, 2))
    after, _, rewards, _, _ = batch_step(states, chosen, config)
    say(f"a choice by data: {int(is_low.sum())} of {size} environments took the other action")

    @eqx.filter_jit
    def until_all_are_done(states, key):
        def unfinished(carry):
            states, _, count = carry
            return ~jnp.all(states.done) & (count < config.environment.max_episode_steps)

        def step(carry):
            states, key, count = carry
            key, key_actions = jax.random.split(key)
            actions = jax.vmap(action_space(config).sample)(jax.random.split(key_actions, size))
            return batch_step(states, actions, config)[0], key, count + 1

        return jax.lax.while_loop(unfinished, step, (states, key, jnp.int32(0)))

    after, _, count = until_all_are_done(states, jax.random.key(2))
    lengths = np.asarray(after.step_count)
    say(f"early termination: the loop took {int(count)} steps, episodes lasted {lengths.min()} to {lengths.max()}")


def batch_against_sequential(config: JaxArcConfig, task: JaxArcTask, size: int, runs: int) -> float:
    section("5. Batch against a Python loop")
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
    print_table(
        f"one step of {size} environments",
        ["how", "ms", "ratio"],
        [
            ("batch_step", f"{1000 * together:.3f}", "1.0x"),
            ("arc_step in a loop", f"{1000 * one_by_one:.3f}", f"{one_by_one / together:.1f}x"),
        ],
    )
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *loop())
    equal = jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), stacked, batch_step(states, actions, config))
    say(f"the results are equal bit for bit: {all(jax.tree.leaves(equal))}")
    return one_by_one / together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canvas", type=int, default=30, help="side of the canvas, 5..30")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 8, 64, 512])
    parser.add_argument("--memory-sizes", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--steps", type=int, default=50, help="steps of a timed rollout")
    parser.add_argument("--runs", type=int, default=5, help="repeats of a timed call")
    args = parser.parse_args()

    console.print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind} ({jax.default_backend()})")
    config = create_test_config(grid_shape=(args.canvas, args.canvas), invalid_action_policy="noop")
    task = create_mock_task(args.canvas, args.canvas)
    basic_batch(config, task, size=32)
    no_submit = config.with_fields(allowed_operations=tuple(range(SUBMIT)), max_episode_steps=args.steps + 1)
    speed = batch_scaling(no_submit, task, args.sizes, args.steps, args.runs)
    memory_scaling(config, task, args.memory_sizes)
    advanced_patterns(config, task, size=32)
    ratio = batch_against_sequential(config, task, 32, args.runs)
    section("6. Summary")
    best = max(speed, key=lambda size: speed[size])
    say(f"best of the measured batches: {best}, with {speed[best]:,.0f} steps/s")
    say(f"one call for 32 environments took 1/{ratio:.0f} of the time of 32 calls")


if __name__ == "__main__":
    main()
