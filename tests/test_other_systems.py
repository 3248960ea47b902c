"""Systems that lack what only Unix has: it is asked for where it is used, so nothing else needs it."""

import subprocess
import sys
import urllib.request

import pytest

# Libraries keep what they took when they were imported; from then on, there is none of it.
HIDE = """
import asyncio, filelock, multiprocessing, os, platform, signal, subprocess, sys, tempfile
import equinox, jax, numpy

platform.uname()  # it remembers
for module in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[module] = None
MISSING = (
    "chown chroot fchdir fork forkpty getegid getgroups getloadavg getpgid getpgrp getsid killpg mkfifo nice openpty "
    "posix_spawn pread pwrite register_at_fork sched_getaffinity sched_setaffinity sched_yield setpgid setsid statvfs "
    "sysconf ttyname uname wait3 wait4"
)
for name in MISSING.split():
    delattr(os, name)
for name in "SIGALRM SIGCHLD SIGCONT SIGHUP SIGPIPE SIGSTOP SIGUSR1 SIGUSR2 alarm pause".split():
    delattr(signal, name)
"""
STEP = """
import jaxarc
env, params = jaxarc.make("arc-agi-1/training:max_side=5", selection_format="bbox", max_grid_height=5, max_grid_width=5)
state, _ = env.reset(jax.random.key(0), params)
action = env.action_space(params).sample(jax.random.key(1))
print(int(env.step(state, action, params)[0].step_count))
"""
MAIN = "from jaxarc.__main__ import main\nmain()"
SMALL_TRAINING = (
    "train experiment=small_grids training.total_steps=2048 agent.num_envs=64 training.num_seeds=1 "
    "logging.run_root={folder}"
)
COMMANDS = {
    "train": (SMALL_TRAINING, "run"),
    "evaluate": (
        "evaluate arc-agi-1/training:max_side=3 --agent search --seconds 1 --processes 2 --output {folder}/out",
        "",
    ),
    "search": ("search 25ff71a9 --seconds 2", "shift"),
    "record": ("traces record arc-agi-1/training:max_side=3 --cache {folder}/traces", ""),
    "info": ("info", "executor"),
}


def without_unix(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", HIDE + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_environment_steps():
    assert without_unix(STEP).split() == ["1"]


@pytest.mark.parametrize(("words", "printed"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_runs(tmp_path, words, printed):
    assert printed in without_unix(MAIN, *words.format(folder=tmp_path).split())


def test_a_page_is_served(tmp_path):
    words = [sys.executable, "-c", HIDE + MAIN, "play", "--no-open", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        address = next(word for line in process.stdout for word in line.split() if word.startswith("http://"))
        with urllib.request.urlopen(address, timeout=60) as page:
            assert "<html" in page.read().decode()
        process.terminate()
