"""What compilation and vectorization are worth on this machine, and how fast a step from Python is.

    python examples/advanced/jax_optimization_demo.py --runs 1000 --steps 1000

Every number is measured when this runs; the first call of a function compiles it and is listed apart.
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import console, nbytes, print_table, say, seconds_of, section, warm_seconds

from jaxarc.envs import JaxArcConfig, arc_reset, arc_step
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction
from jaxarc.testing import create_mock_task, create_test_config
from jaxarc.types import JaxArcTask


def jit_compilation_benefits(config: JaxArcConfig, task: JaxArcTask, runs: int) -> None:
    section("1. Compilation")
    key, action = jax.random.key(0), PointAction(operation=1, row=2, col=2)
    state, _ = arc_reset(key, config, task)
    rows = []
    calls = {"arc_reset": lambda: arc_reset(key, config, task), "arc_step": lambda: arc_step(state, action, config)}
    for name, call in calls.items():
        jax.clear_caches()
        first, warm = seconds_of(call), warm_seconds(call, runs)
        with jax.disable_jit():
            eager = warm_seconds(call, 1)
        rows.append((name, f"{first:.2f}", f"{warm:.6f}", f"{eager:.2f}", f"{eager / warm:.0f}x"))
    columns = ["function", "first call (compiles)", "warm call", "operation by operation", "ratio"]
    print_table(f"seconds per call, canvas {config.grid_shape}", columns, rows)

    traces = 0

    @eqx.filter_jit
    def counted_step(state, action, config):
        nonlocal traces
        traces += 1  # Python runs only while JAX traces the function
        return arc_step(state, action, config)

    for step in range(20):
        state, *_ = counted_step(state, PointAction(step % 34, step % 5, step % 3), config)
    say(f"20 steps with 20 different actions: traced {traces} time(s).")


def expensive_fn(x):
    """Two hundred elementwise operations: a loop of Python over examples makes each of them a call."""
    for _ in range(100):
        x = jnp.sin(x) + jnp.cos(x)
    return x


def vectorization(runs: int) -> None:
    section("2. jit of vmap")
    batch = jnp.ones((64, 10))
    vectorized = jax.vmap(expensive_fn)
    compiled = jax.jit(vectorized)
    calls = {
        "one example after the other": (lambda: jnp.stack([expensive_fn(x) for x in batch]), 1),
        "vmap": (lambda: vectorized(batch), runs),
        "jit of vmap": (lambda: compiled(batch), runs),
    }
    rows = [(name, f"{1000 * warm_seconds(call, repeats):,.3f}") for name, (call, repeats) in calls.items()]
    print_table("a function of 200 operations on 64 examples of 10", ["how", "ms"], rows)


def structured_actions(config: JaxArcConfig, task: JaxArcTask) -> None:
    section("3. Structured actions")
    shape = config.grid_shape
    mask = jnp.zeros(shape, jnp.bool_).at[1:3, 1:3].set(True)
    actions = (PointAction(0, 2, 2), BboxAction(0, 1, 1, 2, 3), MaskAction(0, mask))
    to_mask = eqx.filter_jit(lambda action: action.to_selection_mask(shape))
    rows = [(type(action).__name__, int(to_mask(action).sum()), nbytes(action)) for action in actions]
    print_table("the same method, compiled", ["action", "cells selected", "bytes of the action"], rows)
    batch = PointAction(jnp.zeros(4, jnp.int32), jnp.arange(4), jnp.arange(4))
    say(f"a batch of 4 points becomes masks of shape {jax.vmap(to_mask)(batch).shape}")
    state, _ = arc_reset(jax.random.key(0), config, task)
    try:
        arc_step(state, {"operation": 0, "selection": jnp.array([2, 2])}, config)
    except TypeError as error:
        say(f"a dictionary is refused: {error}")


def benchmark_performance(num_runs: int = 1000) -> None:
    """Step one environment from Python, and time it: step once first, and wait for the last result."""
    config = create_test_config(max_episode_steps=num_runs)
    task = create_mock_task()
    state, _ = arc_reset(jax.random.key(42), config, task)
    actions = [PointAction(operation=0, row=i % 10, col=5) for i in range(10)]
    jax.block_until_ready(arc_step(state, actions[0], config))

    start_time = time.perf_counter()
    for i in range(num_runs):
        state, obs, _reward, _done, _info = arc_step(state, actions[i % 10], config)
    jax.block_until_ready(obs)
    avg_time = (time.perf_counter() - start_time) / num_runs

    print(f"Average step time: {avg_time * 1000:.3f}ms")
    print(f"Throughput: {1 / avg_time:.0f} steps/sec")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canvas", type=int, default=30, help="side of the canvas, 5..30")
    parser.add_argument("--runs", type=int, default=50, help="repeats of a timed call")
    parser.add_argument("--steps", type=int, default=1000, help="steps of the benchmark")
    args = parser.parse_args()

    console.print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind} ({jax.default_backend()})")
    config = create_test_config(grid_shape=(args.canvas, args.canvas))
    task = create_mock_task(args.canvas, args.canvas)
    jit_compilation_benefits(config, task, args.runs)
    vectorization(args.runs)
    structured_actions(config, task)
    section("4. Benchmark")
    benchmark_performance(args.steps)
    say("A loop inside lax.scan saves the Python call of every step: see batch_processing_demo.py.")


if __name__ == "__main__":
    main()
