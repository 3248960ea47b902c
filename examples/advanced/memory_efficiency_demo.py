"""Where the bytes of an environment go: action records, episode length, batches, files.

    python examples/advanced/memory_efficiency_demo.py --lengths 100 1000 10000 --batch-sizes 1 64 1024

Every number is measured when this runs.
"""

import argparse
import tempfile
from pathlib import Path

import equinox as eqx
import jax
from measure import console, nbytes, print_table, say, seconds_of, section

from jaxarc.datasets import TaskSet
from jaxarc.envs import JaxArcConfig, arc_reset, arc_step, batch_reset
from jaxarc.envs.action_space import action_space
from jaxarc.io.serialization import load_state_efficiently, save_state_efficiently
from jaxarc.tasks.task import mock_raw_task, pad_task
from jaxarc.testing import create_mock_task, create_test_config

FORMATS = ("point", "bbox", "mask")


def without_task(state):
    return eqx.tree_at(lambda s: s.task_data, state, None)


def action_format_memory(side: int) -> None:
    section("1. Selection format")
    rows = []
    for selection_format in FORMATS:
        config = create_test_config(1000, selection_format, (side, side))
        state, _ = arc_reset(jax.random.key(0), config, create_mock_task(side, side))
        history = state.action_history
        numbers = (history.nbytes, nbytes(state.action_records), nbytes(without_task(state)))
        rows.append((selection_format, history.shape[1], *(f"{number:,}" for number in numbers)))
    columns = ["format", "numbers per record", "history as shown", "history stored", "state without task"]
    print_table(f"1000 records on a canvas of {side}x{side}; bytes", columns, rows)
    say("state.action_history is a view in float32; a state stores bytes, and a mask as packed bits.")


def history_and_batches(side: int, lengths: list[int], sizes: list[int]) -> None:
    section("2. Episode length and batch size")
    task = create_mock_task(side, side)

    def shapes(length: int, selection_format: str, size: int):
        config = create_test_config(length, selection_format, (side, side))
        return jax.eval_shape(lambda: batch_reset(jax.random.split(jax.random.key(0), size), config, task)[0])

    rows = [(n, *(f"{nbytes(shapes(n, each, 1).action_records):,}" for each in FORMATS)) for n in lengths]
    print_table("bytes of the history", ["max_episode_steps", *FORMATS], rows)
    rows = [(n, *(f"{nbytes(without_task(shapes(100, each, n))):,}" for each in FORMATS)) for n in sizes]
    print_table("bytes of the states without their task, 100 steps an episode", ["batch", *FORMATS], rows)
    say("Kept are min(history.max_history_length, max_episode_steps) records; history_enabled=False keeps none.")
    say("These are shapes from jax.eval_shape: nothing was allocated, so a batch can be sized before it is made.")


def serialization_efficiency(side: int, steps: int, folder: Path) -> None:
    section("3. Files")
    # Padded to 10 + 3 pairs, the most that ARC-AGI-1 tasks have, as the states of a mixed data set are.
    raw = mock_raw_task(side, side)
    tasks = TaskSet("mock", (raw,)).on_canvas((side, side))
    index = int(tasks.get_task_by_id(raw.task_id).task_index)
    task = pad_task(raw, (side, side), index, max_pairs=(10, 3))
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


@eqx.filter_jit
def played(config: JaxArcConfig, task, steps: int):
    """Take random actions, in one compiled call."""

    def step(state, key):
        return arc_step(state, action_space(config).sample(key), config)[0], None

    state, _ = arc_reset(jax.random.key(0), config, task)
    return jax.lax.scan(step, state, jax.random.split(jax.random.key(1), steps))[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canvas", type=int, default=30, help="side of the canvas, 5..30")
    parser.add_argument("--lengths", type=int, nargs="+", default=[100, 500, 1000, 2000, 10000])
    parser.add_argument("--steps", type=int, default=100, help="actions before a state is written")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 16, 256, 4096])
    args = parser.parse_args()

    console.print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind} ({jax.default_backend()})")
    action_format_memory(args.canvas)
    history_and_batches(args.canvas, args.lengths, args.batch_sizes)
    with tempfile.TemporaryDirectory() as folder:
        serialization_efficiency(args.canvas, args.steps, Path(folder))
    section("4. Tips")
    say("- Choose point or bbox selections unless the policy needs free masks.")
    say("- Set max_episode_steps to what episodes need, or history.history_enabled=False.")
    say("- Use jaxarc.make for many tasks: they are stored once, in params.")
    say("- Scan over steps, and keep of each only what learning needs.")


if __name__ == "__main__":
    main()
