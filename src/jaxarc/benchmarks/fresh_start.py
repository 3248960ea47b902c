"""The costs of a process before its first step: import, tasks, compilation. Run as a script, in a process of its own.

``python -P fresh_start.py import make compile`` prints a JSON object: ``import`` seconds of jaxarc beyond jax,
``make-cold`` and ``make-warm`` seconds of the first and the second ``make``, ``compile`` seconds of a whole rollout.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterable
from typing import Final

PARTS: Final = ("import", "make", "compile")
NUM_ENVS: Final = 1024
NUM_STEPS: Final = 100


def start_fresh(parts: Collection[str]) -> dict[str, float]:
    """Start a process that imports, makes and compiles as far as the parts ask, without a compilation cache.

    Args:
        parts: some of :data:`PARTS`.

    Returns:
        Seconds by name.

    Raises:
        RuntimeError: the process failed; its last words are quoted.
    """
    # Without JAX's cache, or the second measurement would load the program of the first.
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    command = [sys.executable, "-P", __file__, *parts]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a fresh process failed to {', '.join(parts)}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(parts: Iterable[str]) -> dict[str, float]:
    """Measure in this process, which must not have imported anything of jaxarc before."""
    import jax  # noqa: F401  its import is not ours to answer for

    start = time.perf_counter()
    import jaxarc.registration  # behind the lazy jaxarc.make
    import jaxarc.wrappers  # noqa: F401

    seconds = {"import": time.perf_counter() - start}
    wanted = set(parts)
    if wanted & {"make", "compile"}:
        seconds |= _make_and_compile("compile" in wanted)
    return seconds


def _make_and_compile(compiles: bool) -> dict[str, float]:
    import jax

    from jaxarc.benchmarks.speed import compile_steps, play_params, start_playing

    start = time.perf_counter()
    params = play_params("bbox")
    # The same call again: what it still takes is work, and not reading of files.
    made = time.perf_counter()
    play_params("bbox")
    seconds = {"make-cold": made - start, "make-warm": time.perf_counter() - made}
    if compiles:
        playing = start_playing(jax.random.key(0), params, NUM_ENVS)
        seconds["compile"] = compile_steps(playing, params, NUM_ENVS, NUM_STEPS).compile_seconds
    return seconds


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(sys.argv[1:])) + "\n")
