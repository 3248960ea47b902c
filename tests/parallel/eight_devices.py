"""A process with eight devices of the CPU that plays what it is asked; as a script, it answers line by line."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


@contextlib.contextmanager
def eight_devices():
    """Start the process; yields a function that takes the arguments of ``fingerprint.play`` and returns its result."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    paths = [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "XLA_FLAGS": flags},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(**arguments):
        process.stdin.write(json.dumps(arguments) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    with process:
        yield ask
        process.stdin.close()


def answer():
    import conftest  # noqa: F401  how tests compile and promote
    from fingerprint import play

    for line in sys.stdin:
        sys.stdout.write(json.dumps(play(**json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    answer()
