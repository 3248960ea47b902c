"""Measure what more devices bring and cost, and the bytes that they exchange."""

import functools
from collections.abc import Callable
from typing import Final

from device_rolling import Devices, Facts, roll_in_fresh_process

from jaxarc.benchmarks.measure import Row
from jaxarc.benchmarks.speed import play_params
from jaxarc.benchmarks.suite import Budget, Suite
from jaxarc.envs import ArcEnvironment
from jaxarc.parallel import RandomPolicy, available_memory, compile_rollout, data_mesh, replicate
from jaxarc.wrappers import AutoReset

Roll = Callable[[Devices], Facts]
"""Numbers by name of a rollout on so many devices."""

NUM_CORES: Final = 2  # that the targets are for
_MANY: Final = 8  # devices
_NUM_ENVS: Final = 8192  # over all devices; a part of it for each of eight is what a core plays at once anyway
_SPEEDUP: Final = 1.8
_OVERHEAD: Final = 1.1
_STEPS: Final = 100
_PROBE: Final = 8192  # environments whose memory is looked at to find how many fit


def scaling_rows(roll: Roll = roll_in_fresh_process) -> list[Row]:
    """List rows of speed on one and two cores, of overhead on eight devices of one core, and of what devices send.

    Args:
        roll: how a rollout is measured; in a process of its own for each number of devices.
    """
    rolls, what, each = _Rolls(roll), f"{_NUM_ENVS:,} environments", _NUM_ENVS // _MANY
    work = f"work for a step on eight devices of one core over one device, {what} in all"
    overhead = functools.partial(Row, unit="times", target=_OVERHEAD, less_is_better=True)
    return [
        Row(
            "speed-1",
            f"rollout of {what} on one device, pinned to one core",
            "steps/s",
            functools.partial(rolls.speed, row_id="speed-1", num_devices=1),
        ),
        Row(
            "speed-2",
            "the same on two devices, pinned to two cores",
            "steps/s",
            functools.partial(rolls.speed, row_id="speed-2", num_devices=2),
        ),
        Row("speedup-2", "two cores over one", "times", rolls.speedup, _SPEEDUP),
        Row("variation-2", "standard deviation of the time of a call on two devices", "%", rolls.variation),
        overhead("strong-8", work, measure=functools.partial(rolls.overhead, row_id="strong-8", num_envs=_NUM_ENVS)),
        overhead(
            "weak-8",
            f"the same over one device with {each:,} environments, as each of eight has",
            measure=functools.partial(rolls.overhead, row_id="weak-8", num_envs=each),
        ),
        *_fact_rows(rolls),
        Row("fitting", "environments that fit into the free memory here", "environments", _fitting, is_exact=True),
    ]


def _fact_rows(rolls: "_Rolls") -> list[Row]:
    facts = {
        "collectives": ("exchanges between devices in a rollout", "exchanges", 0.0),
        "traffic-replicated": (
            "bytes that XLA's step reads and writes, by the compiler's count",
            "bytes/step",
            None,
        ),
        "tasks-replicated": ("bytes of 400 tasks on each of eight devices", "bytes", None),
        "memory-replicated": (
            f"memory of XLA's program on each of eight devices, {_NUM_ENVS:,} environments",
            "bytes",
            None,
        ),
    }
    return [
        Row(
            name,
            what,
            unit,
            functools.partial(rolls.fact, name=name),
            target,
            less_is_better=True,
            is_exact=True,
        )
        for name, (what, unit, target) in facts.items()
    ]


def _fitting(suite: Suite) -> float:
    """Environments for which there is memory: free memory over what a further environment needs.

    Two compiled sizes tell what an environment needs, for part of the memory does not grow with their number.
    """
    env, mesh = AutoReset(ArcEnvironment()), data_mesh()
    params = replicate(play_params("bbox"), mesh)
    policy, steps = RandomPolicy(env.action_space(params)), min(_STEPS, suite.budget.longest_scan)
    compiled = [compile_rollout(env, params, policy, size, steps, mesh) for size in (_PROBE, 2 * _PROBE)]
    less, more = (program.bytes_per_device for program in compiled)
    free = available_memory(mesh)
    if less is None or more is None or free is None:
        raise RuntimeError("this device does not say how much memory there is, or is needed; leave the row fitting out")
    each = (more - less) / _PROBE  # on each device, for one environment more on all of them together
    return (free - mesh.size * less) // (mesh.size * each) + _PROBE


class _Rolls:
    """Hands each number of a process out to each row once, and starts another when a row asks again."""

    def __init__(self, roll: Roll):
        self._roll = roll
        self._found: dict[Devices, tuple[Facts, set[str]]] = {}  # with the rows that have seen it

    def speed(self, suite: Suite, row_id: str, num_devices: int) -> float:
        """Steps per second on devices that have a core each."""
        return self._roll_on(suite, row_id, num_devices, num_devices, _NUM_ENVS)["speed"]

    def speedup(self, suite: Suite) -> float:
        return self.speed(suite, "speedup-2", 2) / self.speed(suite, "speedup-2", 1)

    def variation(self, suite: Suite) -> float:
        return 100 * self._roll_on(suite, "variation-2", 2, 2, _NUM_ENVS)["variation"]

    def overhead(self, suite: Suite, row_id: str, num_envs: int) -> float:
        """Work for a step on eight devices of one core, over that on one device with so many environments."""
        many = self._roll_on(suite, row_id, _MANY, 1, _NUM_ENVS)["work"]
        return many / self._roll_on(suite, row_id, 1, 1, num_envs)["work"]

    def fact(self, suite: Suite, name: str) -> float:
        return self._ask(Devices("facts", _MANY, 1, _NUM_ENVS, *_effort(suite.budget)), name)[name]

    def _roll_on(self, suite: Suite, row_id: str, num_devices: int, num_cores: int, num_envs: int) -> Facts:
        return self._ask(Devices("speed", num_devices, num_cores, num_envs, *_effort(suite.budget)), row_id)

    def _ask(self, devices: Devices, row_id: str) -> Facts:
        found = self._found.get(devices)
        if found is None or row_id in found[1]:
            found = self._found[devices] = self._roll(devices), set()
        found[1].add(row_id)
        return found[0]


def _effort(budget: Budget) -> tuple[float, int]:
    return budget.seconds, budget.longest_scan
