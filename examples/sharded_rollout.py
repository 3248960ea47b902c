"""A rollout over many devices: bitwise identical on one, two, four and eight of them.

    python examples/sharded_rollout.py --devices 8 --envs 1000 --steps 100

On a CPU the devices are made up, so this shows that the results agree, not how fast they come: ``jaxarc rollout`` uses
the cores that there are. On a machine with accelerators leave ``--devices`` out.
"""

import argparse

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxarc
from jaxarc.parallel import RandomPolicy, data_mesh, rollout, use_host_cores
from jaxarc.wrappers import AutoReset, EpisodeStatistics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=None, help="CPU devices to make up; otherwise all there are")
    parser.add_argument("--envs", type=int, default=1000, help="need not be a multiple of the devices")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--canvas", type=int, default=10)
    options = parser.parse_args()
    if options.devices is not None:
        use_host_cores(options.devices)  # before anything else of JAX

    env, params = jaxarc.make(
        f"arc-agi-1/training:max_side={options.canvas}",
        selection_format="bbox",
        max_grid_height=options.canvas,
        max_grid_width=options.canvas,
        invalid_action_policy="noop",
    )
    env = EpisodeStatistics(AutoReset(env))
    table = Table("devices", "environments", "steps", "episodes ended", "solved", "mean reward", "identical")
    counts = [2**power for power in range(10) if 2**power <= len(jax.local_devices())]
    first = None
    for count in counts:
        played = rollout(
            env,
            params,
            RandomPolicy(env.action_space(params)),
            jax.random.key(0),
            options.envs,
            options.steps,
            data_mesh(count),
        )
        totals, leaves = played.totals, [np.asarray(leaf) for leaf in jax.tree.leaves(played.states)]
        first = leaves if first is None else first
        same = all(np.array_equal(a, b) for a, b in zip(first, leaves, strict=True))
        mean = totals.reward_sum / totals.steps
        cells = [count, options.envs, totals.steps, totals.episodes, totals.solved]
        table.add_row(*(f"{cell:,}" for cell in cells), f"{mean:.6f}", "yes" if same else "NO")
    Console().print(table)


if __name__ == "__main__":
    main()
