"""Where the bytes of an environment go: action records, episode length, files, batches.

    python examples/advanced/memory_efficiency_demo.py --lengths 100 1000 10000 --batch-sizes 1 64 1024

Every number is measured when this runs.
"""

import argparse
import tempfile
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import console, nbytes, print_table, say, seconds_of, section

from jaxarc.datasets import TaskSet
from jaxarc.envs import JaxArcConfig, arc_reset, arc_step, batch_reset
from jaxarc.envs.spaces import action_space
from jaxarc.io.serialization import load_state_efficiently, save_state_efficiently
from jaxarc.tasks.task import mock_raw_task
from jaxarc.testing import create_mock_task, create_test_config

FORMATS = ("point", "bbox", "mask")


def without_task(state):
    return eqx.tree_at(lambda s: s.task_data, state, None)


def action_format_memory(side: int) -> None:
    section("1. Selection format")
    rows = []
    task = create_mock_task(side, side)
    for selection_format in FORMATS:
        config = create_test_config(1000, selection_format, (side, side))
        state, _ = arc_reset(jax.random.key(0), config, task)
        history = state.action_history
        stored = nbytes(state.action_records)
        rows.append((selection_format, history.shape[1], history.nbytes, stored, nbytes(without_task(state))))
    baseline = rows[-1][2]
    print_table(
        f"1000 records on a canvas of {side}x{side}; bytes",
        ["format", "numbers per record", "history as shown", "of mask", "history stored", "state without task"],
        [(f, n, f"{v:,}", f"{100 * v / baseline:.1f} %", f"{s:,}", f"{t:,}") for f, n, v, s, t in rows],
    )
    say("state.action_history is a view in float32; a state stores bytes, and a mask as packed bits.")


def history_efficiency(side: int, lengths: list[int]) -> None:
    section("2. Episode length")
    rows = []
    task = create_mock_task(side, side)
    for length in lengths:
        sizes = []
        for selection_format in FORMATS:
            config = create_test_config(length, selection_format, (side, side))
            state = jax.eval_shape(lambda config=config: arc_reset(jax.random.key(0), config, task)[0])
            sizes.append(state.action_records.size)  # one byte each
        rows.append((length, config.history_capacity, *(f"{size:,}" for size in sizes)))
    print_table("bytes stored", ["max_episode_steps", "records kept", *FORMATS], rows)
    say(
        "Kept are min(history.max_history_length, max_episode_steps) records; history.history_enabled=False keeps none."
    )


def serialization_efficiency(side: int, steps: int, folder: Path) -> None:
    section("3. Files")
    # Padded to 10 + 3 pairs, the most that ARC-AGI-1 tasks have, as the states of a mixed data set are.
    raw = mock_raw_task(side, side)
    tasks = TaskSet("mock", (raw,)).on_canvas((side, side))
    task = padded(tasks.get_task_by_id(raw.task_id), 10, 3)
    rows = []
    for selection_format in FORMATS:
        config = create_test_config(1000, selection_format, (side, side), allowed_operations=tuple(range(34)))
        state = played(config, task, steps)
        full, efficient = folder / f"{selection_format}.eqx", folder / f"{selection_format}.state"
        write_full = seconds_of(lambda state=state, full=full: eqx.tree_serialise_leaves(full, state))
        write = seconds_of(lambda state=state, efficient=efficient: save_state_efficiently(state, efficient))
        loaded = load_state_efficiently(efficient, tasks, arc_reset(jax.random.key(1), config, task)[0])
        equal = bool(eqx.tree_equal(loaded, state))
        sizes = full.stat().st_size, efficient.stat().st_size
        saved = f"{100 - 100 * sizes[1] / sizes[0]:.1f} %"
        rows.append((selection_format, *(f"{s:,}" for s in sizes), saved, f"{write_full:.4f}", f"{write:.4f}", equal))
    print_table(
        f"bytes and seconds to write a state after {steps} random actions",
        ["format", "all leaves", "efficient", "saved", "s, all", "s, efficient", "equal"],
        rows,
    )
    say("The efficient file leaves the task out, names it by id and checksum, and compresses the rest.")


def played(config: JaxArcConfig, task, steps: int):
    """Take random actions, in one compiled call."""

    @eqx.filter_jit
    def play(state, keys):
        def step(state, key):
            return arc_step(state, action_space(config).sample(key), config)[0], None

        return jax.lax.scan(step, state, keys)[0]

    state, _ = arc_reset(jax.random.key(0), config, task)
    return play(state, jax.random.split(jax.random.key(1), steps))


def padded(task, train_slots: int, test_slots: int):
    """Add unused slots for pairs."""

    def grow(array, slots):
        fill = False if array.dtype == jnp.bool_ else -1
        return jnp.pad(array, ((0, slots - array.shape[0]), (0, 0), (0, 0)), constant_values=fill)

    slots = {name: test_slots if "test" in name else train_slots for name in task.__dict__ if task.__dict__[name].ndim}
    return type(task)(**{name: grow(x, slots[name]) if x.ndim else x for name, x in task.__dict__.items()})


def batch_memory_scaling(side: int, sizes: list[int]) -> None:
    section("4. Batches")
    rows = []
    task = create_mock_task(side, side)
    for size in sizes:
        keys = jax.random.split(jax.random.key(0), size)
        by_format = []
        for selection_format in FORMATS:
            config = create_test_config(100, selection_format, (side, side))
            shapes = jax.eval_shape(lambda config=config, keys=keys: batch_reset(keys, config, task)[0])
            leaves = jax.tree.leaves(without_task(shapes))
            by_format.append(f"{sum(leaf.size * leaf.dtype.itemsize for leaf in leaves):,}")
        rows.append((size, *by_format))
    print_table("bytes of the states without their task, 100 steps an episode", ["batch", *FORMATS], rows)
    say("These are shapes from jax.eval_shape: nothing was allocated, so a batch can be sized before it is made.")


def tips() -> None:
    section("5. Tips")
    for tip in (
        "Choose point or bbox selections unless the policy needs free masks.",
        "Set max_episode_steps to what episodes need: the history shrinks with it. Or history.history_enabled=False.",
        "Use jaxarc.make for many tasks: they are stored once, in params.",
        "Size a batch with jax.eval_shape before making it.",
        "Scan over steps and keep only what learning needs from each.",
        "Save states with save_state_efficiently, or let the checkpoint of a training run hold them.",
    ):
        say(f"- {tip}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canvas", type=int, default=30, help="side of the canvas, 5..30")
    parser.add_argument("--lengths", type=int, nargs="+", default=[100, 500, 1000, 2000, 10000])
    parser.add_argument("--steps", type=int, default=100, help="actions before a state is written")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 16, 256, 4096])
    args = parser.parse_args()

    console.print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind} ({jax.default_backend()})")
    action_format_memory(args.canvas)
    history_efficiency(args.canvas, args.lengths)
    with tempfile.TemporaryDirectory() as folder:
        serialization_efficiency(args.canvas, args.steps, Path(folder))
    batch_memory_scaling(args.canvas, args.batch_sizes)
    tips()


if __name__ == "__main__":
    main()
