"""A real SLURM of three nodes on this machine, for tests that say ``pytest_plugins = ["slurm_cluster"]``.

Where its packages cannot be had these tests are skipped, and say so.
"""

import os
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

_SCRIPT: Final = Path(__file__).parent / "slurm" / "slurm_on_one_machine.sh"
_NOT_HERE: Final = 3  # the exit code that says so
_PATIENCE: Final = 300.0  # seconds


class SlurmCluster:
    """A cluster whose nodes are ``node1`` to ``node3``, in the partition ``cpu``.

    ``environment`` holds the variables with which sbatch, srun, squeue and scancel find it.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        exports = self._do("start", str(_free_ports(4)))  # export SLURM_CONF=... LD_LIBRARY_PATH=... PATH=...:$PATH
        # Not the variables of a job in which these tests may run.
        mine = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        chosen = dict(word.split("=", 1) for word in shlex.split(exports)[1:])
        self.environment = {**mine, **chosen, "PATH": chosen["PATH"].replace("$PATH", os.environ["PATH"])}

    def run(self, *command: str, **options) -> str:
        """Run a command of SLURM that has to end well, and return what it prints."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=_PATIENCE, check=False, **options
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def submit(self, script: str, *options: str, folder: Path) -> str:
        """Give a batch script to the cluster, which runs in a folder, and return the id of its job."""
        (folder / "job.sh").write_text(script)
        return self.run("sbatch", "--parsable", *options, "job.sh", cwd=folder).strip()

    def state(self, job: str) -> str:
        """Return what SLURM says of a job, such as RUNNING."""
        return self.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()

    def wait_until(self, happened: Callable[[], object], within: float = _PATIENCE) -> None:
        deadline = time.monotonic() + within
        while not happened():
            assert time.monotonic() < deadline, self.run("scontrol", "show", "job")
            time.sleep(0.2)

    def kill(self, node: int) -> None:
        """End the daemon of a node, as a lost network does: SLURM gives it up in 20 s, and what runs there goes on.

        Node 0 is the controller.
        """
        self._do("kill", str(node))

    def revive(self, node: int) -> None:
        """Start the daemon of a node again, and wait until the cluster has it back."""
        self._do("revive", str(node))
        words = ("sinfo", "-h", "-n", f"node{node or 1}", "-o", "%t")
        state = lambda: subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False).stdout
        self.wait_until(lambda: state().strip() in ("idle", "alloc"))

    def stop(self) -> None:
        self._do("stop")

    def _do(self, action: str, *more: str) -> str:
        with (self.folder / "script.log").open("a") as log:  # not a pipe, which the daemons would keep open
            command = [str(_SCRIPT), action, str(self.folder), *more]
            with (self.folder / "script.out").open("w+") as out:
                code = subprocess.run(command, stdout=out, stderr=log, timeout=_PATIENCE, check=False).returncode
                out.seek(0)
                told = (self.folder / "script.log").read_text()
                if code == _NOT_HERE:
                    pytest.skip(told)
                assert code == 0, f"{command}: {told}"
                return out.read()


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """A cluster for all tests of a session; a test that kills a node revives it."""
    unpacked = subprocess.run([str(_SCRIPT), "unpack"], capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if unpacked.returncode == _NOT_HERE:
        pytest.skip(f"Debian's packages of SLURM cannot be had here: {unpacked.stderr.strip()[-200:]}")
    assert unpacked.returncode == 0, unpacked.stderr
    cluster = SlurmCluster(tmp_path_factory.mktemp("slurm"))
    yield cluster
    cluster.stop()


def _free_ports(count: int) -> int:
    """Return the first of some ports in a row that are free."""
    while True:
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
        try:
            for number in range(port, port + count):
                with socket.socket() as free:
                    free.bind(("127.0.0.1", number))
        except (OSError, OverflowError):
            continue
        return port
