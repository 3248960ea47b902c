"""Python code in a process of its own, and several processes of one run, which never outlive their test."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

ENDS_WITHIN = 600.0  # seconds; a test that waits longer for a process has failed
TRAIN = "import sys; from jaxarc.cli.main import main; main(['train', *sys.argv[1:]])"


def run_python(code: str, *, devices: int | None = None, path: str = "", **variables: str) -> str:
    """Run code in a new process, which finds the modules of this folder, and return what it prints.

    Args:
        code: as after ``python -c``.
        devices: of the CPU, for JAX.
        path: another folder of modules.
        variables: of the environment, besides those of this process.
    """
    environment = {**os.environ, **variables}
    paths = (path, str(Path(__file__).parent), environment.get("PYTHONPATH"))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if devices is not None:
        flags = os.environ.get("XLA_FLAGS", "")
        environment["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count={devices}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=ENDS_WITHIN, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


class ProcessGroup:
    """Python processes that run one script, each with arguments of its own and a log file."""

    def __init__(self, folder: Path, script: str, arguments: list[list[str]]):
        # Each has two threads for sums whatever cores there are, as one process with two devices has.
        environment = {
            **os.environ,
            "NPROC": "2",
            "XDG_CACHE_HOME": str(folder.parent / "cache"),
            "JAXARC_NO_CACHE": "0",
            "COLUMNS": "200",
        }
        folder.mkdir(parents=True)
        self.logs = [folder / f"{number}.log" for number in range(len(arguments))]
        self.processes = []
        for own, log in zip(arguments, self.logs, strict=True):
            with log.open("wb") as out:
                command = [sys.executable, "-c", script, *own]
                process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT)
                self.processes.append(process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def codes(self, within=ENDS_WITHIN):
        """Wait until all have ended, and return their exit codes."""
        deadline = time.monotonic() + within
        return [process.wait(max(deadline - time.monotonic(), 0.1)) for process in self.processes]

    def wait_until(self, happened):
        """Wait for something to happen before a process ends."""
        deadline = time.monotonic() + ENDS_WITHIN
        while not happened():
            assert time.monotonic() < deadline
            assert all(process.poll() is None for process in self.processes), self.told()
            time.sleep(0.005)

    def told(self, number=None):
        """What one process wrote, or all of them."""
        logs = self.logs if number is None else [self.logs[number]]
        return "\n".join(log.read_text() for log in logs)


def free_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def places(count, **more):
    """Return the overrides that make processes one run, for each of them."""
    shared = {"coordinator_address": free_address(), "num_processes": count, "connect_seconds": 120, **more}
    fields = [{**shared, "process_id": number} for number in range(count)]
    return [["parallel=multihost", *(f"parallel.{name}={value}" for name, value in own.items())] for own in fields]
