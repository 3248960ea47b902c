"""How long recordings take on so many devices; a script for a process of its own, as devices are fixed at the start.

``python trace_recording.py 2 1.0`` prints a JSON object of seconds by name, for two virtual devices of a CPU and the
whole labor.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

    from jaxarc.experts.expert import Expert, Pair
    from jaxarc.traces import Graph

UNITS: Final = (4, 8, 16, 100)
_HELD_ROUNDS: Final = 100_000  # of labor for a unit, about 10 milliseconds
_RELEASED_ROUNDS: Final = 20_000  # the same
_PROCESSES: Final = 2


def record_in_fresh_process(num_devices: int, labor: float) -> dict[str, float]:
    """Start a process with so many devices that records, and return its seconds by name.

    Args:
        num_devices: virtual devices of the CPU.
        labor: share of the usual labor of each unit, 0 .. 1.

    Raises:
        RuntimeError: the process failed; its last words are quoted.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={num_devices}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    command = [sys.executable, __file__, str(num_devices), str(labor)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"recording on {num_devices} devices failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(num_devices: int, labor: float) -> dict[str, float]:
    """Record with each strategy that these devices allow."""
    seconds: dict[str, float] = {}
    for strategy in ("sequential", "workers", "vmap") if num_devices == 1 else ("pmap",):
        name = strategy if num_devices == 1 else f"{strategy}-{num_devices}"
        seconds |= {f"{what}-{name}": value for what, value in _measure_strategy(strategy, labor).items()}
    return seconds


def _measure_strategy(strategy: str, labor: float) -> dict[str, float]:
    from labor_experts import HeldLabor, ReleasedLabor

    from jaxarc.experts.painter import Painter
    from jaxarc.traces import TraceCache

    idle, held = HeldLabor(0), HeldLabor(int(labor * _HELD_ROUNDS))
    released = ReleasedLabor(int(labor * _RELEASED_ROUNDS))
    seconds = {}
    for count in UNITS:
        graph = _graph(count)
        first, second = (_seconds(graph, idle, strategy) for _ in range(2))  # the first of a size compiles
        seconds |= {f"compile-{count}": max(first - second, 0.0), f"idle-{count}": second}
        seconds[f"held-{count}"] = _seconds(graph, held, strategy)
        seconds[f"released-{count}"] = _seconds(graph, released, strategy)
    seconds["repeated-16"] = _seconds(_graph(16, num_different=1), held, strategy)
    with tempfile.TemporaryDirectory() as folder:
        cache = TraceCache(folder)
        for name in ("kept-16", "cached-16"):
            seconds[name] = _seconds(_graph(16), held, strategy, cache=cache)
    seconds["painter-100"] = _seconds(_graph(100), Painter(), strategy, "bbox")
    return seconds


def _seconds(graph: "Graph", expert: "Expert", strategy: Any, action_format: Any = "mask", **settings: Any) -> float:
    from jaxarc.traces import record_traces

    if strategy == "workers":
        settings["processes"] = _PROCESSES
    start = time.perf_counter()
    recording = record_traces(graph, expert, action_format, strategy=strategy, chunk_size=len(graph), **settings)
    recording.require_complete()
    return time.perf_counter() - start


def _graph(num_units: int, num_different: int | None = None) -> "Graph":
    """A set that needs tasks, four pairs each: 16 units make 21 nodes, 100 make 126."""
    import numpy as np

    from jaxarc.traces import Graph

    nodes: dict[str, Pair | None] = {"set": None}
    needs = set()
    for unit in range(num_units):
        draw = np.random.default_rng(unit if num_different is None else unit % num_different)
        task, name = f"task-{unit // 4}", f"task-{unit // 4}/{unit}"
        nodes[task], nodes[name] = None, _pair(draw)
        needs |= {("set", task), (task, name)}
    return Graph(nodes, frozenset(needs))


def _pair(draw: "np.random.Generator") -> "Pair":
    """Draw two grids of overlapping boxes."""
    import numpy as np

    from jaxarc.experts.expert import Pair

    grids = np.zeros((2, 10, 10), np.int8)
    for grid in grids:
        for color in range(1, 5):
            top, left = draw.integers(0, 8, 2)
            grid[top : top + draw.integers(2, 6), left : left + draw.integers(2, 6)] = color
    return Pair(*grids)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(int(sys.argv[1]), float(sys.argv[2]))) + "\n")
