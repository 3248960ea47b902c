"""Ctrl-C in a terminal, at many moments of many commands: imports, tracing, compiling, running and writing."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

TRACE = {
    "task_id": "d037b0a7",
    "pair_index": 0,
    "split": "train",
    "actions": [[32, 0, 0, 0, 0], [34, 0, 0, 0, 0]],
    "dataset": "arc-agi-1/training",
}
COMMANDS = {
    "evaluate": ["evaluate", "arc-agi-1/training", "--agent", "random"],
    "replay": ["replay", "traces.jsonl"],
    "verify": ["traces", "verify", "traces.jsonl"],
    "train": ["train", "experiment=small_grids", "training.total_steps=1"],
    "surrogate": ["train", "surrogate=lookahead"],
    "record": ["traces", "record", "arc-agi-1/training:max_side=10"],
}
# Seconds after the start; the commands take turns, as their starts are much alike.
MOMENTS = {name: ((0.5, 9.0), (2.5, 6.0))[i % 2] for i, name in enumerate(COMMANDS)}
ENDS_WITHIN = 5.0
# The terminal becomes the one that controls the new session, so that ^C is a signal to what runs in it.
IN_ITS_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "jaxarc", *sys.argv[1:]])
"""
FAULTS = ("Traceback", "Segmentation", "Fatal Python error", "Exception ignored")


def end_by_ctrl_c(arguments, folder, moment):
    """Run a command in a terminal, and press Ctrl-C: its exit code, what it wrote, and the seconds it went on."""
    terminal, its_side = pty.openpty()
    command = [sys.executable, "-c", IN_ITS_TERMINAL, *arguments]
    process = subprocess.Popen(
        command, cwd=folder, stdin=its_side, stdout=its_side, stderr=its_side, start_new_session=True
    )
    os.close(its_side)
    start = time.monotonic()
    pressed = None
    written = b""
    while True:
        if select.select([terminal], [], [], 0.02)[0]:
            try:
                written += os.read(terminal, 65536)
            except OSError:  # the command has ended
                break
        if pressed is None and time.monotonic() - start > moment:
            os.write(terminal, b"\x03")
            pressed = time.monotonic()
    seconds = 0.0 if pressed is None else time.monotonic() - pressed
    os.close(terminal)
    return process.wait(), written.decode(errors="replace"), seconds


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_ends_a_command_at_any_moment(command, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXARC_NO_CACHE", "1")  # compile each time
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    for name in ("JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS"):  # compile for long, as for users
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "traces.jsonl").write_text(json.dumps(TRACE) + "\n")
    for moment in MOMENTS[command]:
        code, written, seconds = end_by_ctrl_c(COMMANDS[command], tmp_path, moment)
        if seconds == 0.0:
            break  # it was done before
        # Amid its own start and end the interpreter dies of the signal, which a shell calls 130 as well.
        assert code in (130, -signal.SIGINT), f"{moment}: {code}, {written}"
        assert seconds < ENDS_WITHIN, f"{moment}: {written}"
        assert not any(fault in written for fault in FAULTS), f"{moment}: {written}"
        for kept in tmp_path.glob("runs/*/*.json"):  # only what had been done, and files are written whole
            assert json.loads(kept.read_text()), f"{moment}: {kept}"
