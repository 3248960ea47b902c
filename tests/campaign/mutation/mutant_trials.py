"""Run tests again and again in forks of a process that has imported the libraries already.

``python -m campaign.mutation.mutant_trials`` (in the folder of a checkout) reads requests from its standard input and
answers each on its standard output, one line of JSON each. Libraries are imported once, the package and its tests in
each fork, so that each sees the files as they are then. No plugin of pytest is loaded. JAX's threads start with its
backend, which is touched in forks only.
"""

import contextlib
import dataclasses
import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

_IMPORTED: Final = (  # libraries, and parts of the package that import nothing of what is mutated
    *("jax", "jax.numpy", "numpy", "equinox", "chex", "optax", "jaxtyping", "yaml", "filelock"),
    *("pytest", "hypothesis", "hypothesis.extra.numpy", "platformdirs", "jax.experimental.multihost_utils"),
    *("jaxarc.config", "jaxarc.tasks", "jaxarc.utils.error_handling", "jaxarc.prng"),
)
_OPTIONS: Final = ("-x", "-q", "--assert=plain", "-p", "no:cacheprovider")
_WALL_FACTOR: Final = 30.0  # of the seconds of processor time: other programs may leave us little of it
_TESTS_FAILED, _INTERRUPTED = 1, 2  # exit codes of pytest


@dataclasses.dataclass(frozen=True)
class Trial:
    """How a run of tests went."""

    outcome: str  # "passed", "failed", "timeout", or "broken": pytest itself could not do its work
    by: str  # the first test that failed, or what ended the process
    seconds: float  # of processor time


def serve() -> None:
    """Answer requests until there are no more."""
    sys.path.insert(0, str(Path("tests").resolve()))
    importlib.import_module("conftest")  # sets what JAX reads when it is imported
    for name in _IMPORTED:
        importlib.import_module(name)
    if "jaxarc.envs" in sys.modules:
        raise ImportError("jaxarc.envs is imported before a mutant is; leave out what imports it")
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        trial = run_tests(request["tests"], request["seconds"], request["keeps_compiled"])
        sys.stdout.write(json.dumps(dataclasses.asdict(trial)) + "\n")
        sys.stdout.flush()


def run_tests(tests: Sequence[str], seconds: float, keeps_compiled: bool) -> Trial:
    """Run tests in a fork, up to the first failure.

    Args:
        tests: files and other arguments of pytest.
        seconds: of processor time that they may take.
        keeps_compiled: what is compiled is kept for later runs, if there is a folder for it.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _run_in_fork(tests, seconds, keeps_compiled, write)
    os.close(write)
    by, is_late = _first_failure(read, seconds * _WALL_FACTOR)
    if is_late:
        os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    spent = round(usage.ru_utime + usage.ru_stime, 2)
    code = os.waitstatus_to_exitcode(status)
    if is_late or code == -signal.SIGXCPU:
        return Trial("timeout", "the time was over", spent)
    if code < 0:
        return Trial("failed", f"the process ended with {signal.Signals(-code).name}", spent)
    outcomes = {0: "passed", _TESTS_FAILED: "failed", _INTERRUPTED: "failed"}
    return Trial(outcomes.get(code, "broken"), by, spent)


class _Witness:
    """A plugin of pytest that tells what failed first, and ends the process at once."""

    def __init__(self, write: int) -> None:
        self._write = write

    def pytest_collectreport(self, report: Any) -> None:
        self._note(report, "import of ")

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._note(report, "")

    def _note(self, report: Any, prefix: str) -> None:
        if report.failed:
            os.write(self._write, (prefix + report.nodeid).encode()[:4096])
            os._exit(_TESTS_FAILED)


def _run_in_fork(tests: Sequence[str], seconds: float, keeps_compiled: bool, write: int) -> None:
    """Become a run of pytest; never return."""
    os.setpgid(0, 0)
    limit = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    sys.dont_write_bytecode = not keeps_compiled
    jax = importlib.import_module("jax")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0 if keeps_compiled else 1e9)
    gc.disable()
    code = 3
    with contextlib.suppress(SystemExit):
        pytest = importlib.import_module("pytest")
        code = int(pytest.main(["-o", "addopts=", *_OPTIONS, *tests], plugins=[_Witness(write)]))
    os._exit(code)


def _first_failure(read: int, seconds: float) -> tuple[str, bool]:
    """What the fork says at its end, and whether it says nothing for too long."""
    with os.fdopen(read, "rb") as pipe:
        deadline = time.monotonic() + seconds
        ready, _, _ = select.select([pipe], [], [], max(deadline - time.monotonic(), 0))
        return (pipe.read().decode(), False) if ready else ("", True)


if __name__ == "__main__":
    serve()
