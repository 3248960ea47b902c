"""What compilation, batches and compact records are worth on this machine, measured.

    python examples/advanced/jax_optimization_demo.py --batch-sizes 1 16 256 4096 --runs 1000

Every number is measured when this runs; the first call of a function compiles it and is listed apart.
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import console, nbytes, print_table, say, seconds_of, section, warm_seconds

from jaxarc.envs import JaxArcConfig, arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction
from jaxarc.testing import create_mock_task, create_test_config
from jaxarc.types import JaxArcTask


def jit_compilation_benefits(config: JaxArcConfig, task: JaxArcTask, runs: int) -> dict[str, float]:
    section("1. Compilation")
    key, action = jax.random.key(0), PointAction(operation=1, row=2, col=2)
    first_reset = seconds_of(lambda: arc_reset(key, config, task))
    warm_reset = warm_seconds(lambda: arc_reset(key, config, task), runs)
    state, _ = arc_reset(key, config, task)
    first_step = seconds_of(lambda: arc_step(state, action, config))
    warm_step = warm_seconds(lambda: arc_step(state, action, config), runs)
    with jax.disable_jit():
        eager_reset = warm_seconds(lambda: arc_reset(key, config, task), 1)
        eager_step = warm_seconds(lambda: arc_step(state, action, config), 1)
    rows = [("arc_reset", first_reset, warm_reset, eager_reset), ("arc_step", first_step, warm_step, eager_step)]
    print_table(
        f"seconds per call, canvas {config.grid_shape}",
        ["function", "first call (compiles)", "warm call", "operation by operation", "ratio"],
        [
            (name, f"{first:.2f}", f"{warm:.6f}", f"{eager:.2f}", f"{eager / warm:.0f}x")
            for name, first, warm, eager in rows
        ],
    )

    traces = 0

    @eqx.filter_jit
    def counted_step(state, action, config):
        nonlocal traces
        traces += 1  # Python runs only while JAX traces the function
        return arc_step(state, action, config)

    for step in range(20):
        state, *_ = counted_step(state, PointAction(step % 34, step % 5, step % 3), config)
    say(f"20 steps with 20 different actions: traced {traces} time(s).")
    return {"warm_step": warm_step}


def batch_processing(config: JaxArcConfig, task: JaxArcTask, sizes: list[int], runs: int) -> dict[str, float]:
    section("2. Batches")
    states, _ = batch_reset(jax.random.split(jax.random.key(0), max(sizes)), config, task)
    per_env = {}
    rows = []
    for size in sizes:
        some = jax.tree.map(lambda x, size=size: x[:size], states)
        index = jnp.arange(size)
        actions = PointAction(operation=index % 34, row=index % 5, col=index % 3)
        seconds = warm_seconds(lambda some=some, actions=actions: batch_step(some, actions, config), runs)
        per_env[size] = seconds / size
        rows.append(
            (
                size,
                f"{1000 * seconds:.3f}",
                f"{1e6 * seconds / size:.1f}",
                f"{size / seconds:,.0f}",
                f"{per_env[sizes[0]] / per_env[size]:.1f}x",
            )
        )
    print_table(
        "one batch_step, called from Python",
        ["batch", "ms per call", "us per environment", "steps/s", f"against batch {sizes[0]}"],
        rows,
    )
    best = min(per_env, key=lambda size: per_env[size])
    return {"best_batch": best, "best_steps_per_second": 1 / per_env[best]}


def memory_efficiency(side: int) -> dict[str, float]:
    section("3. Memory of the action history")
    rows, views = [], {}
    for selection_format in ("point", "bbox", "mask"):
        config = create_test_config(1000, selection_format, (side, side))
        state, _ = arc_reset(jax.random.key(0), config, create_mock_task(side, side))
        history, views[selection_format] = nbytes(state.action_records), state.action_history.nbytes
        state_bytes = nbytes(eqx.tree_at(lambda s: s.task_data, state, None))
        rows.append(
            (selection_format, state.action_history.shape, f"{views[selection_format]:,}", history, state_bytes)
        )
    print_table(
        f"bytes per environment, 1000 records, canvas {side}x{side}",
        ["format", "records as shown", "bytes as shown", "bytes stored", "state without task"],
        [(*row[:3], *(f"{value:,}" for value in row[3:])) for row in rows],
    )
    return {"point_saving": 1 - views["point"] / views["mask"]}


def structured_actions(config: JaxArcConfig, task: JaxArcTask) -> None:
    section("4. Structured actions")
    shape = config.grid_shape
    mask = jnp.zeros(shape, jnp.bool_).at[1:3, 1:3].set(True)
    actions = {
        "PointAction(0, 2, 2)": PointAction(0, 2, 2),
        "BboxAction(0, 1, 1, 2, 3)": BboxAction(0, 1, 1, 2, 3),
        "MaskAction(0, mask)": MaskAction(0, mask),
    }
    to_mask = eqx.filter_jit(lambda action: action.to_selection_mask(shape))
    print_table(
        "the same method, compiled",
        ["action", "cells selected", "bytes of the action"],
        [(name, int(to_mask(action).sum()), nbytes(action)) for name, action in actions.items()],
    )
    batch = PointAction(jnp.zeros(4, jnp.int32), jnp.arange(4), jnp.arange(4))
    masks = jax.vmap(lambda action: action.to_selection_mask(shape))(batch)
    say(f"a batch of 4 points becomes masks of shape {masks.shape}")
    state, _ = arc_reset(jax.random.key(0), config, task)
    try:
        arc_step(state, {"operation": 0, "selection": jnp.array([2, 2])}, config)
    except TypeError as error:
        say(f"a dictionary is refused: {error}")


def benchmark_performance(num_runs: int = 1000) -> dict[str, float]:
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
    return {"steps_per_second": 1 / avg_time}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canvas", type=int, default=30, help="side of the canvas, 5..30")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 4, 16, 64, 256])
    parser.add_argument("--runs", type=int, default=50, help="repeats of a timed call")
    parser.add_argument("--steps", type=int, default=1000, help="steps of the benchmark")
    args = parser.parse_args()

    console.print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind} ({jax.default_backend()})")
    config = create_test_config(grid_shape=(args.canvas, args.canvas))
    task = create_mock_task(args.canvas, args.canvas)
    found = jit_compilation_benefits(config, task, args.runs)
    found |= batch_processing(config, task, args.batch_sizes, args.runs)
    found |= memory_efficiency(args.canvas)
    structured_actions(config, task)
    section("5. Benchmark")
    found |= benchmark_performance(args.steps)
    section("6. Summary")
    print_table(
        "measured in this run",
        ["what", "value"],
        [
            ("one environment, stepped from Python", f"{found['steps_per_second']:,.0f} steps/s"),
            (f"batch of {found['best_batch']}, stepped from Python", f"{found['best_steps_per_second']:,.0f} steps/s"),
            ("history as shown, point against mask", f"{100 * found['point_saving']:.1f} % smaller"),
        ],
    )
    say("A loop inside lax.scan saves the Python call of every step: see batch_processing_demo.py.")


if __name__ == "__main__":
    main()
