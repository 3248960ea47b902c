"""A signal ends each command at any moment with 130 or 143, and never with a fault of the interpreter."""

import signal
import subprocess
import sys
import time

import pytest

BUSY = """
import hashlib, sys
from jaxarc.cli.signals import GracefulStop, ensured, signals_end_the_command

with signals_end_the_command(), ensured(lambda: print("cleaned", flush=True)):
    with GracefulStop(keeps=sys.argv[1] == "keeps"):
        print("busy", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # minutes in C, where Python handles no signal
"""


@pytest.mark.parametrize(
    ("number", "keeps", "count", "code"),
    [
        (signal.SIGINT, "nothing", 1, 130),
        (signal.SIGTERM, "nothing", 1, 143),
        (signal.SIGINT, "keeps", 2, 130),
    ],
)
def test_a_signal_ends_a_command_that_is_inside_a_compilation(number, keeps, count, code):
    command = [sys.executable, "-c", BUSY, keeps]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "busy\n"
            for _ in range(count):
                assert process.poll() is None
                process.send_signal(number)
                time.sleep(0.2)
            out, err = process.communicate(timeout=10)
        finally:
            process.kill()
    assert (process.returncode, out) == (code, "cleaned\n"), err
    assert "Traceback" not in err


def test_the_first_signal_lets_a_command_go_on_that_keeps_what_it_did():
    with subprocess.Popen([sys.executable, "-c", BUSY, "keeps"], stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            time.sleep(2.5)
            assert process.poll() is None
        finally:
            process.kill()


FORKED = """
import os, signal, sys, time
from jaxarc.cli.signals import signals_end_the_command, signals_interrupt

def forked_ends():
    child = os.fork()
    if child == 0:
        try:
            time.sleep(60)
        finally:
            print("Traceback: an exception passed the child", file=sys.stderr)
    time.sleep(0.5)
    os.kill(child, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

with signals_end_the_command():
    print(forked_ends())
    with signals_interrupt():
        print(forked_ends())
    time.sleep(0.5)
    print("goes on")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no forks")
def test_a_signal_ends_a_forked_process_without_a_word_and_only_that():
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED]  # Python 3.12 warns of forks
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split("\n")[:3]) == (0, ["-15", "-15", "goes on"])
    assert done.stderr == ""
