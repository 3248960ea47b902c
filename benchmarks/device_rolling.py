"""How fast rollouts are on so many devices; a script for a process of its own, as devices are fixed at the start.

``python device_rolling.py speed 8 1 8192 1.0 512`` prints a JSON object: a rollout of 8,192 environments on eight
devices of one core. ``facts`` instead of ``speed`` says what the compiled programs are like; nothing is played.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import Literal

Facts = dict[str, float]


@dataclass(frozen=True)
class Devices:
    """What a process measures, and on what."""

    what: Literal["speed", "facts"]
    num_devices: int  # of the CPU
    num_cores: int  # that the process is pinned to, where the system lets us choose
    num_envs: int  # over all devices
    seconds: float  # that a measurement lasts at least
    longest_scan: int  # steps in one compiled call, at most


def roll_in_fresh_process(devices: Devices) -> Facts:
    """Start a process with so many devices that measures, and return its numbers by name.

    Raises:
        RuntimeError: the process failed; its last words are quoted.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices.num_devices}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, __file__, *map(str, asdict(devices).values())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        count = devices.num_devices
        raise RuntimeError(f"a rollout on {count} device(s) failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(devices: Devices) -> Facts:
    """Measure in this process, which has the devices already."""
    from jaxarc.benchmarks.measure import pinned_to_cores

    with pinned_to_cores(devices.num_cores):
        return _measure_speed(devices) if devices.what == "speed" else _look_at_programs(devices)


def _measure_speed(devices: Devices) -> Facts:
    """Steps per second, nanoseconds that the processor works for a step, and how much the time of a call varies.

    Waiting for a core is no work.
    """
    from jaxarc.benchmarks.speed import Rolling, play_params

    rolling = Rolling(play_params("bbox"), devices.num_envs, devices.longest_scan)
    steps, work = 0, time.process_time()
    ends = [time.perf_counter()]
    while len(ends) == 1 or ends[-1] - ends[0] < devices.seconds:
        steps += rolling.advance()
        ends.append(time.perf_counter())
    work = time.process_time() - work
    seconds = [end - start for start, end in itertools.pairwise(ends)]
    return {
        "speed": steps / sum(seconds),
        "work": 1e9 * work / steps,
        "variation": statistics.pstdev(seconds) / statistics.fmean(seconds),
    }


def _look_at_programs(devices: Devices) -> Facts:
    """Bytes on each device, and what the devices send one another."""
    import jax

    from jaxarc.benchmarks.speed import play_params
    from jaxarc.envs import ArcEnvironment
    from jaxarc.parallel import RandomPolicy, data_mesh, replicate
    from jaxarc.parallel.program import compile_play, make_statics
    from jaxarc.profiling.collectives import count_collectives
    from jaxarc.wrappers import AutoReset

    env, mesh, given = AutoReset(ArcEnvironment()), data_mesh(), play_params("bbox")

    params = replicate(replace(given, config=given.config.with_fields(executor="xla")), mesh)
    plan, _ = make_statics(env, params, RandomPolicy(env.action_space(params)), devices.num_envs, mesh)
    program = compile_play(plan, 1)
    parts = [part for leaf in jax.tree.leaves(params.tasks) for part in leaf.addressable_shards]
    read_and_written = (program.call.cost_analysis() or {}).get("bytes accessed", 0.0)
    return {
        "collectives": sum(sent.num_instructions for sent in count_collectives(program.call).values()),
        "traffic-replicated": read_and_written * devices.num_devices / devices.num_envs,
        "tasks-replicated": sum(part.data.nbytes for part in parts if part.device == mesh.devices.flat[0]),
        "memory-replicated": float(program.bytes_per_device or 0),
    }


if __name__ == "__main__":
    what, num_devices, num_cores, num_envs, seconds, longest_scan = sys.argv[1:]
    asked = Devices(
        "facts" if what == "facts" else "speed",
        int(num_devices),
        int(num_cores),
        int(num_envs),
        float(seconds),
        int(longest_scan),
    )
    sys.stdout.write(json.dumps(measure(asked)) + "\n")
