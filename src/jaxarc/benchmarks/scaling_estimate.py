"""How fast many accelerators would be: formulas over measured numbers and the speed of links. Nothing here is measured.

Rollouts tell one another nothing, so that D devices bring D times one device, but for the wait for the slowest of them:
a time that varies by a share c (standard deviation over mean) is longest by ``c * sqrt(2 ln D)`` among D devices.

Training exchanges gradients: of G bytes, each device sends and receives ``2 (D - 1) / D * G`` by the slowest link that
the exchange crosses, in ``2 (D - 1)`` messages one after the other, as a ring does. Sharded tasks send
``(D - 1) / D * B * H * W`` bytes for each load of a step, in ``2 (D - 1)`` messages, with B environments in all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Link:
    """What connects two devices."""

    bytes_per_second: float  # of a device, in one direction
    seconds_per_message: float


@dataclass(frozen=True)
class Cluster:
    """Nodes of a few devices each; the links of a node are faster than those between nodes."""

    devices_per_node: int
    inside: Link
    between: Link

    def slowest_link(self, num_devices: int) -> Link:
        """The link that limits an exchange among so many devices."""
        return self.inside if num_devices <= self.devices_per_node else self.between


# Eight accelerators of a node with 450 GB/s each in one direction (NVLink 4), 50 GB/s each between nodes (400 Gbit/s).
EIGHT_A_NODE: Final = Cluster(8, Link(450e9, 2e-6), Link(50e9, 5e-6))


@dataclass(frozen=True)
class Training:
    """What one device does in an update."""

    steps_per_second: float  # of one device, with learning
    steps_per_update: int  # of one device's environments together
    exchanges_per_update: int  # epochs * minibatches
    gradient_bytes: int  # as large as the parameters


@dataclass(frozen=True)
class ShardedPlay:
    """What one device does in a step with sharded tasks."""

    steps_per_second: float  # of one device that holds all tasks
    num_envs: int  # on each device
    grid_bytes: int  # H * W
    num_loads: int  # grids that a step loads


def rollout_speed(steps_per_second: float, variation: float, num_devices: int) -> float:
    """Steps per second of random play on all devices.

    Args:
        steps_per_second: of one device.
        variation: standard deviation of a call's time over its mean.
        num_devices: D.
    """
    return num_devices * steps_per_second / (1 + variation * math.sqrt(2 * math.log(num_devices)))


def training_speed(training: Training, cluster: Cluster, num_devices: int) -> tuple[float, float]:
    """Steps per second of data-parallel training on all devices, and the share of its time that they exchange."""
    computing = training.steps_per_update / training.steps_per_second
    share = 2 * (num_devices - 1) / num_devices
    exchange = _seconds(share * training.gradient_bytes, num_devices, cluster)
    exchanging = training.exchanges_per_update * exchange
    total = computing + exchanging
    return num_devices * training.steps_per_update / total, exchanging / total


def sharded_speed(play: ShardedPlay, cluster: Cluster, num_devices: int) -> tuple[float, float]:
    """Steps per second of random play with sharded tasks, and the share of its time that the devices exchange."""
    computing = play.num_envs / play.steps_per_second
    sent = (num_devices - 1) * play.num_envs * play.grid_bytes
    exchanging = play.num_loads * _seconds(sent, num_devices, cluster)
    total = computing + exchanging
    return num_devices * play.num_envs / total, exchanging / total


def estimate_table(
    play: ShardedPlay,
    variation: float,
    training: Training,
    cluster: Cluster = EIGHT_A_NODE,
    num_devices: Sequence[int] = (1, 8, 64, 1024),
) -> str:
    """Write the estimates as a table in Markdown, a row for each number of devices."""
    lines = [
        "| accelerators | rollouts, steps/s | of linear | with sharded tasks | training, steps/s | of linear |",
        "|---|---|---|---|---|---|",
    ]
    for count in num_devices:
        played = rollout_speed(play.steps_per_second, variation, count)
        sharded, _ = sharded_speed(play, cluster, count)
        learned, exchanging = training_speed(training, cluster, count)
        lines.append(
            f"| {count:,} | {_speed(played)} | {100 * played / (count * play.steps_per_second):.0f} % | "
            f"{_speed(sharded)} | {_speed(learned)} | {100 * (1 - exchanging):.0f} % |"
        )
    return "\n".join(lines) + "\n"


def _seconds(num_bytes: float, num_devices: int, cluster: Cluster) -> float:
    link = cluster.slowest_link(num_devices)
    return num_bytes / link.bytes_per_second + 2 * (num_devices - 1) * link.seconds_per_message


def _speed(steps_per_second: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6)):
        if steps_per_second >= size:
            return f"{steps_per_second / size:,.3g} {unit}"
    return f"{steps_per_second:,.0f}"
