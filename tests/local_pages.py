"""``jaxarc play`` and ``jaxarc watch`` as processes of their own, for tests."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def served(*arguments: object) -> Iterator[str]:
    """Run a command of jaxarc that serves a page, and yield its address; Ctrl-C must end it well."""
    command = [sys.executable, "-m", "jaxarc.cli.main", *map(str, arguments), "--no-open"]
    environment = {**os.environ, "COLUMNS": "500", "TERM": "dumb"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    assert process.stdout is not None
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/\S+/", line):
                yield found[0]
                break
        else:
            raise AssertionError(f"no address: {lines}, {process.communicate()[1]}")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
    finally:
        process.kill()
        process.communicate()
