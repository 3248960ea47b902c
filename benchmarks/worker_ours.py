"""Measures this package on request; see worker_protocol.py."""

from collections.abc import Callable

from worker_protocol import Request, serve

from jaxarc.benchmarks.measure import versions
from jaxarc.benchmarks.speed import PythonLoop, Throughput, play_params

_samplers: dict[tuple, Callable[[float], float]] = {}


def measure(request: Request) -> float:
    kind, mode, selection, side, batch, longest = (
        request[name] for name in ("kind", "mode", "selection", "side", "batch", "longest_scan")
    )
    key = (kind, mode, selection, side, batch)
    if key not in _samplers:
        params = play_params(selection, side)
        if kind == "loop":
            loop = PythonLoop(params, compiled_outside=mode == "jit")
            _samplers[key] = lambda seconds: 1e6 / loop.sample(seconds)
        else:
            compile_loop = Throughput.of_resets if kind == "resets" else Throughput.of_steps
            _samplers[key] = compile_loop(params, batch, longest).sample
    return _samplers[key](request["seconds"])


if __name__ == "__main__":
    serve(lambda: {"package": "jaxarc", **versions()}, measure, _samplers.clear)
